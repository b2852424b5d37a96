// What a run will take, and a budget for it, because nothing else tells a user beforehand that n ranks take
// n^2 messages. Throws Error for more than `most_messages`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/issued.h"
#include "sim/collective_plan.h"
#include "sim/fold/rank_classes.h"
#include "sim/link_loads.h"

namespace armilla {

struct Effort {
  std::vector<double> messages;                       // of one member, by call
  double all_messages = 0, all_bytes = 0, nodes = 0;  // of all simulated ranks
};

// Of the ranks of `classes`. O(simulated ranks x calls).
Effort effort_of(const Graph& graph, std::span<const Issued> issued, const RankClasses& classes,
                 CollectivePlanner& planner, double most_messages);

// Of `ranks`, where a member of a call sends what `traffic_of(rank, call)` says. O(ranks x issued items).
using TrafficOf = std::function<MemberTraffic(std::int32_t rank, std::uint32_t call)>;
Effort effort_of(const Graph& graph, std::span<const Issued> issued, std::span<const std::int32_t> ranks,
                 double most_messages, const TrafficOf& traffic_of);

}  // namespace armilla
