// What a run will take, and a budget for it, because nothing else tells a user beforehand that n ranks take
// n^2 messages. Throws Error for more than `most_messages`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "ir/issued.h"
#include "sim/collective_plan.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

struct Effort {
  std::vector<double> messages;                       // of one member, by call
  double all_messages = 0, all_bytes = 0, nodes = 0;  // of all simulated ranks
};

// Of the ranks of `classes`. O(simulated ranks x calls).
Effort effort_of(const Graph& graph, std::span<const Issued> issued, const RankClasses& classes,
                 CollectivePlanner& planner, double most_messages);

// Under ASTRA-sim's rules, when only the first `ranks` are played; also a budget for memory: all chunks of a
// collective exist at once there.
Effort effort_of(const Graph& graph, std::span<const Issued> issued, const SystemLayer& system,
                 std::int64_t ranks, double most_messages);

}  // namespace armilla
