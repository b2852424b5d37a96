// What a run will take, and a budget for it, because nothing else tells a user beforehand that n ranks take
// n^2 messages. Throws Error for more than `most_messages`. And how much of it is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "ir/graph.h"
#include "ir/issued.h"
#include "sim/collective_plan.h"
#include "sim/link_loads.h"
#include "sim/plan/rank_classes.h"

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

// How much of a run is done, for who waits (base/progress.h). Nodes and the messages of their collectives
// count alike: both take about the same time to play. Messages count as they are sent, or arrive where the
// network plays their way, or with the node where they are not played (sim/memo/memoised_collectives.h); what
// was foreseen of a collective is all counted by its end. O(1) per node and round.
class RunProgress {
 public:
  // Both must outlive it.
  RunProgress(Progress& progress, const Effort& effort)
      : progress_(progress),
        messages_(effort.messages),
        total_(std::max(effort.nodes + effort.all_messages, 1.0)) {
    progress.begin("simulating");
  }

  // So many in all.
  void messages_done(std::int64_t messages) { tell(static_cast<double>(nodes_ + messages)); }
  void node_done(NodeKind kind, std::uint64_t payload) {
    ++nodes_;
    by_nodes_ += 1 + (kind == NodeKind::collective ? messages_[payload] : 0);
    tell(by_nodes_);
  }

 private:
  void tell(double done) {
    if (done < next_) return;
    next_ = done + total_ / 1000;
    progress_.update(done / total_);
  }

  Progress& progress_;
  const std::vector<double>& messages_;  // of one member, by call
  double total_;
  std::int64_t nodes_ = 0;
  double by_nodes_ = 0, next_ = 0;
};

}  // namespace armilla
