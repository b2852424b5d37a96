#include "cost/device/arrays.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

// One half of a TPU7x: 1153.5 TFLOPS and 3.69 TB/s, of which products attain 0.7, attention 0.62 and 0.67.
Device core() {
  Device device;
  device.matrix_rate[DType::bf16] = teraflops(1153.5);
  device.matrix_rate[DType::fp8] = teraflops(2307);
  device.memory_bandwidth = gigabytes_per_second(3690);
  device.matrix_efficiency = 0.7;
  device.memory_efficiency = 0.9;
  device.arrays = SystolicArrays{256, 1, 0.62, 0.67, 2600};
  return device;
}

Work products(std::vector<Gemm> gemms, Kernel kernel = Kernel::any, DType dtype = DType::bf16) {
  Work work;
  work.kind = WorkKind::matrix;
  work.dtype = dtype;
  work.kernel = kernel;
  std::int64_t macs = 0;
  for (const Gemm& gemm : gemms) macs += gemm.macs();
  work.flops = Flops(2 * macs);
  work.gemms = std::move(gemms);
  return work;
}

double milliseconds_of(const Device& device, const Work& work) {
  return 1e3 * arrays_seconds(device, work);
}

// Of `heads` heads in all sequences together, under a causal mask.
Work masked(std::int64_t tokens, std::int64_t heads, std::int64_t head) {
  return products({{tokens, tokens / 2, head, heads}, {tokens, head, tokens / 2, heads}}, Kernel::attention);
}

TEST(Arrays, InnerSizesAreFilledUp) {
  const double square = milliseconds_of(core(), products({{8192, 8192, 8192}}));
  EXPECT_NEAR(square, 1e3 * 2 * 8192.0 * 8192 * 8192 / (1153.5e12 * 0.7), 1e-9);
  EXPECT_DOUBLE_EQ(milliseconds_of(core(), products({{8192, 8192, 8190}})), square);
  EXPECT_DOUBLE_EQ(milliseconds_of(core(), products({{8192, 7937, 8192}})), square);
  EXPECT_NEAR(milliseconds_of(core(), products({{4096, 8192, 8192}})), square / 2, 1e-9) << "rows stream";
}

// tokamax's measured times of splash attention, in bf16, on a core of a TPU7x.
TEST(Arrays, AttentionTakesAsLongForSmallHeads) {
  EXPECT_NEAR(milliseconds_of(core(), masked(16384, 16, 128)), 3.585, 0.1 * 3.585);
  EXPECT_NEAR(milliseconds_of(core(), masked(8192, 2 * 16, 128)), 2.139, 0.1 * 2.139);
  EXPECT_NEAR(milliseconds_of(core(), masked(8192, 2 * 32, 64)), 4.076, 0.1 * 4.076);
  EXPECT_NEAR(milliseconds_of(core(), masked(4096, 32 * 32, 128)), 20.566, 0.1 * 20.566);
  EXPECT_DOUBLE_EQ(milliseconds_of(core(), masked(8192, 16, 64)),
                   milliseconds_of(core(), masked(8192, 16, 256)));
  // What a mask hides is computed at its edges: nothing without one, a whole block in a window.
  const double all =
      milliseconds_of(core(), products({{8192, 8192, 128, 16}, {8192, 128, 8192, 16}}, Kernel::attention));
  EXPECT_LT(all, 2 * milliseconds_of(core(), masked(8192, 16, 128)));
  const double window =
      milliseconds_of(core(), products({{8192, 1024, 128, 16}, {8192, 128, 1024, 16}}, Kernel::attention));
  EXPECT_NEAR(window / all, (8192 / 2 + 2600 / 2) / 8192.0, 1e-9) << "no more than without a window";
}

TEST(Arrays, WindowsMeetTwoBlocksOfKeys) {
  const auto windowed = [](std::int64_t keys, std::int64_t head) {
    return milliseconds_of(core(),
                           products({{65536, keys, head, 16}, {65536, head, keys, 16}}, Kernel::attention));
  };
  EXPECT_NEAR(windowed(128, 128) / windowed(65536, 128), (128 + 2 * 2600) / 65536.0, 1e-9);
  EXPECT_NEAR(windowed(128, 64) / windowed(65536, 64), (128 + 2 * 2600) / 65536.0, 1e-9);
}

// Gradients of values, scores, keys and queries, and the scores again; tokamax's times.
TEST(Arrays, BackwardAttentionIsFiveProductsOfHeads) {
  const auto backward = [](std::int64_t tokens, std::int64_t heads, std::int64_t head) {
    const std::int64_t keys = tokens / 2;
    return milliseconds_of(core(), products({{tokens, head, keys, heads},
                                             {head, keys, tokens, heads},
                                             {tokens, keys, head, heads},
                                             {keys, head, tokens, heads},
                                             {tokens, keys, head, heads}},
                                            Kernel::attention_backward));
  };
  EXPECT_NEAR(backward(16384, 16, 128), 8.247, 0.05 * 8.247);
  EXPECT_NEAR(backward(16384, 32, 64), 16.183, 0.05 * 16.183);
  EXPECT_NEAR(backward(4096, 32 * 32, 128), 46.083, 0.05 * 46.083);
}

TEST(Arrays, AttentionIsAsOtherProductsWhereNothingIsKnown) {
  Device device = core();
  device.arrays = SystolicArrays{};
  const Work work = masked(8192, 16, 128);
  EXPECT_NEAR(milliseconds_of(device, work), 1e3 * static_cast<double>(work.flops.value) / (1153.5e12 * 0.7),
              1e-9);
}

// tokamax's of ragged_dot: rows x k x n of so many groups, forward and of weights.
TEST(Arrays, GroupsTakeATileMoreAndTheirWeights) {
  const auto grouped = [](std::int64_t rows, std::int64_t k, std::int64_t n, std::int64_t groups) {
    return milliseconds_of(core(), products({{rows / groups, n, k, groups}}));
  };
  EXPECT_NEAR(grouped(524288, 4096, 1536, 128), 8.153, 0.12 * 8.153);
  EXPECT_NEAR(grouped(262144, 7168, 2048, 256), 12.401, 0.12 * 12.401);
  EXPECT_NEAR(grouped(65536, 7168, 2048, 256), 5.281, 0.2 * 5.281);
  EXPECT_NEAR(grouped(327680, 2880, 2880, 128), 15.59, 0.15 * 15.59) << "2880 is no multiple of 128";
  const Work gradient = products({{7168, 2048, 262144 / 256, 256, false}}, Kernel::weight_gradient);
  EXPECT_NEAR(milliseconds_of(core(), gradient), 15.624, 0.12 * 15.624);
  // Both cores have all weights and half of the rows each.
  Device chip = core();
  chip.matrix_rate[DType::bf16] = teraflops(2307);
  chip.memory_bandwidth = gigabytes_per_second(7380);
  chip.arrays->memories = 2;
  EXPECT_NEAR(milliseconds_of(chip, products({{2 * 2048, 1536, 4096, 128}})),
              milliseconds_of(core(), products({{2048, 1536, 4096, 128}})), 1e-9);
}

TEST(Arrays, EightBitsAreCastBefore) {
  const Gemm gemm{8192, 8192, 8192};
  const double bytes = 8192.0 * 8192, rate = 3690e9 * 0.9;
  const double half = milliseconds_of(core(), products({gemm})) / 2;
  EXPECT_NEAR(milliseconds_of(core(), products({gemm}, Kernel::any, DType::fp8)),
              half + 1e3 * 7 * bytes / rate, 1e-9);
  EXPECT_NEAR(milliseconds_of(core(), products({gemm}, Kernel::weight_gradient, DType::fp8)),
              half + 1e3 * 5 * bytes / rate, 1e-9);
}

}  // namespace
}  // namespace armilla
