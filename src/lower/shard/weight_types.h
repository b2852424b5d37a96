// The types in which a plan keeps weights, and what follows from them.
#pragma once

#include "ir/plan.h"
#include "ir/tensor.h"

namespace armilla {

// Types with the plan's defaults filled in (lower/plan.h does so beforehand).
DType weight_type(const Plan& plan);
DType gradient_type(const Plan& plan);
DType parameter_type(const Plan& plan);
// Weights narrower than fp32 have an fp32 master copy in the optimizer's state (Micikevicius et al. 2018).
// States of a narrower type are of an optimizer that works on the weights as they are.
bool has_masters(const Plan& plan);

}  // namespace armilla
