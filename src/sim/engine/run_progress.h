// How much of a run is done, for who waits (base/progress.h). Nodes and the messages of their collectives
// count alike: both take about the same time to play. Messages count as they arrive, or with the node where
// they are not played (sim/memo/collective_evaluator.h); what was foreseen of a collective is all counted by
// its end. Cost: O(1) per node and message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "ir/graph.h"

namespace armilla {

class RunProgress {
 public:
  // `messages`: of one member per call; `total` of them and the nodes, over all simulated ranks.
  RunProgress(Progress& progress, std::vector<double> messages, double total)
      : progress_(progress), messages_(std::move(messages)), total_(std::max(total, 1.0)) {}

  void message() { tell(by_messages_ += 1); }
  void node(NodeKind kind, std::uint64_t payload) {
    by_messages_ += 1;
    by_nodes_ += 1 + (kind == NodeKind::collective ? messages_[payload] : 0);
    tell(std::max(by_nodes_, by_messages_));
  }

 private:
  void tell(double done) {
    if (done < next_) return;
    next_ = done + total_ / 1000;
    progress_.update(done / total_);
  }

  Progress& progress_;
  std::vector<double> messages_;
  double total_;
  double by_nodes_ = 0, by_messages_ = 0, next_ = 0;
};

}  // namespace armilla
