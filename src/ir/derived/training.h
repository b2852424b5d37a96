// How long the whole training takes, where a study tells how much data it reads (`training` in a study file).
//
//   iterations = tokens / (samples of an iteration x tokens of a sample), or samples / samples of an
//                iteration; the last one counts as a whole one
//   time       = iterations x iteration time; with failures (ir/derived/goodput.h) that of the long run
// Not modelled: evaluation, checkpoints without failures, a batch or a sequence
// that grows on the way, epochs that end with a partial batch.
#pragma once

#include <optional>

#include "ir/study.h"

namespace armilla {

struct TrainingTime {
  double samples = 0, tokens = 0;  // tokens 0: the model does not tell what a token is
  double iterations = 0;
  double seconds = 0;
  double device_seconds = 0;
  std::optional<Money> cost;  // and energy: where those of an iteration are known (ir/derived/expense.h)
  std::optional<Energy> energy;
};

// Of samples that are read; of batches of so many with sequences of so many tokens. 0: no goal.
double training_iterations(const TrainingGoal& goal, double batch, double sequence);

// Nothing where the study has no goal, or the run no model or no length.
std::optional<TrainingTime> training_time(const Run& run);

// Throws Error for tokens of a model that has none. To be asked once the model is read.
void check_training(const TrainingGoal& goal, const Model& model);

}  // namespace armilla
