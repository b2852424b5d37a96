// Memory of one pipeline rank from its chunks and the order of its slots alone, without an execution graph;
// the equations are those of lower/hybrid_memory.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/machine.h"
#include "ir/memory.h"
#include "ir/plan.h"
#include "lower/hybrid.h"
#include "lower/weight_buckets.h"

namespace armilla {

// Of one micro-batch in a model chunk, in bytes.
struct ChunkActivations {
  std::int64_t saved = 0;
  // Where a pass needs most: saved by the blocks up to there, and the working set of the block it is at.
  std::int64_t saved_at_peak = 0, working_at_peak = 0;
  std::int64_t boundary = 0;  // what crosses its ends
};

struct RoleParts {
  std::vector<RoleChunk> chunks;
  RoleWeights weights;
  std::vector<ChunkActivations> activations;  // per chunk
  std::int64_t largest_weight = 0;            // elements
};

RoleParts role_parts(const ShardedModel& model, const StageCut& stages, const PipelineOrder& order,
                     std::size_t pipeline_rank, const Plan& plan);

// All but role, program and the changes over time.
RoleMemory role_memory(const RoleParts& parts, const std::vector<PipelineSlot>& slots, const Plan& plan,
                       const Device& device);

}  // namespace armilla
