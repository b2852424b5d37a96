// A native run: the parts that play a Graph on a Machine. They refer to each other, and nothing happens
// before `play`. What a run takes is said and limited beforehand (sim/plan/effort.h).
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
#include "sim/fold/rank_classes.h"
#include "sim/fold/time_fold.h"
#include "sim/fold/walked_periods.h"
#include "sim/memo/memoised_collectives.h"
#include "sim/plan/effort.h"
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
  KnownPlays& known_plays;
  bool folds_drift = true;  // also stages that drift apart (sim/fold/drift_fold.h)
};

class NativeRun final : MessageLabels, RoundObserver {
 public:
  // Throws Error for more messages than the options allow.
  explicit NativeRun(const NativePlay& play);
  NativeRun(const NativeRun&) = delete;
  NativeRun& operator=(const NativeRun&) = delete;

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
  Result result();

 private:
  void round_over() override;
  MessageLabel label(const Message& message) const override;
  Digest describe(std::uint32_t target, std::uint64_t argument) const override {
    return time_fold_.describe(target, argument);
  }

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
  MemoisedCollectives memoised_;
  RemoteMemories memories_;
  RunProgress progress_;
  RankWalker walker_;
  WalkedPeriods periods_;
  TimeFold time_fold_;
  Time round_time_;
  std::int64_t rounds_ = 0;  // of that moment
  bool was_stuck_ = false;
};

// What is played, `told` of it. Where stages that drift apart prove not to be foldable in time
// (sim/fold/drift_fold.h), it is played anew without that.
Result played(const NativePlay& play, Result (NativeRun::*told)());

}  // namespace armilla
