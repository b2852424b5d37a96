// The plan's precision against what the devices compute in: a type that a device has no rate for is refused
// with the nearest types that it has, never simulated at another type's rate. What is only stored (weights,
// gradients, gathered parameters) can have any type.
#pragma once

#include "cost/cost.h"
#include "ir/study.h"

namespace armilla {

// Throws Error where there is no rate. `device` is what the message calls it.
void require_precision(const CostModel& cost, DType dtype, const std::string& device,
                       const std::string& where);

// Every type that matrix products of the resolved plan are in, on every device of its ranks. fp8 and fp4
// plans compute attention, embeddings and heads in bf16. `cost` is that of the machine's usual device.
void check_precision(const Study& study, const CostModel& cost);

// Every type that matrix products of a model as read are in: where no plan gives another one.
void check_precision(const Model& model, const CostModel& cost, const std::string& device,
                     const std::string& where);

// Where the user leaves the precision of a described model open and some device has no bf16: the nearest type
// that all of them have (fp16, else fp32).
void settle_default_precision(Study& study);
// What there is to say of that.
std::vector<std::string> precision_notes(const Study& study, const CostModel& cost);

}  // namespace armilla
