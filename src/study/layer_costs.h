// Costs of a model's layers one by one, without a plan: what `armilla layers --compute` shows and what text
// workloads are made from.
#pragma once

#include "cost/cost.h"
#include "ir/derived/layer_table.h"
#include "ir/model.h"

namespace armilla {

// The layer table of `model` with the time (and cycles, where the model counts them) of each layer's forward
// pass, input gradient and weight gradient: the sums over its operators.
LayerTable costed_layers(const Model& model, const CostModel& cost, const std::string& compute);

}  // namespace armilla
