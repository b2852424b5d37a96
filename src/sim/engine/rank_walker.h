// Walks every simulated rank through its program: issues nodes whose dependences are done and whose lane is
// free, the smallest id first, and passes them on to who executes them.
//
// A lane holds one node at a time, except that natively any number of communications are under way, and the
// lane `none` always has room. ASTRA-sim 2 has one communication at a time per rank, too
// (HardwareResource.cc). Natively, ends of nodes are noted and what they make ready is issued in the rank's
// turn (sim/engine/rank_turns.h). Cost: O(log ready) per node and O(1) per dependence.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "event/event_queue.h"
#include "ir/graph.h"
#include "sim/engine/collective_executor.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/messenger.h"
#include "sim/engine/rank_agenda.h"
#include "sim/engine/rank_turns.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_progress.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

struct WalkerRules {
  bool one_communication = false;  // at a time per rank
  RankAgenda* agenda = nullptr;    // where the ends of computations go; null: straight to the queue
  RankTurns* turns = nullptr;      // null: what is ready is issued at once
  RunProgress* progress = nullptr;
};

class RankWalker final : public EventHandler, public CollectiveClient {
 public:
  // `times` may be null for graphs without NodeKind::compute.
  RankWalker(const Graph& graph, const ComputeTimes* times, const RankClasses& classes,
             const WalkerRules& rules, EventQueue& queue, Recorder& recorder);
  RankWalker(const RankWalker&) = delete;
  RankWalker& operator=(const RankWalker&) = delete;

  // Who executes what the walker does not; set before `start`. `memories` may be null.
  void use(CollectiveExecutor& collectives, Messenger& messages, RemoteMemories* memories);

  // Issues every node without dependences, rank by rank.
  void start();
  // Issues what has become ready.
  void take_turn(std::int32_t rank) { issue_ready(rank); }

  bool is_finished() const;
  // Throws Error saying who waits for whom unless every rank is through.
  void require_finished() const;

  void handle(std::uint64_t argument) override;  // a node that is no collective is done
  void collective_started(std::int32_t rank, std::uint32_t node) override;
  void collective_finished(std::int32_t rank, std::uint32_t node) override;
  void chunk_finished(std::int32_t rank, std::uint32_t node, const ChunkPhase& phase) override;

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::uint32_t kDone = UINT32_MAX;

  struct Rank {
    std::vector<std::uint32_t> waiting_for;  // per node, dependences that are not done, or kDone
    std::array<std::vector<std::uint32_t>, kLanes> ready;  // per lane, a heap with the smallest id on top
    std::array<bool, kLanes> busy = {};
    std::uint32_t nodes_left = 0;
    std::uint32_t program = 0;
  };
  // Who depends on a node: the program's dependences the other way round (CSR).
  struct Successors {
    std::vector<std::uint32_t> first, node;
  };

  const Program& program_of(std::int32_t rank) const {
    return graph_.programs[ranks_[static_cast<std::size_t>(rank)].program];
  }
  bool is_exclusive(Lane lane) const;
  void make_ready(Rank& rank, const Program& program, std::uint32_t node) const;
  void issue_ready(std::int32_t rank);
  void issue(std::int32_t rank, std::uint32_t node);
  void issue_transfer(std::int32_t rank, std::uint32_t node);
  void finish_after(std::int32_t rank, std::uint32_t node, Time duration);
  void finished(std::int32_t rank, std::uint32_t node);
  std::string describe(std::int32_t rank, std::uint32_t node) const;
  // What an unfinished rank is stuck in, and the rank it waits for, or -1.
  std::pair<std::uint32_t, std::int32_t> stuck(std::int32_t rank) const;

  const Graph& graph_;
  const ComputeTimes* times_;
  const RankClasses& classes_;
  Peers peers_;
  WalkerRules rules_;
  EventQueue& queue_;
  Recorder& recorder_;
  CollectiveExecutor* collectives_ = nullptr;
  Messenger* messages_ = nullptr;
  RemoteMemories* memories_ = nullptr;
  std::uint32_t target_;
  std::vector<Successors> successors_;  // per program
  std::vector<Rank> ranks_;
};

}  // namespace armilla
