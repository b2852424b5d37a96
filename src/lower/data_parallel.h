// Lowering for data parallelism as PyTorch's DistributedDataParallel does it (Li et al. 2020, "PyTorch
// Distributed", section 3): Model x Plan -> Graph. Every rank runs the same program.
//
//   for each micro-batch: forward operators in order, then backward in reverse order: for each operator its
//   weight gradient, then its input gradient. Gradients of a parameter used several times are complete at its
//   first use in forward order. On the last micro-batch the gradients are packed into buckets in the order
//   they become complete; a bucket closes once it has reached its size (the first one Plan::first_bucket, the
//   others Plan::bucket), and its all-reduce starts as soon as all its gradients exist (overlap) or after the
//   whole backward pass. The optimizer runs after the backward pass and all all-reduces, as
//   `optimizer.step()` does: one kernel per bucket.
//
// The model must be the one for the samples of a micro-batch of one rank. O(operators x micro-batches) nodes.
#pragma once

#include "ir/graph.h"
#include "ir/model.h"
#include "ir/plan.h"

namespace armilla {

// Throws Error when the model's batch is not the plan's batch / micro_batches, or when the graph would be
// absurdly large.
Graph lower_data_parallel(const Model& model, const Plan& plan);

// The buckets alone: parameters in order of completion. For the memory model and for reports.
struct GradientBucket {
  std::vector<std::uint32_t> parameters;  // into Model::parameters
  Bytes bytes;
};
std::vector<GradientBucket> gradient_buckets(const Model& model, const Plan& plan);

}  // namespace armilla
