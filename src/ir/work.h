// Work: one kernel's worth of computation, independent of any device. Cost models (cost/) turn it into a
// time.
//
// A matrix product is C[m,n] += A[m,k] B[k,n], repeated `count` times (batched products, groups of a
// convolution). A convolution is its im2col product: m = batch * output pixels, n = output channels per
// group, k = window elements.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/tensor.h"

namespace armilla {

// Which kernel computes it, where cost models tell kernels apart (cost/device/kernels.h).
enum class Kernel : std::uint8_t {
  any,
  attention,  // fused: scores never reach memory
  attention_backward,
  flash_2,  // likewise, by FlashAttention-2 (KernelRates::flash_2)
  flash_2_backward,
  flash_triton,  // likewise, by the first FlashAttention in Triton (cost/device/kernels.h)
  flash_triton_backward,
  scan,  // Mamba-2's, by mamba_ssm's kernels in Triton
  scan_backward,
  weight_gradient,  // of a matrix product
  norm,
  norm_backward,
  activation,
  rotary,   // positions
  permute,  // tokens to their experts and back
  gather,   // rows of a table, a thread per element (PyTorch's index_select until 2025)
  loss,     // cross entropy
};
std::string_view name_of(Kernel kernel);  // "any", "attention", "attention backward" ...

// How scales of operands of 8 bits are found (Transformer Engine's recipes).
enum class Scaling : std::uint8_t {
  delayed,  // one of a tensor, by the maxima of earlier steps (DelayedScaling)
  current,  // one of a tensor, by its own maximum, which is read first (Float8CurrentScaling)
  block,    // one of 32 elements or of 128 (MXFP8BlockScaling, Float8BlockScaling)
  rows,     // one of each row, and of each column where columns are multiplied (torchao's rowwise)
  done      // of a work alone: by the kernel that made the operand, which wrote it narrow
};
std::string_view name_of(Scaling scaling);

struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t count = 1;
  bool batch_in_m = true;  // which of m and count grows with the batch

  std::int64_t macs() const { return m * n * k * count; }
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

enum class WorkKind : std::uint8_t {
  none,    // costs nothing: a view, or folded into a neighbour
  matrix,  // matrix products, on the matrix units where the device has some
  vector,  // element-wise work and reductions
  copy,    // moves bytes only
};

struct Work {
  WorkKind kind = WorkKind::none;
  DType dtype = DType::fp32;       // what the arithmetic is done in
  Flops flops;                     // a multiply-accumulate is two
  Bytes bytes;                     // device memory read and written
  std::vector<Gemm> gemms;         // only for WorkKind::matrix
  std::optional<Time> measured{};  // on the machine's usual device, where a profile says (ir/profile.h)
  bool interpolated = false;       // `measured` lies between measured neighbours
  Kernel kernel = Kernel::any;
  Scaling scaling = Scaling::delayed;  // where `dtype` is narrower than 16 bits
  // A host that issues nodes (Program::issue_time) needs as long for it as for so many of them before it may
  // begin, and as for so many more before it issues the next node.
  std::int32_t issues = 1;
  std::int32_t issues_behind = 0;

  friend bool operator==(const Work&, const Work&) = default;
};

// A product of groups (experts), each of which has rows and a kernel of its own.
inline bool is_grouped(const Gemm& gemm) {
  return gemm.count > 1 && gemm.batch_in_m;
}

}  // namespace armilla
