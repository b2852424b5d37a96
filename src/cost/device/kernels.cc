#include "cost/device/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "cost/device/roofline.h"

namespace armilla {
namespace {

struct Tile {
  std::int64_t m, n;
};
constexpr std::array kTiles = {Tile{256, 128}, Tile{128, 256}, Tile{128, 128},
                               Tile{128, 64},  Tile{64, 128},  Tile{64, 64}};
constexpr std::array<std::int64_t, 4> kSplits = {1, 2, 4, 8};
constexpr std::int64_t kLeastSplitDepth = 256;
constexpr double kAccumulatorBytes = 4;

// Attained share where the innermost sizes of what is read and written are multiples of only so many
// elements. A weight's gradient sums over tokens, which are innermost in neither operand; in 8 bits they are,
// of the transposed copies, but Transformer Engine fills them up to multiples of 16.
double alignment_of(const Gemm& gemm, Kernel kernel) {
  constexpr std::array<std::pair<std::int64_t, double>, 3> kAlignment = {{{8, 1.0}, {4, 0.75}, {2, 0.6}}};
  const std::int64_t read = kernel == Kernel::weight_gradient ? gemm.m : gemm.k;
  for (const auto& [multiple, share] : kAlignment) {
    if (read % multiple == 0 && gemm.n % multiple == 0) return share;
  }
  constexpr double kWorst = 0.5;
  return kWorst;
}

// Batched products of 16 bits, as those of attention that is not fused, whose operands do not begin at
// multiples of 16 bytes: cuBLAS has no kernel for them on matrix units.
bool leaves_matrix_units(const Gemm& gemm, const Work& work) {
  const bool is_narrow = work.dtype == DType::fp16 || work.dtype == DType::bf16;
  return is_narrow && gemm.count > 1 && !is_grouped(gemm) && alignment_of(gemm, work.kernel) < 1;
}

bool is_flash_triton(Kernel kernel) {
  return kernel == Kernel::flash_triton || kernel == Kernel::flash_triton_backward;
}

// Kernels of the A100's instructions.
bool is_flash_2(Kernel kernel) {
  return kernel == Kernel::flash_2 || kernel == Kernel::flash_2_backward || is_flash_triton(kernel);
}

bool is_attention(Kernel kernel) {
  return kernel == Kernel::attention || kernel == Kernel::attention_backward || is_flash_2(kernel);
}

bool is_backward(Kernel kernel) {
  return kernel == Kernel::attention_backward || kernel == Kernel::flash_2_backward ||
         kernel == Kernel::flash_triton_backward;
}

bool is_scan(Kernel kernel) {
  return kernel == Kernel::scan || kernel == Kernel::scan_backward;
}

double area_efficiency(const MatrixRates& rates, double area) {
  constexpr double kLarge = 256 * 128, kMiddle = 128 * 128, kSmall = 128 * 64;
  if (area >= kLarge) return rates.efficiency;
  if (area >= kMiddle) return rates.efficiency * rates.tile_128;
  if (area >= kSmall) return rates.efficiency * rates.tile_64;
  return rates.efficiency * rates.tile_64 * rates.tile_64 / rates.tile_128;
}

class Kernels final : public CostModel {
 public:
  Kernels(Device device, bool sustained) : device_(std::move(device)), sustained_(sustained) {}

  FlopRate peak(DType dtype) const override { return matrix_rate(device_, dtype); }
  bool computes_in(DType dtype) const override {
    return !is_floating(dtype) || dtype == DType::fp32 || device_.matrix_rate.contains(dtype);
  }

  Time time(const Work& work) const override {
    if (!device_.kernels || work.kind == WorkKind::none) return roofline_time(device_, work);
    const KernelRates& rates = *device_.kernels;
    double seconds = in_seconds(rates.launch);
    if (work.kind != WorkKind::matrix || work.gemms.empty()) {
      seconds = in_seconds(rates.memory.launch) + std::max(memory_seconds(work), vector_seconds(work));
    } else if (is_attention(work.kernel)) {
      seconds += std::max(attention_seconds(work), memory_seconds(work));
    } else if (is_scan(work.kernel)) {
      seconds += std::max(scan_seconds(work), memory_seconds(work));
    } else {
      const auto [matrix, is_own] = matrix_rates(work.dtype);
      if (matrix == nullptr) return roofline_time(device_, work);
      double products = 0;
      for (const Gemm& gemm : work.gemms) products += product_seconds(gemm, *matrix, work);
      const double unhidden = unhidden_seconds(work);
      seconds += std::max(products + unhidden, memory_seconds(work)) + cast_seconds(work);
    }
    return std::min(from_seconds(seconds), kEndOfTime);
  }

  // Rates of the roofline have no range; where a device has other rates, it is beyond theirs.
  bool extrapolates(const Work& work) const override {
    if (!device_.kernels || work.kind == WorkKind::none) return false;
    if (work.kind != WorkKind::matrix || work.gemms.empty())
      return !device_.kernels->memory.range.holds(static_cast<double>(work.bytes.value));
    if (is_attention(work.kernel))
      return !attention_rates(work).range.holds(static_cast<double>(work.flops.value));
    if (is_scan(work.kernel)) return !scan_rates().range.holds(static_cast<double>(work.flops.value));
    const auto [matrix, is_own] = matrix_rates(work.dtype);
    if (!is_own) return true;
    return std::ranges::any_of(work.gemms, [range = matrix->range](const Gemm& gemm) {
      return !range.holds(2 * static_cast<double>(gemm.macs()));
    });
  }

 private:
  double bandwidth(double share) const { return device_.memory_bandwidth.value * share; }

  double memory_seconds(const Work& work) const {
    const MemoryRates& memory = device_.kernels->memory;
    double share = memory.efficiency;
    if (work.kernel == Kernel::norm) share = memory.norm;
    if (work.kernel == Kernel::norm_backward) share = memory.norm_backward;
    if (work.kernel == Kernel::activation) share = memory.activation;
    if (work.kernel == Kernel::rotary) share = memory.rotary;
    if (work.kernel == Kernel::permute) share = memory.permute;
    if (work.kernel == Kernel::gather) share = memory.gather;
    if (work.kernel == Kernel::loss) share = memory.loss;
    return static_cast<double>(work.bytes.value) / bandwidth(share);
  }

  double vector_seconds(const Work& work) const {
    return static_cast<double>(work.flops.value) / (device_.vector_rate.value * device_.vector_efficiency);
  }

  struct TypeRates {
    const MatrixRates* rates = nullptr;
    bool is_own = false;  // measured
  };
  // fp16 runs as bf16 does, and fp4 as fp8. Of other types that matrix units have, and nobody has measured,
  // the shares of the peak are bf16's; of those that they have not, there are none.
  TypeRates matrix_rates(DType dtype) const {
    const auto& matrix = device_.kernels->matrix;
    auto found = matrix.find(dtype);
    if (found == matrix.end() && dtype == DType::fp16) found = matrix.find(DType::bf16);
    if (found == matrix.end() && dtype == DType::fp4) found = matrix.find(DType::fp8);
    if (found != matrix.end()) return {&found->second, true};
    if (!device_.matrix_rate.contains(dtype)) return {};
    found = matrix.find(DType::bf16);
    return {found == matrix.end() ? nullptr : &found->second, false};
  }

  double sustained() const { return sustained_ ? device_.kernels->sustained : 1.0; }
  double sustained(const MatrixRates& rates) const {
    return sustained_ ? sustained() * rates.in_training.value_or(rates.efficiency) / rates.efficiency : 1.0;
  }

  double product_seconds(const Gemm& gemm, const MatrixRates& rates, const Work& work) const {
    if (leaves_matrix_units(gemm, work)) {
      constexpr double kAttained = 0.62;  // fitted to BLOOM's steps (docs/models/kernels.md)
      return 2 * static_cast<double>(gemm.macs()) / (device_.vector_rate.value * kAttained * sustained());
    }
    const auto processors = device_.kernels->processors;
    // CUTLASS's kernel for scaled rows has 90 to 100 % of cuBLASLt's rate (PyTorch's issue 147971).
    const double attained = work.dtype == DType::fp8 && work.scaling == Scaling::rows ? 0.95 : 1;
    const double rate = matrix_rate(device_, work.dtype).value * sustained(rates) * attained *
                        alignment_of(gemm, work.kernel) / static_cast<double>(processors);
    double best = std::numeric_limits<double>::infinity();
    for (const Tile& tile : kTiles) {
      const auto area = static_cast<double>(tile.m * tile.n);
      const std::int64_t tiles = ceil_divide(gemm.m, tile.m) * ceil_divide(gemm.n, tile.n) * gemm.count;
      for (const std::int64_t splits : kSplits) {
        if (splits > 1 && (tiles * splits > processors || gemm.k / splits < kLeastSplitDepth)) break;
        const auto waves = static_cast<double>(ceil_divide(tiles * splits, processors));
        const double depth = static_cast<double>(gemm.k) / static_cast<double>(splits) + rates.ramp;
        double seconds = waves * 2 * area * depth / (rate * area_efficiency(rates, area));
        if (splits > 1) {
          seconds += 2 * kAccumulatorBytes * static_cast<double>(splits * gemm.m * gemm.n * gemm.count) /
                     bandwidth(device_.kernels->memory.efficiency);
        }
        best = std::min(best, seconds);
      }
    }
    return best;
  }

  // Traffic that no product hides: the sums of weight gradients, written once a tile is done (their reads are
  // not in the way), and all of groups, each of which is a kernel too short to be loaded behind another's
  // arithmetic. fp16 adds up in fp16 (Megatron-LM's default), everything else in fp32.
  double unhidden_seconds(const Work& work) const {
    constexpr double kBits = 8, kOutput = 2;
    const bool of_weight = work.kernel == Kernel::weight_gradient;
    const double sum = of_weight && work.dtype != DType::fp16 ? kAccumulatorBytes : kOutput;
    double bytes = 0;
    for (const Gemm& gemm : work.gemms) {
      const auto count = static_cast<double>(gemm.count);
      const bool grouped = is_grouped(gemm) || (of_weight && gemm.count > 1);
      if (of_weight || grouped) bytes += count * static_cast<double>(gemm.m * gemm.n) * sum;
      if (grouped)
        bytes += count * static_cast<double>((gemm.m + gemm.n) * gemm.k) * bits_of(work.dtype) / kBits;
    }
    return bytes / bandwidth(device_.kernels->memory.efficiency);
  }

  // Operands of fp8 and narrower products are cast, with their transpose for the backward pass (Transformer
  // Engine): each element is read in 2 bytes and written twice in 1, but for half of the forward ones, which
  // norms write so themselves: 3 bytes on average. Rows of groups (experts) were put in order or activated
  // before, which no norm does: 4 bytes. Of every product but the weight's gradient, whose operands were cast
  // before, one operand is new. By current scaling Transformer Engine quantises expert by expert: the maximum
  // is set to zero and found (which reads the rows once more), made a scale, and the rows are cast, a kernel
  // each (2.7: split_quantize and Float8CurrentScalingQuantizer::quantize_impl; by delayed scaling one kernel
  // casts all). Dense operands read once more, some 1 % of a step where norms and activations find the
  // maxima, are not modelled. In 4 bits a tensor's scale must be known before any element is
  // cast, so that each is read twice, and no norm writes it: 4 bytes and two halves, with a scale for 16
  // (NVIDIA 2025, Pretraining Large Language Models with NVFP4, section 2; Transformer Engine's
  // NVFP4BlockScaling). Under torchao's rowwise scaling a compiler's kernels read rows and write them, and
  // for weight gradients read columns for their maxima, read them again and write them: 3 and 5 bytes.
  double cast_seconds(const Work& work) const {
    constexpr double kNarrow = 4 + 2 * (0.5 + 1.0 / 16), kGrouped = 4, kAfterNorms = 3, kMaxima = 2;
    constexpr double kRowsAndColumns = 3 + 5;
    constexpr double kKernelsOfCurrent = 4;
    if (work.dtype != DType::fp8 && work.dtype != DType::fp4) return 0;
    if (work.kernel == Kernel::weight_gradient || work.scaling == Scaling::done) return 0;
    double bytes = 0, kernels = 1;
    for (const Gemm& gemm : work.gemms) {
      double each = work.dtype == DType::fp4 ? kNarrow : is_grouped(gemm) ? kGrouped : kAfterNorms;
      if (work.scaling == Scaling::rows) each = kRowsAndColumns;
      if (work.scaling == Scaling::current && is_grouped(gemm)) {
        each += kMaxima;
        kernels = kKernelsOfCurrent * static_cast<double>(gemm.count);
      }
      bytes += static_cast<double>(gemm.m * gemm.k * gemm.count) * each;
    }
    return bytes / bandwidth(device_.kernels->memory.cast) +
           kernels * in_seconds(device_.kernels->memory.launch);
  }

  // Of the rates: fp16 has those of bf16, and so has what nobody has measured.
  DType attention_type(const Work& work) const {
    const DType dtype = work.dtype == DType::fp16 ? DType::bf16 : work.dtype;
    return is_flash_2(work.kernel) || !device_.kernels->attention.contains(dtype) ? DType::bf16 : dtype;
  }
  AttentionRates attention_rates(const Work& work) const {
    const KernelRates& rates = *device_.kernels;
    if (is_flash_triton(work.kernel)) {
      if (rates.flash_triton) return *rates.flash_triton;
      constexpr double kOfFlash2 = 0.5;  // as on the A100
      Work second = work;
      second.kernel = is_backward(work.kernel) ? Kernel::flash_2_backward : Kernel::flash_2;
      AttentionRates slower = attention_rates(second);
      slower.forward *= kOfFlash2;
      slower.backward *= kOfFlash2;
      slower.range = {0, 0};
      return slower;
    }
    if (is_flash_2(work.kernel) && rates.flash_2) return *rates.flash_2;
    const auto found = rates.attention.find(attention_type(work));
    return found == rates.attention.end() ? AttentionRates{} : found->second;
  }

  // The rate of a head's size, relative to that of 128. Exponentials, of which every score has one, take as
  // long for any size, and in fp8 nearly as long as the products, so that small heads are slower and, in
  // fp8, large ones faster.
  static double of_head_size(double head, DType dtype, Kernel kernel) {
    constexpr double kSmall = 0.4, kLarge = 0.1, kNarrow = 0.7, kUsual = 128;
    // The first FlashAttention is as fast with small heads, for which its tiles fit into registers.
    const double ratio = is_flash_triton(kernel) ? 1 : head / kUsual;
    return std::pow(ratio, dtype == DType::fp8 ? kNarrow : ratio < 1 ? kSmall : kLarge);
  }

  // Keys that a block of queries takes as long for as it needs to start and to end, and, under a mask, those
  // of its tiles that the mask hides: half a tile at the diagonal, one where a window ends, too.
  static double unseen_keys(const Gemm& scores, std::int64_t keys) {
    constexpr double kStartAndEnd = 350, kTile = 256;
    if (keys >= scores.m) return kStartAndEnd;
    const bool window = 2 * keys < scores.m;
    return kStartAndEnd + (window ? kTile : kTile / 2);
  }

  double attention_seconds(const Work& work) const {
    constexpr std::int64_t kPadding = 32;
    constexpr double kQueries = 128;
    const KernelRates& rates = *device_.kernels;
    const Gemm& first = work.gemms.front();
    // Of the scores: queries x keys x head forward; its gradient is queries x head x keys.
    const std::int64_t keys = is_backward(work.kernel) ? first.k : first.n;
    const std::int64_t head = is_backward(work.kernel) ? first.n : first.k;
    const std::int64_t padded = ceil_divide(head, kPadding) * kPadding;
    const DType dtype = attention_type(work);
    const double used = static_cast<double>(head) / static_cast<double>(padded);
    // Values may be smaller than keys: the mean over all products.
    double macs = 0;
    for (const Gemm& gemm : work.gemms) macs += static_cast<double>(gemm.macs());
    const double size =
        macs / static_cast<double>(first.m * keys * first.count) / static_cast<double>(work.gemms.size());
    const double of_head = of_head_size(size / used, dtype, work.kernel) * used;
    // Not rounded up: one more query must not fill processors.
    const double tasks =
        static_cast<double>(first.count) * std::max(1.0, static_cast<double>(first.m) / kQueries);
    const AttentionRates attention = attention_rates(work);
    const double share =
        (is_backward(work.kernel) ? attention.backward : attention.forward) * of_head * sustained();
    const double rate =
        matrix_rate(device_,
                    dtype == DType::bf16 ? work.dtype == DType::fp16 ? DType::fp16 : DType::bf16 : dtype)
            .value;
    const double computed = 1 + unseen_keys(first, keys) / static_cast<double>(keys);
    return static_cast<double>(work.flops.value) * computed / (rate * share) *
           (1 + attention.ramp * static_cast<double>(rates.processors) / tasks);
  }

  // Those of an H100 where nobody has measured them: a scan attains a fraction of what products do.
  AttentionRates scan_rates() const {
    return device_.kernels->scan.value_or(
        AttentionRates{.forward = 0.108, .backward = 0.062, .range = {0, 0}});
  }

  // Of a rate that was measured as it is in a loop.
  double scan_seconds(const Work& work) const {
    const AttentionRates scan = scan_rates();
    const double share = work.kernel == Kernel::scan_backward ? scan.backward : scan.forward;
    return static_cast<double>(work.flops.value) / (matrix_rate(device_, DType::bf16).value * share);
  }

  Device device_;
  bool sustained_;
};

}  // namespace

std::unique_ptr<CostModel> make_kernels(const Device& device, const ParameterValues& values) {
  return std::make_unique<Kernels>(device, values.boolean("sustained"));
}

}  // namespace armilla
