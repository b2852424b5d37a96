// Cuts a plain graph into blocks for pipeline stages and recompute: wherever a single activation that has a
// gradient passes, outside of regions that tensor parallelism divides.
//
// Pieces without a matrix product or embedding of their own join a neighbour: the one before, unless they are
// a normalisation that does not always follow pieces of its kind (the last one of a pre-norm transformer). A
// pattern of several pieces that repeats three times or more becomes one block per repetition: attention and
// MLP are one layer. Blocks of equal operators have equal shapes.
// Cost: O(operators + tensors) apart from comparing pieces, O(pieces x longest pattern).
#pragma once

#include <vector>

#include "ir/model.h"
#include "lower/annotate/annotate_regions.h"

namespace armilla {

std::vector<Block> cut_into_blocks(const Model& model, const std::vector<SplitRegion>& regions);

}  // namespace armilla
