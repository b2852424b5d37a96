// A run under ASTRA-sim's rules.
#pragma once

#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "ir/result.h"
#include "sim/simulate.h"

namespace armilla {

// The graph must have as many ranks as the system. Throws Error as `simulate` does.
Result astra_result(const Graph& graph, const SystemLayer& system, const SimulationOptions& options);

}  // namespace armilla
