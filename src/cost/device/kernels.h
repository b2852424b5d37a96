// Kernels: the time of a GPU kernel by its class and shape, from rates that were fitted to measurements of
// the device (KernelRates in ir/machine.h). A device without them is costed as by the roofline.
//
// Matrix products (t_launch apart; SM: processors, rate: peak x efficiency x sustained):
//   tiles of 256x128, 128x256, 128x128, 128x64, 64x128, 64x64, each by a thread block; the fastest
//   choice counts
//   waves = ceil(tiles x splits / SM)                             (wave quantisation)
//   t = waves x 2 x tile x (k / splits + ramp) x SM / rate(tile)  (the ramp fills and drains the pipeline)
//   split-K (2, 4, 8) where one wave has room for it: partial sums are written and read in fp32
//   never faster than the operands can be moved
//   Weight gradients write their sums when a tile is done: t grows by 4 bytes (fp16: 2) an element over the
//   bandwidth. Groups (experts) are kernels of their own, which hide nothing of what they move: arithmetic
//   and traffic add up. Innermost sizes (k and n; of weight gradients m and n, never the tokens that they
//   sum over) that are no multiple of 8 elements are loaded in narrower pieces (kAlignment); batches of such
//   products, as of attention that is not fused, leave the matrix units: t = flops / (0.62 x vector rate).
// Attention (flash): t = flops / (peak x efficiency) x (1 + unseen / keys) x (1 + ramp x SM / tasks), a task
//   being 128 queries of a head. unseen: 350 keys for what a block of queries takes to start and to end
//   (loading queries, the first scores, the last sums), under a mask half of the tile of 256 at the diagonal
//   in addition, in a window a whole one. Head sizes are padded to multiples of 32 (Dao 2023,
//   FlashAttention-2), small ones are slower, in fp8 large ones faster: exponentials take as long for all
//   (Shah et al. 2024, FlashAttention-3). Three constants for all devices, fitted with their rates to 412
//   kernels (median residual 7.4 %, 10.7 % without).
//   FlashAttention's first version in Triton has rates of its own, for heads of all sizes (KernelRates::
//   flash_triton), or half of FlashAttention-2's (Dao 2023, section 4.1: 1 / 1.3 to 1 / 2.5).
// The rest: bytes over the attained bandwidth of the class.
// Sources of the forms: NVIDIA, "Matrix Multiplication Background User's Guide" (tile and wave quantisation,
// alignment); tools/fit_kernels.py repeats the fits (docs/models/kernels.md). Not modelled: L2 reuse between
// kernels, clocks by kernel.
#pragma once

#include "cost/cost.h"

namespace armilla {

inline constexpr ParameterInfo kKernelParameters[] = {
    {"sustained", ParameterType::boolean, "true",
     "matrix products at the rate that a device sustains in a training loop; false: in a short burst"},
};

std::unique_ptr<CostModel> make_kernels(const Device& device, const ParameterValues& values);

}  // namespace armilla
