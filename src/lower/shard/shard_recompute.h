// What Recompute::operators computes again: PyTorch's selective activation checkpointing with torchtitan's
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
