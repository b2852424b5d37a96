// Which replica updates which tensors under Plan::zero_partition tensors: the longest first, each to the one
// that has fewest elements so far, as PyTorch's ZeroRedundancyOptimizer (_partition_parameters) and
// InternEvo's HybridZeroOptimizer (_partition_param_list) do. Where updated tensors are sent while the next
// forward pass goes on (Plan::overlap_parameters), they are dealt out in its order instead, to one replica up
// to its equal part, then to the next, so that what comes first is there first (InternEvo's
// ParamAsyncBcastHandler). O(tensors x log).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/plan.h"
#include "lower/data/weight_buckets.h"

namespace armilla {

struct TensorOwner {
  std::int64_t elements = 0;
  Bytes parameters;                  // as gathered
  std::vector<std::size_t> buckets;  // that it has tensors of, ascending
};

// Of `replicas`, those that have any tensor, in the order of their ranks. `axis`: data or expert_data.
std::vector<TensorOwner> tensor_owners(const std::vector<WeightBucket>& buckets, GroupAxis axis,
                                       std::int64_t replicas, const Plan& plan);

// Elements of the replica that has most.
std::int64_t most_owned(const std::vector<TensorOwner>& owners);

}  // namespace armilla
