// A lower bound on the time of an iteration, from the divided model alone: no graph, no simulation.
//
// Proof. The computations of a rank form one chain (lower/pipeline/pass_template.h), and its slots follow one another. So
// let F(s) and B(s) be the longest paths of stage s through its forward pass and through its recomputation and backward
// pass, where a computation lasts what the cost model says and a communication at least
//
//   beta = bytes that a rank itself sends / all bandwidth that it can send with
//
// (for groups of n: (n-1)/n of the whole for reduce-scatter, all-gather and all-to-all, twice that for an all-reduce by
// ring, direct or halving-doubling, once by other algorithms; 0 for whatever else). A slot begins after the
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
// Nothing is claimed (a bound of 0) where ranks differ: slow ranks, jitter, other devices, uneven experts, measured
// times; nor for a schedule that does not flush.
// Cost: O(blocks x steps of a block).
#pragma once

#include "base/units.h"
#include "cost/cost.h"
#include "ir/study.h"
#include "lower/hybrid.h"
#include "lower/sharded_model.h"

namespace armilla {

// The plan of `study` must be resolved; `model` is divided under it.
Time least_iteration(const Study& study, const ShardedModel& model, const StageCut& stages,
                     const PipelineOrder& order, const CostModel& cost);

}  // namespace armilla
