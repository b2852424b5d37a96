// For tests: the two ways to play a plan, each by itself. A search takes the one that is quicker.
#pragma once

#include <optional>

#include "study/search/evaluate.h"

namespace armilla {

class PlansEitherWay {
 public:
  explicit PlansEitherWay(PlanEvaluator& evaluator) : evaluator_(evaluator) {}

  // With slots of the pipeline as one node each (lower/fused_slots.h); nothing where these are not known to
  // be the same whenever they are done.
  std::optional<PlanOutcome> in_slots(const PlanPrepared& plan) {
    const std::optional<Result> result = evaluator_.play_slots(plan, {});
    return result ? std::optional(PlanEvaluator::outcome_of(plan, *result)) : std::nullopt;
  }
  PlanOutcome by_nodes(const PlanPrepared& plan) {
    return PlanEvaluator::outcome_of(plan, evaluator_.play_nodes(plan));
  }
  // Nothing as soon as it is known that the iteration lasts longer.
  std::optional<PlanOutcome> by_nodes_within(const PlanPrepared& plan, Time longest) {
    const LeastAhead ahead = evaluator_.ahead_of(plan);
    if (ahead.after_slots.empty()) return by_nodes(plan);
    if (is_known_to_be_late(plan, longest)) return std::nullopt;
    return evaluator_.play_nodes_within(plan, longest, evaluator_.beginning_key(plan), ahead);
  }
  // Whether what was seen of plans that begin alike, node by node, says that the iteration lasts longer.
  bool is_known_to_be_late(const PlanPrepared& plan, Time longest) {
    return evaluator_.is_known_to_be_late(evaluator_.beginning_key(plan), evaluator_.ahead_of(plan), longest);
  }

 private:
  PlanEvaluator& evaluator_;
};

}  // namespace armilla
