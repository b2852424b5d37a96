// Uneven pipeline stages by cost: consecutive blocks are cut into stages so that the slowest stage is as fast
// as it can be (the linear partition problem). A block costs what the compute model says for its forward
// pass, its recomputation and its backward pass; communication is not counted. Where several cuts are equally
// good, later stages are the fuller ones: earlier stages keep more micro-batches in flight. Cost: O(blocks
// log time).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "cost/cost.h"
#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// How many of `costs` each of `stages` gets; every stage gets at least one. Needs 1 <= stages <= costs.
std::vector<std::int64_t> balanced_cut(const std::vector<Time>& costs, std::int64_t stages);

// Plan::stage_blocks for pipeline x virtual_stages stages of the model's blocks. Throws Error where there are
// fewer blocks than stages.
std::vector<std::int64_t> balance_stages(const Model& model, const Plan& plan, const CostModel& cost,
                                         const std::string& where);

}  // namespace armilla
