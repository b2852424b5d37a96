// Fills in what a plan leaves open and refuses what cannot be, naming the numbers that clash and the nearest
// legal values.
//
//   precision       unknown: bf16 for models by description, fp32 for the others
//   weight_dtype    as precision; bf16 where that is fp8
//   gradient_dtype  fp32 for bf16 and fp8 models by description (Megatron accumulates in fp32), else as weights
//   optimizer       see PlanRequest
// Sources of the rules: Megatron-Core's argument checks (arguments.py) and the papers named in ir/plan.h.
#pragma once

#include <cstdint>
#include <string>

#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// `devices`: of the machine as given; `elastic`: it takes any number. `described`: the model is one by
// description. Throws Error.
Plan resolve_plan(const PlanRequest& request, std::int64_t devices, bool elastic, bool described);

// What the model itself forbids: degrees that do not divide heads, experts, sequence; stages without blocks.
void check_plan_for_model(const Plan& plan, const Model& model, const std::string& where);

}  // namespace armilla
