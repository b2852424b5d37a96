#include "study/search/foresee.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "network/network.h"
#include "study/patience.h"

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

void check_patience_of(const SearchRequest& request, PlanRoom& plans, std::span<const PlanPlace> open,
                       std::int64_t known, std::int64_t at_once) {
  const ComponentChoice& network = plans.space().bases().front().study.network;
  if (!promises_of(network).plays_bytes) return;
  const auto count = static_cast<std::int64_t>(open.size());
  ForeseenRuns runs{.what = "plan",
                    .network = network.name,
                    .most = count,
                    .at_once = at_once,
                    .fewer = "a smaller --top, or fixed values, make fewer plans"};
  runs.seconds = mean_of_some(count, [&](std::int64_t i) -> std::optional<double> {
    const PlanPlace& place = open[static_cast<std::size_t>(i)];
    const std::optional<PlanPrepared> plan = prepared_at(plans, place);
    try {
      if (plan) return plans.evaluator(place.base).foreseen_seconds(*plan);
    } catch (const Error&) {
      // Nor is it simulated.
    }
    return std::nullopt;
  });
  if (runs.seconds <= 0) return;
  constexpr std::int64_t kMostLookedAt = 256;
  const std::int64_t asked = request.brute_force ? count : std::max<std::int64_t>(request.top - known, 0);
  for (std::int64_t i = 0; i < std::min(count, kMostLookedAt) && runs.least < asked; ++i)
    runs.least += prepared_at(plans, open[static_cast<std::size_t>(i)]) ? 1 : 0;
  check_patience(runs, request.patience);
}

}  // namespace armilla
