// Memory of one pipeline rank from its chunks and the order of its slots alone, without an execution graph;
// the equations are those of lower/memory.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/machine.h"
#include "ir/memory.h"
#include "ir/plan.h"
#include "lower/data/weight_buckets.h"
#include "lower/hybrid.h"
#include "lower/memory/activation_walk.h"

namespace armilla {

struct RoleParts {
  std::vector<RoleChunk> chunks;
  RoleWeights weights;
  std::vector<ChunkActivations> activations;  // per chunk
  std::int64_t buffers = 0;                   // bytes that are not trained
  // Of the blocks of a chunk whose forward pass has tensor parallelism sum whole tensors, or gather logits:
  // how many, and the bytes of these tensors; of the chunk with most.
  std::int64_t summing_blocks = 0, summed = 0;
  std::int64_t largest_output = 0;  // bytes of what a product makes, of logits as the loss reads them
  double layer_flops = 0;           // of both passes of the least of these blocks that computes products
  std::int64_t gathered = 0;        // bytes of the largest input of a product that tensor parallelism gathers
  bool copies_gradients = false;    // into the buckets
  bool has_experts = false;
  std::vector<Bytes> placeholders;  // of gradients, each size once (BlockShape::placeholders)
  std::int64_t kept_gradients = 0;  // bytes that are there from the start; passes make the others
  GradientsMade made = GradientsMade::once;
};

RoleParts role_parts(const ShardedModel& model, const StageCut& stages, const PipelineOrder& order,
                     std::size_t pipeline_rank, const Plan& plan);

// All but role, program and what is held over time.
RoleMemory role_memory(const RoleParts& parts, const std::vector<PipelineSlot>& slots, const Plan& plan,
                       const Device& device);

}  // namespace armilla
