// Memory options of a plan that save nothing: told, because they cost time. Each is judged by the peak that
// the same plan has without it (ZeRO: with the stage before), by lower/hybrid_memory.h's equations and with
// even expert loads. Cost: that of cutting the model once more per option.
#pragma once

#include <string>
#include <vector>

#include "ir/machine.h"
#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// "--recompute selective saves no memory: ...", one sentence each. `plan` is the request, resolved.
std::vector<std::string> options_without_savings(const PlanRequest& request, const Model& model,
                                                 const Plan& plan, const Device& device);

}  // namespace armilla
