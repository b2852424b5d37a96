// What a user gave of a plan although it changes nothing: told, not refused, so that one command line can be
// swept over degrees that include 1.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// "--sequence-parallel has no effect: tensor_parallel is 1", one sentence each. `plan` is the request,
// resolved.
std::vector<std::string> settings_without_effect(const PlanRequest& request, const Plan& plan,
                                                 const ModelFacts& facts);

// What was assumed of the batch and its micro-batches, and why; empty where the user said it all, or a model
// read from a file goes through in one pass. `described`: the model is one by description.
std::string batch_note(const PlanRequest& request, const Plan& plan, bool described);

}  // namespace armilla
