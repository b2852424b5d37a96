// Systolic arrays: the arithmetic of a matrix product on squares of multipliers (SystolicArrays in
// ir/machine.h), which weights lie in while rows stream through.
//
//   t = 2 m up(n) up(k) count / (peak x efficiency)            up: to the next multiple of the side
//
// Fused attention: n or k of each of its products is a head's size. So heads of 64 and of 128 elements take
// as long on a side of 256 as heads of 256. Blocks of tokens are computed
// whole: a causal mask adds half a block of keys, a window, whose queries meet two blocks, two.
//
// Products of groups (experts; gmm and tgmm of Megablox): a tile of rows at the border of two groups is
// computed for both, so that every group has a tile more, and its weights (their gradient) are moved while
// nothing else computes, since only the next step's blocks are loaded ahead. Inner sizes that are no
// multiples of 128 are masked by the vector units, which takes as long again. Each core with a memory of its
// own has its share of the rows and all groups.
//
// 8 bits: operands are cast by kernels of their own (qwix): of the forward product and of inputs' gradients
// one that is read in 16 bits and written in 8 (gradients are read once more for their maxima), of weights'
// gradients the gradient by columns, and weights before each product.
//
// Source of the forms: tokamax (github openxla/tokamax@783ea95), ragged_dot's and splash attention's kernels
// and what they take on a TPU7x (data/autotuning/tpu7x); docs/models/kernels.md has the residuals. Not
// modelled: what vector units do beside the arrays, products of few rows (weights that are not in use long
// enough to be replaced behind).
#pragma once

#include "ir/machine.h"
#include "ir/work.h"

namespace armilla {

// Of WorkKind::matrix on a device with arrays.
double arrays_seconds(const Device& device, const Work& work);

}  // namespace armilla
