// What a run will take, and a budget for it, because nothing else tells a user beforehand that n ranks take
// n^2 messages. Throws Error for more messages than SimulationOptions allows.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "sim/collective_plan.h"
#include "sim/fold/rank_classes.h"
#include "sim/simulate.h"

namespace armilla {

struct Effort {
  std::vector<double> messages;        // of one member, by call
  double all_messages = 0, nodes = 0;  // of all simulated ranks
};

// Of the ranks of `classes`. O(nodes + simulated ranks x calls).
Effort refuse_endless_runs(const Graph& graph, CollectivePlanner& planner, const RankClasses& classes,
                           const SimulationOptions& options);

// Under ASTRA-sim's rules, when only the first `ranks` are played; also a budget for memory: all chunks of a
// collective exist at once there.
Effort refuse_endless_astra_runs(const Graph& graph, const SystemLayer& system, std::int64_t ranks,
                                 const SimulationOptions& options);

}  // namespace armilla
