#include "ir/search.h"

#include <algorithm>

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

const Neighbour* what_matters_most(const SearchResult& result) {
  const auto score = [&](const Neighbour& neighbour) {
    return score_of(result.objective, neighbour.outcome->figures());
  };
  const auto counts = [](const Neighbour& neighbour) { return neighbour.outcome && !neighbour.broken; };
  // What a knob costs together with another is not its own price: such neighbours count where there are no
  // others.
  const bool any_alone = std::ranges::any_of(result.neighbours, [&](const Neighbour& neighbour) {
    return counts(neighbour) && neighbour.needs.empty();
  });
  std::map<std::string, const Neighbour*> best;  // by key
  for (const Neighbour& neighbour : result.neighbours) {
    if (!counts(neighbour) || (any_alone && !neighbour.needs.empty())) continue;
    const Neighbour*& known = best[neighbour.key];
    if (known == nullptr || score(neighbour) < score(*known)) known = &neighbour;
  }
  const Neighbour* most = nullptr;
  for (const auto& [key, neighbour] : best) {
    if (most == nullptr || score(*neighbour) > score(*most)) most = neighbour;
  }
  return most;
}

}  // namespace armilla
