// What is known of a plan before it is simulated, and its simulation. What plans have in common is made once:
// models by micro-batch, divided models by what divides them, orders of micro-batches by schedule.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cost/cost.h"
#include "ir/play_time.h"
#include "ir/search.h"
#include "ir/study.h"
#include "lower/fused_slots.h"
#include "lower/hybrid.h"
#include "lower/sharded_model.h"
#include "sim/run_memory.h"
#include "sim/simulate.h"
#include "study/search/least_communication.h"
#include "study/search/time_bound.h"

namespace armilla {

// A legal plan, resolved.
struct PlanPrepared {
  // All else of its study, prepared: the machine cut to the ranks. The same for all plans of so many ranks.
  std::shared_ptr<const Study> setting;
  Plan plan;
  std::shared_ptr<const Model> model;
  // Nothing where experts are loaded unevenly, or devices differ.
  std::shared_ptr<const ShardedModel> sharded;

  Study study() const;  // with the plan; its request says what all have in common
};

class PlanEvaluator {
 public:
  explicit PlanEvaluator(const Study& base);
  ~PlanEvaluator();
  PlanEvaluator(const PlanEvaluator&) = delete;
  PlanEvaluator& operator=(const PlanEvaluator&) = delete;

  // All may be called from any thread. Throws Error for a plan that is not legal.
  PlanPrepared prepare(const PlanRequest& request);
  Time bound(const PlanPrepared& plan);  // on the iteration
  // What the iteration takes if collectives take as long as they do about, alone; no bound.
  Time about(const PlanPrepared& plan);
  Time slot_bound(const PlanPrepared& plan);      // a tighter one, which takes longer
  LeastAhead ahead_of(const PlanPrepared& plan);  // of its slots
  // What all ranks compute at least, in picoseconds, as a whole number.
  double computing_bound(const PlanPrepared& plan);
  MemoryUse memory(const PlanPrepared& plan);       // of the rank that needs most, as a run reports it
  double hardware_flops(const PlanPrepared& plan);  // of an iteration (ir/derived/metrics.h)
  // What is known of ranks: their times, not what they did when. Throws Error for what only the simulation
  // refuses.
  Result play(const PlanPrepared& plan);
  // Iteration and how it divides, of that.
  PlanOutcome simulate(const PlanPrepared& plan);
  // Nothing as soon as it is known that the iteration lasts longer.
  std::optional<PlanOutcome> simulate_within(const PlanPrepared& plan, Time longest);
  // How long that takes the processor (sim/simulate.h).
  PlayTime foreseen_time(const PlanPrepared& plan) const;

 private:
  friend class PlansEitherWay;  // tests: evaluate_testing.h
  std::shared_ptr<const Study> setting_of(const Plan& plan);
  std::shared_ptr<const Model> model_of(const Plan& plan);
  std::shared_ptr<const ShardedModel> sharded_of(const Plan& plan, const Model& model);
  std::shared_ptr<const PipelineOrder> order_of(const Plan& plan);
  // Which rank has which stages does not depend on the number of micro-batches; twice the ranks suit
  // every schedule.
  std::shared_ptr<const PipelineOrder> short_order_of(Plan plan) {
    const std::int64_t size = plan.micro_batch();
    plan.micro_batches = std::min(plan.micro_batches, 2 * plan.pipeline);
    plan.batch = plan.micro_batches * size;
    return order_of(plan);
  }
  // Both under the lock.
  using Known = LeastCommunication::Known;
  StagePaths& paths_of(const PlanPrepared& plan, Known known = Known::at_least);
  Time least_of(const PlanPrepared& plan, Known known);
  StageExchanges& exchanges_of(const PlanPrepared& plan);
  // Of a block in a slot.
  struct MeasuredBlock {
    std::optional<SlotTime> time;    // nothing where it is not the same whenever it is done
    std::set<std::string> families;  // of its collectives, by name
  };
  // Where a run has been: by pipeline rank the latest slot that was seen to end, and when.
  struct SlotEnd {
    std::size_t slot = 0;
    Time end{-1};
  };
  using Beginning = std::vector<SlotEnd>;
  struct WatchedSlots;
  // Says of a job that is to be played which of its ends to watch; throws RunIsLate then.
  using Watch = std::function<std::span<std::vector<WatchedEnd>>(const FusedJob&)>;
  // The two ways to an iteration: with slots of the pipeline as one node each (lower/fused_slots.h), nothing
  // where these are not known to be the same whenever they are done; and node by node.
  std::optional<Result> play_slots(const PlanPrepared& plan, const Watch& watch);
  Result play_nodes(const PlanPrepared& plan);
  static PlanOutcome outcome_of(const PlanPrepared& plan, const Result& result);
  // What plans have in common that run alike up to LeastAhead::first_exchange.
  using BeginningKey = std::tuple<const StagePaths*, Time, std::string>;
  BeginningKey beginning_key(const PlanPrepared& plan);
  std::optional<PlanOutcome> play_nodes_within(const PlanPrepared& plan, Time longest,
                                               const BeginningKey& key, const LeastAhead& ahead);
  bool is_known_to_be_late(const BeginningKey& key, const LeastAhead& ahead, Time longest);
  void note_beginning(const BeginningKey& key, Beginning beginning);
  // What the runs of a setting know of each other, while one of them goes on.
  class LentMemory;
  const MeasuredBlock& measured(const PlanPrepared& plan, std::uint32_t shape, PipelineAction action);
  // Adds the families of its collectives.
  std::optional<SlotTime> time_of_slot(const PlanPrepared& plan, const SlotKind& kind,
                                       std::set<std::string>& families);

  Study base_;      // all of it prepared but plan and machine
  bool described_;  // its model
  std::unique_ptr<CostModel> own_cost_;
  const CostModel& cost_;
  std::mutex mutex_;  // of the tables below
  // By ranks, and where the machine is shaped by it by the innermost block.
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const Study>> settings_;
  // That nobody uses, by setting, which they hold: as many as threads have played plans of it at once.
  struct KeptMemory {
    std::shared_ptr<const Study> setting;
    std::unique_ptr<RunMemory> memory;
  };
  std::map<const Study*, std::vector<KeptMemory>> memories_;
  std::map<std::int64_t, std::shared_ptr<const Model>> models_;  // by micro-batch
  std::map<std::int64_t, Error> refused_models_;                 // likewise: why they cannot be computed with
  std::map<std::string, std::shared_ptr<const ShardedModel>> sharded_;
  std::map<const Study*, LeastCommunication> communication_;  // by setting
  // By what places its groups, and by schedule; and by what decides on the exchange.
  std::map<std::tuple<const ShardedModel*, std::string, std::string, Known>, StagePaths> paths_;
  std::map<std::tuple<StagePaths*, int, std::int64_t, bool, bool, bool>, StageExchanges> exchanges_;
  // By everything else that they depend on. Plans that differ in what is exchanged once an
  // iteration share them.
  std::map<std::tuple<StagePaths*, std::string, std::vector<std::int64_t>, std::int64_t, bool, Time, Time>,
           Time>
      bounds_;
  std::map<std::string, std::shared_ptr<const PipelineOrder>> orders_;
  std::int64_t kept_slots_ = 0;                   // of them
  std::map<BeginningKey, Beginning> beginnings_;  // of runs node by node that were watched
  // By divided model, what places its groups, what the host needs, shape and action.
  std::map<std::tuple<const ShardedModel*, std::string, Time, bool, std::uint32_t, PipelineAction>,
           MeasuredBlock>
      blocks_;
};

// Everything that tells plans apart, without what has no effect at degrees of 1: equal for plans
// that run alike. Of a prepared plan, blocks that are listed as the even cut has them are not told from it,
// nor recomputation of all blocks, or of none, from that of these names.
std::string text_of(const Plan& plan);
std::string text_of(const PlanPrepared& plan);

}  // namespace armilla
