// The plan of a measured row.
#pragma once

#include <string>

#include "ir/measurement.h"
#include "ir/plan.h"

namespace armilla {

// Throws Error for a precision or a way of sharding that no plan has. `layers`: of the model.
PlanRequest request_of(const MeasuredPlan& row, std::int64_t layers, const std::string& where);

}  // namespace armilla
