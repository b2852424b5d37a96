// Walks every simulated rank through its program: issues nodes whose dependences are done, one computation at
// a time per rank (the ready one with the smallest id first), collectives at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "event/event_queue.h"
#include "ir/graph.h"
#include "sim/collective_runner.h"
#include "sim/recorder.h"

namespace armilla {

class RankWalker final : public EventHandler, public CollectiveClient {
 public:
  RankWalker(const Graph& graph, const CostModel& cost, const RankClasses& classes, EventQueue& queue,
             Recorder& recorder);
  RankWalker(const RankWalker&) = delete;
  RankWalker& operator=(const RankWalker&) = delete;

  // Issues every node without dependences. Collectives go to `runner`.
  void start(CollectiveRunner& runner);

  bool is_finished() const;
  // Throws Error saying who waits for whom unless every rank is through.
  void require_finished() const;

  void handle(std::uint64_t argument) override;  // a computation is done
  void collective_started(std::int32_t rank, std::uint32_t node) override;
  void collective_finished(std::int32_t rank, std::uint32_t node) override;
  void chunk_finished(std::int32_t rank, std::uint32_t node, std::uint32_t chunk, std::uint32_t dimension,
                      Time start) override;

 private:
  struct Rank {
    std::vector<std::uint32_t> waiting_for;  // per node, dependences that are not done
    std::vector<std::uint32_t> ready;        // computations, a heap with the smallest id on top
    std::uint32_t nodes_left = 0;
    bool computing = false;
    Time compute_start;
  };
  // Who depends on a node: the program's dependences the other way round (CSR).
  struct Successors {
    std::vector<std::uint32_t> first, node;
  };

  const Program& program_of(std::int32_t rank) const {
    return graph_.programs[graph_.program_of[static_cast<std::size_t>(rank)]];
  }
  Time duration(const Program& program, std::uint32_t node) const;
  void issue(std::int32_t rank, std::uint32_t node);
  void finished(std::int32_t rank, std::uint32_t node);
  void start_computing(std::int32_t rank);
  std::string describe(std::int32_t rank, std::uint32_t node) const;
  std::uint32_t stuck_node(std::int32_t rank) const;

  const Graph& graph_;
  EventQueue& queue_;
  Recorder& recorder_;
  CollectiveRunner* runner_ = nullptr;
  std::uint32_t target_;
  std::vector<Time> work_times_;        // per Graph::works
  std::vector<Successors> successors_;  // per program
  std::vector<Rank> ranks_;
};

}  // namespace armilla
