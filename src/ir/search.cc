#include "ir/search.h"

namespace armilla {

std::string_view name_of(SearchObjective objective) {
  switch (objective) {
    case SearchObjective::time:
      return "time";
    case SearchObjective::throughput:
      return "throughput";
    case SearchObjective::cost:
      return "cost";
    case SearchObjective::energy:
      return "energy";
    case SearchObjective::memory:
      return "memory";
  }
  return "?";
}

double score_of(SearchObjective objective, const PlanFigures& plan) {
  const auto samples = static_cast<double>(plan.samples);
  switch (objective) {
    case SearchObjective::time:
      return in_seconds(plan.iteration);
    case SearchObjective::throughput:
      return in_seconds(plan.iteration) / samples;
    case SearchObjective::cost:
      return plan.dollars / samples;
    case SearchObjective::energy:
      return plan.joules / samples;
    case SearchObjective::memory:
      return static_cast<double>(plan.memory.value);
  }
  return 0;
}

}  // namespace armilla
