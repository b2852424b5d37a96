#include "ir/sweep.h"

#include <algorithm>

namespace armilla {

std::string_view name_of(SweepState state) {
  switch (state) {
    case SweepState::open:
      return "open";
    case SweepState::done:
      return "done";
    case SweepState::failed:
      return "failed";
  }
  return "?";
}

std::int64_t SweepResult::count(SweepState state) const {
  return std::count_if(runs.begin(), runs.end(), [&](const SweepRun& run) { return run.state == state; });
}

std::int64_t SweepResult::repeated() const {
  return std::ranges::count_if(runs, [](const SweepRun& run) { return run.is_repeated && !run.known; });
}

std::int64_t SweepResult::known() const {
  return std::count_if(runs.begin(), runs.end(), [](const SweepRun& run) { return run.known; });
}

}  // namespace armilla
