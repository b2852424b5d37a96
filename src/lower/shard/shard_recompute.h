// What Recompute::selective and Recompute::operators compute again, and where whole blocks may end.
//
// By parts of a layer: Megatron-Core's recompute_modules (transformer_layer.py, attention.py,
// multi_latent_attention.py, moe_layer.py, experts.py). All operators of a part are done again with their
// collectives, tokens' ways to their experts and back included; checkpoints stand inside of each other, so
// that an operator of two parts is done again twice. Kept is what a part reads from outside of all of them
// and, of core_attn, mlp, moe and shared_experts (torch's checkpoint), results that somebody else reads.
// Results of layernorm, mla_up_proj and moe_act (CheckpointWithoutOutput) are freed once they were read and
// made again before the first of their readers' gradients. Not modelled: the order in which parts come back
// (all at the beginning of a block's backward pass), and that under CUDA graphs of the router its norm stays.
//
// By operator: PyTorch's selective activation checkpointing with torchtitan's
// choice (torchtitan, parallelize_llama.py of 2024 and 2025, _save_list): the results of fused attention, of
// every second matrix product with a weight, the first among them, and of reductions over tensor ranks are
// kept, all else is made again. Weights that a model joins in one product (queries, keys and values; gate and
// up) are separate ones there, counted one by one. Not modelled: the result of a kept product before it is
// reduced. Cost: O(operators of the block).
#pragma once

#include <vector>

#include "ir/model.h"
#include "lower/shard_layout.h"
#include "lower/shard_share.h"

namespace armilla {

// Behind the last operator of a block whose results the backward pass reads: an operator that keeps its own
// result or mask, or the one before the last that keeps what it reads.
std::uint32_t end_of_what_is_read(const Model& model, const Block& block);

// Behind the last operator of a block that whole recomputation does again: what makes logits of a layer's
// result, and the loss, stand outside of the checkpoint (Megatron-Core, multi_token_prediction.py and
// gpt_model.py).
std::uint32_t end_of_checkpoint(const Model& model, const Block& block);

// How often an operator is done again.
std::int64_t times_repeated(const Operator& op, Parts parts);
// Whether its results are freed although operators outside of its part read them.
bool frees_results(const Operator& op, Parts parts);

struct KeptResult {
  std::uint32_t tensor = 0;
  Share share;
};
struct RepeatedOperators {
  std::vector<Share> shares;     // of each operator of the block: what is computed again of its forward work
  std::vector<KeptResult> kept;  // by tensor
};
// `needed_only`: a result that nothing behind it in the block reads again is not kept, as compilers see.
RepeatedOperators repeated_operators(const Model& model, const Block& block, const Layout& layout,
                                     DType floats, bool needed_only);

}  // namespace armilla
