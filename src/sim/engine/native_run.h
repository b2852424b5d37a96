// A native run: the parts that play a Graph on a Machine. They refer to each other, and nothing happens
// before `play`. What a run takes is said and limited beforehand (sim/plan/effort.h).
//
// By itself it plays every message of every node. Passes that leave some of it out stand in front of it, and
// it knows none of them: who derives from it composes them (sim/run/shortened_run.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/issued.h"
#include "ir/result.h"
#include "ir/study.h"
#include "sim/collective_plan.h"
#include "sim/engine/collective_runner.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/group_members.h"
#include "sim/engine/messenger.h"
#include "sim/engine/order.h"
#include "sim/engine/rank_walker.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/plan/effort.h"
#include "sim/plan/rank_classes.h"
#include "sim/simulate.h"

namespace armilla {

// What is played. `issued` by its programs; `costs` of every device number, for graphs that compute.
struct NativePlay {
  const Graph& graph;
  std::span<const Issued> issued;
  const Study& study;
  const Peers& peers;
  std::span<const CostModel* const> costs;
  const RankClasses& classes;
  CollectivePlanner& planner;
  const SimulationOptions& options;
  std::uint32_t shared_dimensions;  // of the run that this one may be a part of (sim/plan/senders.h)
};

class NativeRun : protected MessageLabels, protected RoundObserver, protected CollectiveExecutor {
 public:
  // Throws Error for more messages than the options allow.
  explicit NativeRun(const NativePlay& play);
  NativeRun(const NativeRun&) = delete;
  NativeRun& operator=(const NativeRun&) = delete;
  ~NativeRun() override = default;

  PlayTime foreseen_time() const { return network_->foreseen_time(); }
  // Once. Throws Error for ranks that cannot finish and for too long a time.
  void play();
  // Whether no chunk had to be started beyond the limit to go on, and what happened in the last moment
  // happened in one round.
  bool ran_smoothly() const { return !was_stuck_ && rounds_ == 1; }

  // Who is told of the ends of rounds, and when these are.
  void tell_of_rounds(RoundObserver& observer) { queue_.add_observer(observer); }
  Time now() const { return queue_.now(); }

  // What was recorded: ranks, classes and collectives.
  Result recorded();
  // All of it, with links and messages.
  virtual Result result();

 protected:
  // For passes in front, which may answer for collectives themselves, and have turns of their own.
  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence) override {
    runner_.issue(rank, node, call, sequence);
  }
  Time beyond(std::int32_t rank, std::uint32_t call) override { return runner_.beyond(rank, call); }
  std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const override {
    return runner_.missing_member(rank, node);
  }
  virtual void take_turn_of_pass(std::int32_t /*rank*/) {}
  // Every rank has issued what waits for nothing; and what was stuck goes on, in a round of its own.
  virtual void has_started() {}
  virtual void is_unstuck() {}

  void round_over() override;
  MessageLabel label(const Message& message) const override;

  Effort effort_;
  EventQueue queue_;
  Order order_;
  std::unique_ptr<Network> network_;
  std::vector<RunObserver*> observers_;
  RunContext context_;
  GroupTable groups_;
  Recorder recorder_;
  ComputeTimes times_;
  Messenger messenger_;
  CustomRunner custom_;
  CollectiveRunner runner_;
  RemoteMemories memories_;
  RunProgress progress_;
  RankWalker walker_;

 private:
  Time round_time_;
  std::int64_t rounds_ = 0;  // of that moment
  bool was_stuck_ = false;
};

}  // namespace armilla
