// What the blocks of a sharded model keep and pass on: saved activations, temporaries, stage boundaries,
// weights. Bytes of one rank per micro-batch.
//
// Saved: every tensor that some backward pass reads (Operator::saves), once in the model: at the first block
// that keeps it without having made it, else where it was made; divided as it lives (lower/shard_layout.h).
// Of what products in 8 bits or fewer read they keep the narrow copy alone (Framework::megatron: Transformer
// Engine), beside the tensor itself where another operator saves that. Full recompute keeps what a block
// reads from other blocks; selective recompute and recomputation by operator keep what shard_recompute.h
// says. Boundary: every activation with a gradient that is made before the cut and read after it. Not
// modelled: allocator behaviour, buffers inside of kernels. Cost: O(operators).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/model.h"
#include "ir/plan.h"
#include "lower/shard_layout.h"
#include "lower/sharded_model.h"

namespace armilla {

// Kernels of PyTorch's own, one per operation, which keep or hold more than fused ones; products share the
// arrays for what they gather.
bool runs_operator_by_operator(const Plan& plan);

// Embeddings and heads are never recomputed (Megatron-LM recomputes transformer layers).
bool can_recompute(const Block& block);

// Bytes of the activations that cross the cut before each block, and a 0 for the end.
std::vector<Bytes> boundary_bytes(const Model& model, const std::vector<Block>& blocks, const Layout& layout,
                                  const Plan& plan);

// Per block, under `recompute` (Recompute::block counts as full). What recompute frees is in `restored`.
// `wide`: blocks whose products are in no type narrower than 16 bits.
struct BlockMemory {
  Bytes saved, restored;
};
std::vector<BlockMemory> block_memory(const Model& model, const std::vector<Block>& blocks,
                                      const Layout& layout, const Plan& plan, Recompute recompute,
                                      const std::vector<bool>& wide);

// The largest sum of an operator's inputs and outputs, or of their gradients.
Bytes largest_working_set(const Model& model, const Block& block, const Layout& layout, const Plan& plan);

// BlockShape::placeholders.
std::vector<Bytes> gradient_placeholders(const Model& model, const Block& block, const Layout& layout,
                                         const Plan& plan);

// `uses`: in how many blocks each parameter is. `apart`: every parameter is a group.
std::vector<WeightGroup> weight_groups(const Model& model, const Block& block, const Layout& layout,
                                       const std::vector<std::int64_t>& uses, bool apart, const Plan& plan);
// Of what is not trained, in its own type; of frozen weights in the plan's weight type where theirs is not
// narrower than 16 bits.
Bytes buffer_bytes(const Model& model, const Block& block, const Layout& layout, const Plan& plan);
std::vector<std::int64_t> parameter_uses(const Model& model, const std::vector<Block>& blocks);

}  // namespace armilla
