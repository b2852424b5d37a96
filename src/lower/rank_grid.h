// Which rank stands where: coordinates on the axes of a plan, and the groups of every axis.
//
// Axes vary fastest first in the order Plan::order; the expert layout replaces (tensor, context, data) by
// (expert tensor, expert, expert data) in the same place (Megatron-Core, parallel_state.py: RankGenerator).
// Pipeline outside of them or inside is as Plan::order says; then both layouts keep it there.
// Cost: O(ranks) per axis.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "lower/sharded_model.h"

namespace armilla {

struct RankCoordinates {
  std::int64_t tensor = 0, context = 0, data = 0, pipeline = 0;
  std::int64_t expert_tensor = 0, expert = 0, expert_data = 0;
};
RankCoordinates coordinates_of(const Plan& plan, std::int64_t rank);

// The groups of an axis, each in order of position. `embedding` takes pairs or sets of pipeline ranks:
// `pipeline_ranks` (ascending); other axes ignore it.
GroupFamily axis_family(const Plan& plan, GroupAxis axis,
                        const std::vector<std::int64_t>& pipeline_ranks = {});

}  // namespace armilla
