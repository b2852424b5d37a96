#include "cost/device/arrays.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace armilla {
namespace {

struct Arrays {
  const Device& device;
  const Work& work;
  const SystolicArrays& arrays = *device.arrays;

  double filled(std::int64_t size) const { return static_cast<double>(rounded_to(size)); }
  std::int64_t rounded_to(std::int64_t size) const { return ceil_divide(size, arrays.side) * arrays.side; }

  double peak() const { return matrix_rate(device, work.dtype).value; }
  double bandwidth() const { return device.memory_bandwidth.value * device.memory_efficiency; }
  double width() const { return bits_of(work.dtype) / 8.0; }

  bool is_attention() const { return work.kernel == Kernel::attention || is_backward(); }
  bool is_backward() const { return work.kernel == Kernel::attention_backward; }

  // Every product is one of queries, keys and a head, which stands for n or k of it. Keys are whole tiles of
  // the blocks.
  double attention_seconds() const {
    const Gemm& first = work.gemms.front();
    const std::int64_t keys = is_backward() ? first.k : first.n;
    const double scores = static_cast<double>(first.m) * static_cast<double>(keys);
    double macs = 0, computed = 0;
    for (const Gemm& gemm : work.gemms) {
      const auto each = static_cast<double>(gemm.macs()), count = static_cast<double>(gemm.count);
      macs += each;
      computed += scores * count * filled(std::llround(each / count / scores));
    }
    const double attained = is_backward() ? arrays.attention_backward : arrays.attention_forward;
    return static_cast<double>(work.flops.value) * (computed / macs) *
           (seen_keys(first.m, keys) / static_cast<double>(keys)) /
           (peak() * (attained > 0 ? attained : device.matrix_efficiency));
  }

  // By a query, on average, with what a mask hides of its blocks: half of one at the diagonal, two where a
  // window ends, but no more than without a window.
  double seen_keys(std::int64_t queries, std::int64_t keys) const {
    const auto all = static_cast<double>(queries), seen = static_cast<double>(keys);
    const auto block = static_cast<double>(arrays.attention_block);
    if (keys >= queries) return seen;
    const double causal = std::max(seen, all / 2) + block / 2;
    return 2 * keys < queries ? std::min(causal, seen + 2 * block) : seen + block / 2;
  }

  double product_seconds(const Gemm& gemm) const {
    constexpr double kRowsOfTile = 128, kRowsOfGradient = 256, kMasked = 2;
    constexpr std::int64_t kLanes = 128;
    const double rate = peak() * device.matrix_efficiency;
    const auto count = static_cast<double>(gemm.count);
    const bool of_weight = work.kernel == Kernel::weight_gradient;
    if (!is_grouped(gemm) && !(of_weight && gemm.count > 1))
      return 2 * static_cast<double>(gemm.m) * filled(gemm.n) * filled(gemm.k) * count / rate;
    const auto memories = static_cast<double>(arrays.memories);
    // Rows are summed over in a weight's gradient, whose own sizes are those of the weight.
    const std::int64_t in = of_weight ? gemm.m : gemm.k;
    const double rows = static_cast<double>(of_weight ? gemm.k : gemm.m) / memories +
                        (of_weight ? kRowsOfGradient : kRowsOfTile);
    const double masked = in % kLanes != 0 || gemm.n % kLanes != 0 ? kMasked : 1;
    const double products = 2 * rows * filled(in) * filled(gemm.n) * masked / (rate / memories);
    const double bytes = static_cast<double>(in * gemm.n) * (of_weight ? 2 : width());
    return count * (products + bytes / (bandwidth() / memories));
  }

  double cast_seconds() const {
    constexpr double kRow = 4, kGradient = 5, kWeight = 3;
    if (bits_of(work.dtype) != 8) return 0;
    double bytes = 0;
    for (const Gemm& gemm : work.gemms) {
      const auto count = static_cast<double>(gemm.count);
      if (work.kernel == Kernel::weight_gradient) {
        bytes += kGradient * static_cast<double>(gemm.n * gemm.k) * count;
      } else {
        bytes +=
            (kRow * static_cast<double>(gemm.m * gemm.k) + kWeight * static_cast<double>(gemm.n * gemm.k)) *
            count;
      }
    }
    return bytes / bandwidth();
  }
};

}  // namespace

double arrays_seconds(const Device& device, const Work& work) {
  const Arrays arrays{device, work};
  if (arrays.is_attention()) return arrays.attention_seconds();
  double seconds = arrays.cast_seconds();
  for (const Gemm& gemm : work.gemms) seconds += arrays.product_seconds(gemm);
  return seconds;
}

}  // namespace armilla
