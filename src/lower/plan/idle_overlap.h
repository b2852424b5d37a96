// When what tensor ranks exchange begins, and whether it would run as it does without Plan::overlap_tensor.
#pragma once

#include <string>

#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// Whether what tensor ranks exchange begins behind all that the device was given before it, whatever it needs
// of that: under an eager PyTorch, whose stream of communication waits for that of computation (c10d's
// ProcessGroupNCCL, syncStream).
bool keeps_exchanges_in_order(const Plan& plan);

// Cost: the model is divided twice, and a square of the steps of a block.
bool overlaps_nothing(Plan plan, const Model& model);
// Of such a plan, why: "PyTorch waits for every all-reduce; ..."
std::string why_nothing_overlaps(const Plan& plan, const Model& model);

}  // namespace armilla
