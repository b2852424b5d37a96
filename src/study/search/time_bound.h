// A lower bound on the time of an iteration, from the divided model alone: no graph, no simulation.
//
// Proof. The computations of a rank form one chain (lower/pipeline/pass_template.h), and its slots follow one
// another. So let F(s) and B(s) be the longest paths of stage s through its forward pass and through its
// recomputation and backward pass, where a computation lasts what the cost model says and a communication
// what it takes at least (study/search/least_communication.h). A slot begins after the
// slot before it has computed, so no path through it is shorter in a run. A rank with stages S computes m(s)
// micro-batches of each (all m, or those of its chain), and its first computation follows a forward pass
// through all stages before the first of S; after its last backward pass, gradients go through all stages
// before that one. Between stages on different ranks, what the next one waits for takes a message: let F(t)
// and B(t) below have that of the boundary behind t. Hence
//
//   T >= min over S of sum_{t<s} F(t)  +  sum over S of m(s) (F(s) + B(s))  +  min over S of sum_{t<s} B(t)
//
// for every rank. Where weight gradients have slots of their own (W), they may run beside the last term: T >=
// first + sum m (F + B + W), and T >= first + sum m (F + B) + last, B being the input gradient alone. Where a
// forward pass runs beside a backward pass (DualPipe), paths are replaced by sums of computations, which
// share a device.
//
// After all this comes what lies between steps (Plan::step_overhead), on every rank.
//
// Slot by slot (`least_iteration_of_slots`), which is tighter and takes longer: slots of one rank follow one
// another, and one begins when the message has come from the slot that it continues. With F, B, W and
// messages as above in place of what they take, every slot ends no later than in a run, by induction over the
// slots in the order in which they can be done. Besides:
//
//   - where ZeRO gathers parameters at the beginning, no chunk's first forward pass ends before the links
//     could have carried the chunk's own;
//   - of a chunk, gradients are exchanged between replicas from the begin of its last backward pass on, or,
//     without overlap, from the end of the rank's slots on, and with them those of all chunks that end later:
//     the iteration lasts from there as long as the links need for these exchanges, or the link to the host
//     for them if the optimizer is there; and after that as long as that link needs for the weights, and
//     those of the network for parameters that ZeRO gathers at the end. (Of ZeRO 0 and 1, where backward
//     passes are whole. Tied weights and the time of an optimizer on the device are left out.)
//   - activations that go to the host and back take turns on the link to it, all of them after the
//     rank has begun.
//
// From the end of a slot on (`least_ahead`): backwards through the same, from the end of the iteration.
// What follows the end of a slot's computations is the next slot of the rank, and, when the message has come,
// the slot that continues it; and of each chunk what is said above of its gradients, from the begin of its
// last backward pass on. So once these computations have ended, the iteration lasts for as long as the
// longest path from there takes at least.
//
// Until the first of these last backward passes can begin at the earliest (`least_ahead`), a run under ZeRO 0
// or 1 goes the same way whatever is done with gradients later: whether exchanges overlap, and whether the
// optimizer is on the host (lower/data/data_pass.h adds nothing for it before). So what was seen of one plan
// up to then holds for the others.
//
// Where the host issues operators (Program::issue_time), no rank begins the last of its N computations before
// N issue times. Nothing is claimed (a bound of 0) where ranks differ: slow ranks, jitter, other devices,
// uneven experts, measured times; nor for a schedule that does not flush.
// Cost: O(blocks x steps of a block) per different stage of a divided model, then O(stages) per plan, and
// O(slots) slot by slot.
#pragma once

#include <map>
#include <vector>

#include "base/units.h"
#include "cost/cost.h"
#include "ir/study.h"
#include "lower/hybrid.h"
#include "lower/sharded_model.h"
#include "study/search/least_communication.h"

namespace armilla {

// F, B and W of stages, by the shapes of their blocks; one for all plans that divide the model alike and
// place their groups alike, on one machine, under one schedule, whatever they exchange once an iteration.
class StagePaths {
 public:
  struct Times {
    Time forward, backward, weights;  // `backward` without `weights` where these have slots of their own
    std::int64_t computations = 0;    // of all of them
    Time computing;                   // what these take
  };

  // `plan` must be resolved; `model`, divided under it, and `communication` must outlive this.
  // Collectives take what is known of them as `known` says: at least, for a bound.
  StagePaths(const Plan& plan, const ShardedModel& model, const CostModel& cost,
             LeastCommunication& communication, LeastCommunication::Known known);
  const Times& of(const std::vector<std::uint32_t>& shapes);
  const ShardedModel& model() const { return model_; }
  Time of_message(Bytes bytes) { return communication_.of_message(place_, bytes); }
  Time on_links(GroupAxis axis, CollectiveKind kind, Bytes bytes) {
    return communication_.on_links(place_, axis, kind, bytes);
  }

 private:
  Time path(const std::vector<const Pass*>& passes, bool with_weight_gradients);

  const ShardedModel& model_;
  LeastCommunication& communication_;
  LeastCommunication::Known known_of_calls_;
  LeastCommunication::Place& place_;
  bool sums_only_, weights_apart_;
  std::vector<Time> work_times_;  // per work
  std::map<std::vector<std::uint32_t>, Times> known_;
  std::vector<Time> ends_;  // of the pass at hand
  std::vector<bool> waited_for_;
};

// What replicas and the host exchange of stages; one for all plans that share `paths` and treat weights and
// activations alike.
class StageExchanges {
 public:
  struct Sizes {
    Time gather;           // of its parameters, at the beginning
    Bytes dense, experts;  // gradients that replicas exchange
    Bytes parameters;      // dense ones, that they gather
    Time copies;           // of activations to the host, or back
    Time down, up;         // of gradients to an optimizer on the host, of weights back
  };

  // Of the device's link to its CPU; 0 is unknown and taken as kHostBandwidth.
  StageExchanges(const Plan& plan, StagePaths& paths, Bandwidth host_bandwidth);
  const Sizes& of(const std::vector<std::uint32_t>& shapes);
  StagePaths& paths() { return paths_; }

 private:
  void add_weights(const std::vector<std::uint32_t>& shapes, Sizes& sizes);

  Plan plan_;
  StagePaths& paths_;
  Bandwidth host_bandwidth_;
  std::map<std::vector<std::uint32_t>, Sizes> known_;
};

// `setting`: all of the study but the plan. `paths` must be those of the plan; `order` may be that of fewer
// micro-batches.
Time least_iteration(const Study& setting, const Plan& plan, StagePaths& paths, const StageCut& stages,
                     const PipelineOrder& order);
// What all ranks together compute at least, in picoseconds (beyond 64 bits): every chunk its passes, and no
// optimizer. `order` as above; 0 where nothing is claimed.
double least_computing(const Study& setting, const Plan& plan, StagePaths& paths, const StageCut& stages,
                       const PipelineOrder& order);
// Of the order of all micro-batches. 0 where passes overlap, and where nothing is claimed.
Time least_iteration_of_slots(const Study& setting, const Plan& plan, StageExchanges& exchanges,
                              const StageCut& stages, const PipelineOrder& order);
struct LeastAhead {
  // By pipeline rank and slot, how much longer than the computations of the slot the iteration
  // lasts at least.
  std::vector<std::vector<Time>> after_slots;
  Time first_exchange;  // no gradient is exchanged before; 0: nothing is claimed
};
// Of the order of all micro-batches; nothing where passes overlap, and where nothing is claimed.
LeastAhead least_ahead(const Study& setting, const Plan& plan, StageExchanges& exchanges,
                       const StageCut& stages, const PipelineOrder& order);

}  // namespace armilla
