#include "study/search/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units_text.h"
#include "ir/derived/expense.h"
#include "ir/derived/training.h"

namespace armilla {

double SearchLimits::dollars(const PlanSize& plan, Time iteration) const {
  const std::optional<Money> cost = cost_of(space_.bases()[plan.base].study.machine, plan.ranks, iteration);
  return cost ? cost->value : 0;
}

double SearchLimits::training_iterations(const PlanSize& plan) const {
  const SearchBase& base = space_.bases()[plan.base];
  if (base.study.what_if.failures.mtbf_of_node > 0) return 0;
  const TrainingGoal& goal = base.study.training;
  if (goal.samples <= 0 && (goal.tokens <= 0 || base.model.sequence == 0)) return 0;
  return armilla::training_iterations(goal, static_cast<double>(plan.samples),
                                      static_cast<double>(base.model.sequence));
}

double SearchLimits::strain(const PlanSize& plan, Time iteration) const {
  double most = 0;
  if (request_.deadline) most = in_seconds(iteration) / in_seconds(*request_.deadline);
  if (request_.budget) most = std::max(most, training_cost(plan, iteration).value / request_.budget->value);
  return most;
}

std::optional<BrokenLimit> SearchLimits::broken(const PlanSize& plan, Time iteration,
                                                std::string_view least) const {
  if (request_.deadline && iteration > *request_.deadline) {
    return BrokenLimit{"deadline", fmt::format("takes {}{}, and the limit is {}", least, to_text(iteration),
                                               to_text(*request_.deadline))};
  }
  if (!request_.budget) return std::nullopt;
  const Money cost = training_cost(plan, iteration);
  if (cost <= *request_.budget) return std::nullopt;
  return BrokenLimit{"budget", fmt::format("costs {}{}, and the budget is {}", least, to_text(cost),
                                           to_text(*request_.budget))};
}

}  // namespace armilla
