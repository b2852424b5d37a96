// Whether what tensor ranks exchange would run as it does without Plan::overlap_tensor.
#pragma once

#include <string>

#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// Cost: the model is divided twice, and a square of the steps of a block.
bool overlaps_nothing(Plan plan, const Model& model);
// Of such a plan, why: "PyTorch waits for every all-reduce; ..."
std::string why_nothing_overlaps(const Plan& plan, const Model& model);

}  // namespace armilla
