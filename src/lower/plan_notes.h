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

}  // namespace armilla
