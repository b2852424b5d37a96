// Where the times of a job's kernels come from (ComputeShares in ir/study.h).
#pragma once

#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/study.h"

namespace armilla {

// All ranks as if they had the machine's usual device, whose `cost` is. Cost: O(nodes).
ComputeShares compute_shares(const Graph& graph, const CostModel& cost);

}  // namespace armilla
