// The weights of one role in the packets in which their gradients are exchanged and their optimizer runs.
//
// Every model chunk has its own buckets, dense and expert weights apart (as Megatron's
// DistributedDataParallel). The weights of a block enter whole, in the order the backward pass completes
// them; a bucket closes once it has reached its size (Plan::first_bucket for the first, Plan::bucket). Under
// ZeRO-3 every block is a unit of its own (FSDP). Blocks of a rank that share a tied weight have it once: it
// is complete with the block that comes first in the model. Of a weight with sparse gradients what is updated
// is exchanged, as dense gradients of that size are. Gradients are counted in the plan's gradient type,
// gathered weights in its parameter type. O(blocks log blocks).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "ir/plan.h"
#include "lower/hybrid.h"
#include "lower/sharded_model.h"

namespace armilla {

// A model chunk of a rank.
struct RoleChunk {
  std::int32_t chain = 0, stage = 0;
  std::int64_t first_block = 0;       // into ShardedModel::blocks
  std::vector<std::uint32_t> shapes;  // per block of the chunk
  std::vector<std::int32_t> layers;   // likewise, into Graph::layers
};

RoleChunk role_chunk(const ShardedModel& model, const Plan& plan, const StageCut& stages,
                     const PipelineChunk& held);

// A block of a chunk, both counted on this rank.
struct BlockPlace {
  std::int32_t chunk = 0, block = 0;
  friend bool operator==(const BlockPlace&, const BlockPlace&) = default;
};

// Of tensors of a bucket that are alike; as gathered.
struct BucketTensors {
  std::int64_t elements = 0, count = 1;
  Bytes parameters;  // of each
};

struct WeightBucket {
  GroupAxis axis = GroupAxis::data;  // data or expert_data
  std::int32_t chunk = 0;
  std::int64_t elements = 0;
  std::int64_t updated = 0;            // of these, in an iteration: all unless gradients are sparse
  Bytes gradients;                     // of what is updated, before any sharding
  Bytes parameters;                    // as gathered
  Bytes weights;                       // as kept to compute with
  std::vector<BlockPlace> blocks;      // of its chunk, in order of completion
  std::vector<BlockPlace> others;      // blocks of other chunks that use one of its weights, too
  std::vector<BucketTensors> tensors;  // where replicas update whole ones, in the order of `blocks`

  Bytes updated_weights() const {
    if (updated == elements) return weights;
    const double share = static_cast<double>(updated) / static_cast<double>(elements);
    return Bytes(static_cast<std::int64_t>(static_cast<double>(weights.value) * share));
  }
};

// A weight with copies on several pipeline ranks.
struct TiedWeight {
  std::int64_t tied = 0;  // its number
  std::int64_t elements = 0;
  std::vector<std::int64_t> holders;  // pipeline ranks, ascending
};

struct RoleWeights {
  std::vector<WeightBucket> buckets;
  std::vector<TiedWeight> tied;  // those that this rank holds and others do, too; by number
  std::int64_t partial = 0;      // elements whose gradients are summed over `tensor`
};

// `chunk_order`: the chunks of the rank in the order in which their backward passes end. `holders`: per tied
// number, the pipeline ranks that hold it.
RoleWeights role_weights(const ShardedModel& model, const std::vector<RoleChunk>& chunks,
                         const std::vector<std::int32_t>& chunk_order,
                         const std::vector<std::vector<std::int64_t>>& holders, const Plan& plan);

}  // namespace armilla
