// Walks every simulated rank through its program: issues nodes whose dependences are done and whose lane is
// free, the smallest id first, and passes them on to who executes them.
//
// A lane holds one node at a time, except that natively any number of communications are under way, and the
// lane `none` always has room. ASTRA-sim 2 has one communication at a time per rank, too
// (HardwareResource.cc). Natively, ends of nodes are noted and what they make ready is issued in the rank's
// turn (sim/engine/order.h). Cost: O(log ready) per node and O(1) per dependence.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "event/event_queue.h"
#include "ir/graph.h"
#include "sim/engine/collective_executor.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/messenger.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/engine/run_progress.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

// Who executes what the walker issues, and who looks on.
struct Executors {
  CollectiveExecutor& collectives;
  Messenger& messages;
  RemoteMemories& memories;
  const ComputeTimes& times;
  Recorder& recorder;
  RunProgress& progress;
};

class RankWalker final : public EventHandler, public CollectiveClient {
 public:
  // `one_communication`: at a time per rank.
  RankWalker(const RunContext& context, const Executors& executors, bool one_communication);
  RankWalker(const RankWalker&) = delete;
  RankWalker& operator=(const RankWalker&) = delete;

  // Issues every node without dependences, rank by rank.
  void start();
  // Issues what has become ready.
  void take_turn(std::int32_t rank) { issue_ready(rank); }

  // Plays on until every rank is through; where nothing moves any more, `unstick` may set things going again
  // and say so. Throws Error saying who waits for whom, and when the simulated time passes 26 days.
  void finish(const std::function<bool()>& unstick);

  void handle(std::uint64_t argument) override;  // a node that is no collective is done
  void collective_started(std::int32_t rank, std::uint32_t node) override;
  void collective_finished(std::int32_t rank, std::uint32_t node) override;
  void chunk_finished(std::int32_t rank, const ChunkInterval& phase) override {
    executors_.recorder.chunk_finished(rank, phase);
  }

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::uint32_t kDone = UINT32_MAX;
  static constexpr std::uint64_t kIssued = std::uint64_t{1}
                                           << 63;  // of an event: the host has issued its node

  struct Rank {
    std::vector<std::uint32_t> waiting_for;  // per node, dependences that are not done, or kDone
    std::array<std::vector<std::uint32_t>, kLanes> ready;  // per lane, a heap with the smallest id on top
    std::array<bool, kLanes> busy = {};
    std::uint32_t nodes_left = 0;
    std::uint32_t program = 0;
    std::uint64_t collectives = 0;  // issued so far
  };
  // Who depends on a node: the program's dependences the other way round (CSR).
  struct Successors {
    std::vector<std::uint32_t> first, node;
    std::vector<std::uint32_t> issues;  // of the host up to the node; empty where it is ahead always
  };

  const Program& program_of(std::int32_t rank) const {
    return context_.graph.programs[ranks_[static_cast<std::size_t>(rank)].program];
  }
  bool is_exclusive(Lane lane) const;
  // Its dependences are done: it is ready once the host has issued it.
  void make_ready(std::int32_t rank, std::uint32_t node);
  void put_on_lane(Rank& rank, const Program& program, std::uint32_t node) const;
  void issue_ready(std::int32_t rank);
  void issue(std::int32_t rank, std::uint32_t node);
  void issue_transfer(std::int32_t rank, std::uint32_t node);
  void finish_after(std::int32_t rank, std::uint32_t node, Time duration);
  void finished(std::int32_t rank, std::uint32_t node);
  void act(std::int32_t rank);  // in its turn, where there are rounds
  bool is_finished() const;
  void require_finished() const;
  std::string describe(std::int32_t rank, std::uint32_t node) const;
  // What an unfinished rank is stuck in, and the rank it waits for, or -1.
  std::pair<std::uint32_t, std::int32_t> stuck(std::int32_t rank) const;

  RunContext context_;
  Executors executors_;
  bool one_communication_;
  Peers peers_;
  std::uint32_t target_;
  std::vector<Successors> successors_;  // per program
  std::vector<Rank> ranks_;
};

}  // namespace armilla
