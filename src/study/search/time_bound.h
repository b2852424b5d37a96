// A lower bound on the time of an iteration, from the divided model alone: no graph, no simulation.
//
// Proof. The computations of a rank form one chain (lower/pipeline/pass_template.h), and its slots follow one
// another. So let F(s) and B(s) be the longest paths of stage s through its forward pass and through its recomputation and backward
// pass, where a computation lasts what the cost model says and a communication at least
//
//   beta = bytes that a rank itself sends / all bandwidth that it can send with
//
// (for groups of n: (n-1)/n of the whole for reduce-scatter, all-gather and all-to-all, twice that for an all-reduce by
// rings, direct or halving-doubling, once by other algorithms and where switches may reduce; 0 for whatever else). A slot begins after the
// slot before it has computed, so no path through it is shorter in a run. A rank with stages S computes
// m(s) micro-batches of each (all m, or those of its chain), and its first computation follows a forward pass
// through all stages before the first of S; after its last backward pass, gradients go through all stages before that
// one. Hence
//
//   T >= min over S of sum_{t<s} F(t)  +  sum over S of m(s) (F(s) + B(s))  +  min over S of sum_{t<s} B(t)
//
// for every rank. Where weight gradients have slots of their own (W), they may run beside the last term:
// T >= first + sum m (F + B + W), and T >= first + sum m (F + B) + last, B being the input gradient alone. Where a
// forward pass runs beside a backward pass (DualPipe), paths are replaced by sums of computations, which share a
// device. The exchange of gradients between replicas and the optimizer come on top and are left out.
// Where the host is eager (Program::issue_time), no rank begins the last of its N computations before N issue times.
// Nothing is claimed (a bound of 0) where ranks differ: slow ranks, jitter, other devices, uneven experts, measured
// times; nor for a schedule that does not flush.
// Cost: O(blocks x steps of a block) per different stage of a divided model, then O(stages) per plan.
#pragma once

#include <map>
#include <vector>

#include "base/units.h"
#include "cost/cost.h"
#include "ir/study.h"
#include "lower/hybrid.h"
#include "lower/sharded_model.h"

namespace armilla {

// F, B and W of stages, by the shapes of their blocks; one for all plans that divide the model alike, on one
// machine, under schedules that treat weight gradients and overlap alike.
class StagePaths {
 public:
  struct Times {
    Time forward, backward, weights;  // `backward` without `weights` where these have slots of their own
    std::int64_t computations = 0;    // of all of them
  };

  // The plan of `study` must be resolved; `model`, divided under it, must outlive this.
  StagePaths(const Study& study, const ShardedModel& model, const CostModel& cost);
  const Times& of(const std::vector<std::uint32_t>& shapes);
  const ShardedModel& model() const { return model_; }

 private:
  Time path(const std::vector<const Pass*>& passes, bool with_weight_gradients);
  std::int64_t members(GroupAxis axis) const;
  Time least(const PassStep& step) const;

  const ShardedModel& model_;
  Plan plan_;
  double rate_;  // bytes per second that a rank can send; 0: no bound
  bool two_halves_, sums_only_, weights_apart_;
  std::vector<Time> work_times_;  // per work
  std::map<std::vector<std::uint32_t>, Times> known_;
  std::vector<Time> ends_;  // of the pass at hand
  std::vector<bool> waited_for_;
};

// `paths` must be those of the plan.
Time least_iteration(const Study& study, StagePaths& paths, const StageCut& stages,
                     const PipelineOrder& order);

}  // namespace armilla
