#include "ir/derived/training.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace armilla {

std::optional<TrainingTime> training_time(const Run& run) {
  const TrainingGoal& goal = run.study.training;
  if (!has_model(run) || (goal.tokens <= 0 && goal.samples <= 0) || run.result.iteration <= Time(0))
    return {};
  const Plan& plan = run.study.plan;
  const auto sequence = static_cast<double>(run.model.facts.sequence);
  const double batch = static_cast<double>(plan.batch) * static_cast<double>(plan.data());
  TrainingTime time;
  time.samples = goal.samples > 0 ? goal.samples : goal.tokens / sequence;
  time.tokens = goal.samples > 0 ? goal.samples * sequence : goal.tokens;
  // One division: a whole number of iterations stays one.
  time.iterations = std::ceil(goal.samples > 0 ? goal.samples / batch : goal.tokens / (batch * sequence));
  time.seconds = time.iterations * (run.goodput ? run.goodput->iteration : in_seconds(run.result.iteration));
  time.device_seconds = time.seconds * static_cast<double>(plan.ranks);
  return time;
}

void check_training(const TrainingGoal& goal, const Model& model) {
  if (goal.tokens <= 0 || model.facts.sequence > 0) return;
  throw Error(goal.where, fmt::format("model '{}' does not tell what a token is", model.name),
              "give training.samples instead");
}

}  // namespace armilla
