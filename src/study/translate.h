// Model -> ASTRA-sim text workload with compute times from a cost model.
#pragma once

#include "cost/cost.h"
#include "ir/formats/text_workload.h"
#include "ir/model.h"
#include "trace/text.h"

namespace armilla {

// Cycles are those of a cost model that counts them, else nanoseconds (ASTRA-sim's clock is 1 GHz). `model`
// is for the global batch. Throws Error for options that clash.
TextWorkload translate(const Model& model, const TextWorkloadOptions& options, const CostModel& cost);

}  // namespace armilla
