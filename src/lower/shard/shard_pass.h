// The passes of one block on one rank: its operators' shares of the work in order, the backward pass in
// reverse, and between them the collectives of tensor and sequence parallelism
// (lower/shard/shard_conversion.h), of expert parallelism (all-to-all after Exchange::dispatch and before
// combine, mirrored in the backward pass) and of context parallelism around every run of core-attention
// operators:
//   ring        c partial steps; keys and values move on by one rank beside each, in the backward pass their
//               gradients, too, c times, to end where they belong (Liu et al. 2023, section 3)
//   all-to-all  queries, keys, values in, the result out; gradients the other way (Jacobs et al. 2023,
//               section 3.1); fewer heads of keys than ranks are sent in copies
// Cross entropy over divided logits adds three all-reduces of 4 bytes per token: largest logit, the label's
// logit, sum of exponentials (Megatron-LM, cross_entropy.py).
// Plan::overlap_tensor: gathers before and scatters after a product run piece by piece beside it (as
// Transformer Engine's userbuffers do; only with sequence parallelism), reductions of input gradients beside
// weight gradients.
// Not modelled: interference between a product and communication beside it.
// Cost: O(operators x steps).
#pragma once

#include "ir/model.h"
#include "ir/plan.h"
#include "lower/shard/shard_tables.h"
#include "lower/shard_layout.h"
#include "lower/sharded_model.h"

namespace armilla {

struct BlockPasses {
  Pass forward;
  Pass repeated;  // what recomputation does again
  Pass backward;
};
// `wide`: no product of it is in a type narrower than 16 bits.
BlockPasses block_passes(const Model& model, const Block& block, const Plan& plan, const Layout& layout,
                         ShardTables& tables, bool wide);

// "attention.qkv" of "layers.7.attention.qkv" in the block "layers.7".
std::string_view local_name(const Block& block, std::string_view name);

// Activations that enter the core attention of operators [first, end), in order of use: queries, keys,
// values.
std::vector<std::uint32_t> core_inputs(const Model& model, const Layout& layout, std::uint32_t first,
                                       std::uint32_t end);

}  // namespace armilla
