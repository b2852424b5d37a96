#include "ir/derived/training.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "ir/derived/expense.h"

namespace armilla {

double training_iterations(const TrainingGoal& goal, double batch, double sequence) {
  // One division: a whole number of iterations stays one.
  return std::ceil(goal.samples > 0 ? goal.samples / batch : goal.tokens / (batch * sequence));
}

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
  time.iterations = training_iterations(goal, batch, sequence);
  time.seconds = time.iterations * (run.goodput ? run.goodput->iteration : in_seconds(run.result.iteration));
  time.device_seconds = time.seconds * static_cast<double>(plan.ranks);
  // What is lost to failures is computed like the rest.
  const Expense expense = expense_of(run);
  const double lasts = time.seconds / in_seconds(run.result.iteration);
  if (expense.cost) time.cost = *expense.cost * lasts;
  if (expense.energy) time.energy = *expense.energy * lasts;
  return time;
}

void check_training(const TrainingGoal& goal, const Model& model) {
  if (goal.tokens <= 0 || model.facts.sequence > 0) return;
  throw Error(goal.where, fmt::format("model '{}' does not tell what a token is", model.name),
              "give training.samples instead");
}

}  // namespace armilla
