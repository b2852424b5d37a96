// Model x Plan -> what one rank computes and exchanges in each block for one micro-batch: the operators
// divided by tensor, sequence, context and expert parallelism, with the collectives these need.
//
// Tensor parallelism (Shoeybi et al. 2019): regions of column/heads/features/row operators are divided; where
// activations enter such a region all tensor ranks need them whole, where they leave it partial sums are
// reduced: all-reduce (forward at the exit, backward at the entry), or with sequence parallelism all-gather
// and reduce-scatter (Korthikanti et al. 2022, figure 5). Context parallelism divides every sequence; ring
// attention sends keys and values around, Ulysses exchanges heads for tokens. Experts: all-to-all at
// Exchange::dispatch and combine, experts divided by expert and expert-tensor parallelism. Backward passes
// mirror all of it. Sizes are exact where degrees divide shapes; else the largest part counts.
// Cost: O(operators) per expert position.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/string_table.h"
#include "ir/collective.h"
#include "ir/expert_routing.h"
#include "ir/graph.h"
#include "ir/model.h"
#include "ir/plan.h"
#include "ir/work.h"
#include "lower/shard_share.h"

namespace armilla {

// Groups of ranks by role; lower/rank_grid.h makes them.
enum class GroupAxis : std::uint8_t {
  tensor,
  context,
  data,      // all that hold the same dense weights: data x context
  pipeline,  // ordered by pipeline rank
  expert,
  expert_tensor,
  expert_data,  // all that hold the same expert weights
  embedding,    // pipeline ranks that hold copies of a tied embedding
  shard,        // ZeRO-3 hybrid sharding: within which weights are sharded
  replicate,    // and across which gradients are reduced
  mirror,       // DualPipe: the two ranks that hold the same stage
};
std::string_view name_of(GroupAxis axis);  // "tensor"

struct PassStep {
  NodeKind kind = NodeKind::compute;  // compute, collective, send or receive
  Phase phase = Phase::forward;       // weight_gradient steps may be moved by zero-bubble schedules
  std::uint32_t name = 0;             // into ShardedModel::names: "attention.qkv", without the block
  std::uint32_t work = 0;             // into ShardedModel::works
  CollectiveKind collective = CollectiveKind::all_reduce;
  GroupAxis axis = GroupAxis::tensor;
  Bytes bytes;               // of a collective as in ir/collective.h, or of a message
  std::int32_t shift = 0;    // of a message: how many positions further the peer is; a receive's is negative
  std::uint32_t tag = 0;     // of a message: which of the pass's it is; a send and its receive have the same
  std::int32_t custom = -1;  // into ShardedModel::uneven
  ExpertRouting routing{};   // of an all-to-all of tokens, as in ir/graph.h
  bool counted_on_device = false;  // likewise
  std::int32_t processors = 0;
  // Of a computation: how many products of routed experts it stands for, each with a weight of its own.
  std::int32_t products = 1;
  // A framework launches the step by the same call as the one before it: a host that issues operators needs
  // no time of its own for it.
  bool along = false;
  // Steps of the same pass it needs. Empty: only what the pass as a whole waits for. Computations run in
  // order anyway.
  std::vector<std::uint32_t> after;
  friend bool operator==(const PassStep&, const PassStep&) = default;
};

// Steps in order of issue; the last computation and whatever nobody waits for end it.
struct Pass {
  std::vector<PassStep> steps;
  friend bool operator==(const Pass&, const Pass&) = default;
};

// Tensors of equal size.
struct WeightTensors {
  std::int64_t elements = 0;  // of each
  std::int64_t count = 1;
};

// Weights of a block on one rank, by who else holds them.
struct WeightGroup {
  GroupAxis axis = GroupAxis::data;  // data or expert_data: over which gradients are averaged
  std::int64_t elements = 0;         // on this rank, after tensor and expert parallelism
  std::int64_t tied = -1;            // equal numbers in several blocks are one weight (tied embeddings)
  DType dtype = DType::unknown;      // unknown: the plan's weight type
  // Every tensor rank holds them whole but saw only its share of the tokens (sequence parallelism: norms,
  // routers): their gradients are summed over the tensor group once per iteration.
  bool tensor_partial = false;
  // Where gradients are sparse, elements that have any after an iteration of all replicas; 0: all.
  std::int64_t updated = 0;
  std::vector<WeightTensors> tensors{};  // where replicas update whole ones (shares_out_tensors)
};

inline std::int64_t updated_of(const WeightGroup& group) {
  return group.updated > 0 ? group.updated : group.elements;
}

struct BlockShape {
  Pass forward;
  Pass recompute;  // repeated before the backward pass; empty without recompute
  Pass backward;   // input and weight gradients, in the order frameworks issue them
  std::vector<WeightGroup> weights;
  // Of each product, what stands for the gradient of its weight where that is added without being made
  // (Plan::accumulation_fusion); products of the same size share one.
  std::vector<Bytes> placeholders;
  Bytes buffers;  // what is kept beside the weights and not trained: running means, tables of positions
  // Per micro-batch:
  Bytes input, output;  // activations that cross a stage boundary before and after the block
  Bytes saved;          // kept from the forward to the backward pass, under the plan's recompute
  Bytes working;        // largest sum of temporaries in either pass, what recompute restores included
};

struct ShardedBlock {
  std::string name;
  BlockKind kind = BlockKind::other;
  std::uint32_t shape = 0;             // into ShardedModel::shapes
  std::uint32_t recomputed_shape = 0;  // for Recompute::block: the shape where the block is recomputed
};

// An all-to-all between expert positions that are loaded unevenly; its schedule, which grows with the square
// of their number, is made where a job needs it (lower/data/job_tables.h).
struct UnevenExchange {
  Bytes bytes;
  bool to_experts = true;
};

struct ShardedModel {
  std::vector<BlockShape> shapes;
  std::vector<ShardedBlock> blocks;  // in model order
  std::vector<std::int32_t> layers;  // per block, which layer of the model it is a part of; empty: one each
  // As PyTorch's DistributedDataParallel: blocks have the parameters of one operator, which enter the buckets
  // one by one, and these are copies of the gradients (gradient_as_bucket_view = false).
  bool distributed_data_parallel = false;
  std::vector<Work> works;  // each once
  std::vector<UnevenExchange> uneven;
  std::vector<Share> expert_loads;  // by position; all even where there is one
  StringTable names;
};

// For the rank at `expert_position` of its expert group (it matters only where experts are loaded unevenly).
// A graph under plain data parallelism, where no stage, recomputation or shard needs larger units, is cut at
// every operator with parameters. The model is the one for a micro-batch of one replica. Throws Error for
// degrees that do not divide heads, experts, tokens ..., naming both numbers and the nearest legal ones.
ShardedModel shard_model(const Model& model, const Plan& plan, std::int64_t expert_position,
                         const std::string& where);
// All of a plan that shard_model looks at: plans with equal texts divide a model alike.
std::string division_of(const Plan& plan);

// Models without blocks or splits (read from ONNX graphs): cuts them into blocks where a single tensor
// passes, and pairs matrix products as Megatron does where two in a row allow it (column, then row); a
// product without partner stays whole under tensor parallelism with its weight split by outputs and its
// result gathered, as ASTRA-sim's MODEL policy does.
void annotate_parallelism(Model& model);

}  // namespace armilla
