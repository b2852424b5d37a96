#include "ir/derived/events.h"

namespace armilla {

std::string_view name_of(TimeSource source) {
  switch (source) {
    case TimeSource::modelled:
      return "modelled";
    case TimeSource::measured:
      return "measured";
    case TimeSource::interpolated:
      return "interpolated";
    case TimeSource::given:
      return "given";
    case TimeSource::simulated:
      return "simulated";
  }
  return "?";
}

EventTable missing_events(const EventTable& table) {
  EventTable missing{{}, {}, table.device};
  for (const JobEvent& event : table.computations) {
    if (event.source == TimeSource::modelled || event.source == TimeSource::interpolated)
      missing.computations.push_back(event);
  }
  for (const JobEvent& event : table.communications) {
    if (!event.profiled) missing.communications.push_back(event);
  }
  return missing;
}

std::int64_t occurrences(const EventTable& table) {
  std::int64_t sum = 0;
  for (const auto* events : {&table.computations, &table.communications}) {
    for (const JobEvent& event : *events) sum += event.count;
  }
  return sum;
}

double redundancy_factor(const EventTable& table) {
  const std::size_t distinct = table.computations.size() + table.communications.size();
  return distinct > 0 ? static_cast<double>(occurrences(table)) / static_cast<double>(distinct) : 0;
}

}  // namespace armilla
