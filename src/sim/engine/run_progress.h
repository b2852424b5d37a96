// How much of a run is done, for who waits (base/progress.h). Nodes and the messages of their collectives
// count alike: both take about the same time to play. Messages count as they are sent, or arrive where the
// network plays their way, or with the node where they are not played (sim/memo/memoised_collectives.h); what
// was foreseen of a collective is all counted by its end. Cost: O(1) per node and round.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "ir/graph.h"
#include "sim/plan/effort.h"

namespace armilla {

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
