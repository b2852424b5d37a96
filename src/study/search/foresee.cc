#include "study/search/foresee.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "network/network.h"

namespace armilla {
namespace {

// Nothing for what is refused.
std::optional<PlanPrepared> prepared_at(PlanRoom& plans, const PlanPlace& place) {
  try {
    PlanPrepared plan = plans.prepare(place.base, place.point);
    if (!plans.fits(plans.evaluator(place.base).memory(plan))) return std::nullopt;
    return plan;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

ForeseenRuns foresee_plans(const SearchRequest& request, PlanRoom& plans, std::span<const PlanPlace> open,
                           std::int64_t known, std::int64_t at_once) {
  ForeseenRuns runs{
      .what = "plan", .at_once = at_once, .fewer = "a smaller --top, or fixed values, make fewer plans"};
  // Also where no plan is left to be played.
  for (const SearchBase& base : plans.space().bases()) {
    if (promises_of(base.study.network).plays_bytes) runs.network = base.study.network.name;
  }
  std::vector<PlanPlace> played;
  for (const PlanPlace& place : open) {
    const ComponentChoice& network = plans.space().bases()[place.base].study.network;
    if (!promises_of(network).plays_bytes) continue;
    played.push_back(place);
  }
  const auto count = static_cast<std::int64_t>(played.size());
  const SomeRuns some = look_at_some(count, [&](std::int64_t i) -> std::optional<PlayTime> {
    const PlanPlace& place = played[static_cast<std::size_t>(i)];
    try {
      if (const std::optional<PlanPrepared> plan = prepared_at(plans, place))
        return plans.evaluator(place.base).foreseen_time(*plan);
    } catch (const Error&) {
      // Nor is it simulated.
    }
    return std::nullopt;
  });
  if (some.times.empty() || some.mean().most <= 0) return runs;
  // Of those that are asked for the others may be some.
  const std::int64_t others = static_cast<std::int64_t>(open.size()) - count;
  const std::int64_t asked =
      request.brute_force ? count : std::max<std::int64_t>(request.top - known - others, 0);
  for (const PlanPlace& place : played) {
    if (runs.least >= asked || (request.stopped && request.stopped())) break;
    runs.least += prepared_at(plans, place) ? 1 : 0;
  }
  runs.most = request.brute_force ? runs.least : count;
  const auto rounds = [&](std::int64_t of) { return static_cast<double>((of + at_once - 1) / at_once); };
  runs.together = {some.shortest().least * rounds(runs.least), some.mean().most * rounds(runs.most)};
  return runs;
}

}  // namespace armilla
