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
    case SearchObjective::memory:
      return "memory";
  }
  return "?";
}

}  // namespace armilla
