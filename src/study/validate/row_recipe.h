// What the recipes that a row was measured with turn on, where its table does not print it.
//
// Megatron-Bridge publishes its tables by release ("26.06 NeMo Container") together with the recipes that
// made them (scripts/performance/configs and recipes of its tags v0.1.0 to v0.6.0). The rules are on
// docs/validation.md; models and devices are told by the row's own words.
#pragma once

#include "ir/measurement.h"
#include "ir/plan.h"

namespace armilla {

// Puts the recipe's options into the plan; nothing where no recipe is known.
void follow_recipe(const MeasuredPlan& row, PlanRequest& request);

// Whether the row or its recipe says what is computed again.
bool knows_recompute(const MeasuredPlan& row);

}  // namespace armilla
