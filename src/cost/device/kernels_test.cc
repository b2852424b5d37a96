#include "cost/device/kernels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/device/roofline.h"

namespace armilla {
namespace {

// 100 processors, 100 TFLOP/s, 1 TB/s: a processor does 1 Tflop a second.
Device device_with_rates() {
  Device device;
  device.name = "test";
  device.vector_rate = FlopRate(1e13);
  device.memory_bandwidth = Bandwidth(1e12);
  device.matrix_rate = {
      {DType::bf16, FlopRate(1e14)}, {DType::fp16, FlopRate(1e14)}, {DType::fp8, FlopRate(2e14)}};
  KernelRates rates;
  rates.processors = 100;
  rates.launch = Time(5'000'000);
  rates.matrix[DType::bf16] = {0.5, 0, 1, 1};
  rates.matrix[DType::fp8] = {0.5, 0, 1, 1};
  rates.attention[DType::bf16] = {0.5, 0.25, 0};
  rates.memory = {0.8, 0.4, 0.2, 0.6, 0.6, 0.1, 0.05, 0.5, 0.8, Time(2'000'000)};
  rates.sustained = 0.5;
  device.kernels = rates;
  return device;
}

std::unique_ptr<CostModel> burst(const Device& device) {
  return make_cost_model({"kernels", {{"sustained", {"false", ""}}}, ""}, device);
}

Work product(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::bf16) {
  Work work;
  work.kind = WorkKind::matrix;
  work.dtype = dtype;
  work.gemms = {{m, n, k, 1}};
  work.flops = Flops(2 * m * n * k);
  return work;
}

double time_in_us(const CostModel& cost, const Work& work) {
  return in_seconds(cost.time(work)) * 1e6;
}

TEST(Kernels, ProductsComeInWavesOfTiles) {
  const auto cost = burst(device_with_rates());
  // 100 tiles of 256 x 128 are one wave: 2 x 32768 x 4096 flops at half of 1 Tflop/s, behind the launch.
  const double wave = 2.0 * 32768 * 4096 / 0.5e12 * 1e6;
  EXPECT_NEAR(time_in_us(*cost, product(2560, 1280, 4096)), 5 + wave, 1e-3);
  // A tile more is a second wave, of the smallest tiles that can do it.
  EXPECT_GT(time_in_us(*cost, product(2561, 1280, 4096)), 5 + 1.05 * wave);
  EXPECT_LE(time_in_us(*cost, product(2561, 1280, 4096)), 5 + 2 * wave + 1e-3);
}

TEST(Kernels, AFewTilesAreSplitAlongTheInnerSize) {
  Device device = device_with_rates();
  const double split = time_in_us(*burst(device), product(256, 256, 16384));
  device.kernels->processors = 1;  // nothing to split over; the same rate per processor
  device.matrix_rate[DType::bf16] = FlopRate(1e12);
  const double whole = time_in_us(*burst(device), product(128, 64, 16384));
  EXPECT_LT(split, whole);
}

TEST(Kernels, SizesThatAreNoMultiplesOfEightAreSlower) {
  const auto cost = burst(device_with_rates());
  const double aligned = time_in_us(*cost, product(2560, 1280, 4096)) - 5;
  EXPECT_NEAR(time_in_us(*cost, product(2560, 1276, 4096)) - 5, aligned / 0.75, 1e-3);
  EXPECT_NEAR(time_in_us(*cost, product(2560, 1278, 4096)) - 5, aligned / 0.6, 1e-3);
  EXPECT_NEAR(time_in_us(*cost, product(2560, 1279, 4096)) - 5, aligned / 0.5, 1e-3);
}

// An odd number of tokens is what a weight's gradient sums over; its rows are as wide as the layers.
TEST(Kernels, BatchedProductsThatAreNotAlignedLeaveMatrixUnits) {
  const auto cost = burst(device_with_rates());
  const auto scores = [&](std::int64_t head, DType dtype) {
    Work work = product(2048, 2048, head, dtype);
    work.gemms = {{2048, 2048, head, 100, false}};
    return time_in_us(*cost, work) - 5;
  };
  const double flops = 2.0 * 2048 * 2048 * 100;
  EXPECT_NEAR(scores(150, DType::fp16), flops * 150 / (1e13 * 0.62) * 1e6, 1);
  EXPECT_NEAR(scores(108, DType::bf16), flops * 108 / (1e13 * 0.62) * 1e6, 1);
  EXPECT_LT(scores(152, DType::fp16), 0.2 * scores(150, DType::fp16));
}

TEST(Kernels, TrainingHasALibraryOfItsOwn) {
  Device device = device_with_rates();
  const Work work = product(2560, 1280, 4096, DType::fp8);
  const auto products = [&](const CostModel& cost) {
    // Without what the cast takes: 3 bytes an element, and a kernel.
    return time_in_us(cost, work) - 5 - 3.0 * 2560 * 4096 / (1e12 * device.kernels->memory.cast) * 1e6 - 2;
  };
  const double before = products(*make_cost_model({"kernels", {}, ""}, device));
  const double table = products(*burst(device));
  device.kernels->matrix[DType::fp8].in_training = 0.6;
  device.kernels->memory.cast = 0.4;
  EXPECT_NEAR(products(*make_cost_model({"kernels", {}, ""}, device)), before * 0.5 / 0.6, 1e-3);
  EXPECT_NEAR(products(*burst(device)), table, 1e-3);
}

TEST(Kernels, TokensNeedNoAlignmentInAWeightsGradient) {
  const auto cost = burst(device_with_rates());
  const auto gradient = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    Work work = product(m, n, k);
    work.kernel = Kernel::weight_gradient;
    return work;
  };
  const double aligned = time_in_us(*cost, gradient(2560, 1280, 4096));
  EXPECT_NEAR(time_in_us(*cost, gradient(2560, 1280, 4095)), aligned, 1e-3 * aligned);
  EXPECT_GT(time_in_us(*cost, gradient(2559, 1280, 4096)), 1.5 * aligned);
  EXPECT_GT(time_in_us(*cost, gradient(2560, 1279, 4096)), 1.5 * aligned);
}

TEST(Kernels, NarrowOperandsAreCastBefore) {
  Device device = device_with_rates();
  Work work = product(2560, 1280, 4096, DType::fp8);
  const double with_cast = time_in_us(*burst(device), work);
  device.kernels->matrix[DType::bf16].efficiency = 1;  // as fast as fp8 is, and not cast
  work.dtype = DType::bf16;
  const double cast = 3.0 * 2560 * 4096 / 0.8e12 * 1e6 + 2;  // and a launch
  EXPECT_NEAR(with_cast - time_in_us(*burst(device), work), cast, 1e-3);
  // In 4 bits read twice, and written twice with a scale for 16: 5.125 bytes.
  Device narrow = device_with_rates();
  narrow.matrix_rate[DType::fp4] = narrow.matrix_rate[DType::fp8];
  work.dtype = DType::fp4;
  EXPECT_NEAR(time_in_us(*burst(narrow), work) - with_cast, 2.125 * 2560 * 4096 / 0.8e12 * 1e6, 1e-3);
  // By rows and by columns 8 bytes, and products at 0.95 of the rate.
  work.dtype = DType::fp8;
  work.scaling = Scaling::done;
  const double products = time_in_us(*burst(narrow), work);
  work.scaling = Scaling::rows;
  EXPECT_NEAR(time_in_us(*burst(narrow), work) - products - 8.0 * 2560 * 4096 / 0.8e12 * 1e6 - 2,
              products * (1 / 0.95 - 1), 0.05 * products);
}

// No norm writes what experts read: a byte more than the average of all others.
TEST(Kernels, OperandsOfGroupsAreCastWhole) {
  const Device device = device_with_rates();
  Work group = product(2560, 1280, 4096, DType::fp8);
  group.gemms.front().count = 4;
  group.gemms.front().batch_in_m = true;
  Work batch = group;
  batch.gemms.front().batch_in_m = false;
  const auto cast_of = [&](Work work) {
    Device wide = device;
    wide.kernels->matrix[DType::bf16].efficiency = 1;
    const double narrow = time_in_us(*burst(device), work);
    // Of groups what they move is not hidden: 2 bytes of a sum, 1 of an operand.
    work.dtype = DType::bf16;
    for (Gemm& gemm : work.gemms) gemm.batch_in_m = false;
    return narrow - time_in_us(*burst(wide), work);
  };
  constexpr double kElements = 4.0 * 2560 * 4096,
                   kUnhidden = 4 * (2.0 * 2560 * 1280 + (2560 + 1280) * 4096.0);
  EXPECT_NEAR(cast_of(batch), 3 * kElements / 0.8e12 * 1e6 + 2, 1e-3);
  EXPECT_NEAR(cast_of(group), (4 * kElements + kUnhidden) / 0.8e12 * 1e6 + 2, 1e-3);
  // By current scaling the four are read once more and take four kernels each.
  const double delayed = cast_of(group);
  group.scaling = Scaling::current;
  EXPECT_NEAR(cast_of(group) - delayed, 2 * kElements / 0.8e12 * 1e6 + (4 * 4 - 1) * 2, 1e-3);
  group.scaling = Scaling::block;
  EXPECT_NEAR(cast_of(group), delayed, 1e-3);
  batch.scaling = Scaling::current;
  EXPECT_NEAR(cast_of(batch), 3 * kElements / 0.8e12 * 1e6 + 2, 1e-3) << "no groups";
}

TEST(Kernels, SumsOfWeightGradientsAreWrittenAfterTheProducts) {
  const auto cost = burst(device_with_rates());
  Work work = product(2560, 1280, 4096);
  const double alone = time_in_us(*cost, work);
  work.kernel = Kernel::weight_gradient;
  EXPECT_NEAR(time_in_us(*cost, work) - alone, 4.0 * 2560 * 1280 / 0.8e12 * 1e6, 1e-3);
  work.dtype = DType::fp16;
  EXPECT_NEAR(time_in_us(*cost, work) - alone, 2.0 * 2560 * 1280 / 0.8e12 * 1e6, 1e-3);
}

TEST(Kernels, GroupsDoNotHideWhatTheyMove) {
  const auto cost = burst(device_with_rates());
  Work work = product(2560, 1280, 4096);
  work.gemms.front() = {256, 1280, 4096, 10, false};  // of one batch: one kernel
  const double batched = time_in_us(*cost, work);
  work.gemms.front().batch_in_m = true;  // tokens of ten experts
  const double bytes = 2.0 * 10 * (256.0 * 4096 + 1280.0 * 4096 + 256.0 * 1280);
  EXPECT_NEAR(time_in_us(*cost, work) - batched, bytes / 0.8e12 * 1e6, 1e-3);
}

// Queries and keys of 32 heads; the products of the backward pass are of scores' gradients.
Work attention(std::int64_t queries, std::int64_t keys, std::int64_t head, bool backward = false) {
  Work work = backward ? product(queries, head, keys) : product(queries, keys, head);
  work.gemms.push_back(backward ? Gemm{queries, keys, head, 1} : Gemm{queries, head, keys, 1});
  for (Gemm& gemm : work.gemms) gemm.count = 32;
  work.flops = Flops(4 * queries * keys * head * 32);
  work.kernel = backward ? Kernel::attention_backward : Kernel::attention;
  return work;
}

// Of its flops alone at half of 100 Tflop/s.
double products_in_us(const Work& work) {
  return static_cast<double>(work.flops.value) / 0.5e14 * 1e6;
}

TEST(Kernels, AttentionHasItsOwnRates) {
  Device device = device_with_rates();
  Work work = attention(4096, 4096, 128);
  const double forward = products_in_us(work) * (1 + 350.0 / 4096);
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + forward, 1e-3);
  work.kernel = Kernel::flash_triton;  // half of FlashAttention-2's rates, unless the device says otherwise
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 2 * forward, 1e-3);
  work = attention(4096, 4096, 128, true);
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 2 * forward, 1e-3);
  work.kernel = Kernel::flash_2_backward;  // as the other, unless the device says otherwise
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 2 * forward, 1e-3);
  device.kernels->flash_2 = AttentionRates{0.4, 0.1, 0};
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 5 * forward, 1e-3);
  work.kernel = Kernel::flash_triton_backward;
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 10 * forward, 1e-3);
  device.kernels->flash_triton = AttentionRates{0.25, 0.2, 0};
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 2.5 * forward, 1e-3);
  Work small = attention(4096, 4096, 64, true);
  const double usual = time_in_us(*burst(device), small);
  small.kernel = Kernel::flash_triton_backward;  // which heads of 64 do not slow down
  EXPECT_NEAR(time_in_us(*burst(device), small), 5 + 2.5 * forward / 2, 1e-3);
  EXPECT_GT(usual - 5, 2 * forward / 2 * 1.3);
  work.kernel = Kernel::attention_backward;
  device.kernels->attention[DType::bf16].ramp = 2.56;  // 1,024 tasks on 100 processors
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 2 * forward * 1.25, 1e-3);
}

TEST(Kernels, ScansHaveTheirOwnRateWhereItIsKnown) {
  Device device = device_with_rates();
  Work work = product(4096, 4096, 4096);
  work.kernel = Kernel::scan;
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 0.5 / 0.108 * products_in_us(work), 1e-3) << "an H100's";
  EXPECT_TRUE(burst(device)->extrapolates(work));
  device.kernels->scan = AttentionRates{0.1, 0.05, 0};
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 5 * products_in_us(work), 1e-3);
  work.kernel = Kernel::scan_backward;
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 10 * products_in_us(work), 1e-3);
  work.bytes = Bytes(1'000'000'000'000);
  EXPECT_NEAR(time_in_us(*burst(device), work), 5 + 1e12 / 0.8e12 * 1e6, 1e-3) << "at least what it moves";
}

// As it was when the last, nearly empty block of queries counted as one that fills processors.
TEST(Kernels, AttentionOfMoreTokensTakesLonger) {
  Device device = device_with_rates();
  device.kernels->attention[DType::bf16].ramp = 2;
  double before = 0;
  for (std::int64_t tokens = 1; tokens < 1500; tokens += 13) {
    const double now = time_in_us(*burst(device), attention(tokens, tokens, 128));
    EXPECT_GT(now, before) << tokens;
    before = now;
  }
}

TEST(Kernels, TilesOfAttentionComputeWhatMasksHide) {
  const auto cost = burst(device_with_rates());
  const auto beside_launch = [&](const Work& work) { return time_in_us(*cost, work) - 5; };
  for (const bool backward : {false, true}) {
    const double rate = backward ? 2 : 1;
    const Work causal = attention(4096, 2048, 128, backward), window = attention(4096, 512, 128, backward);
    EXPECT_NEAR(beside_launch(causal), rate * products_in_us(causal) * (1 + (350.0 + 128) / 2048), 1e-3);
    EXPECT_NEAR(beside_launch(window), rate * products_in_us(window) * (1 + (350.0 + 256) / 512), 1e-3);
  }
}

TEST(Kernels, HeadsOfEightBitsTakeAsLongForTheirExponentials) {
  Device device = device_with_rates();
  device.kernels->attention[DType::fp8] = {0.25, 0.25, 0};  // as fast as bf16 at half the peak
  const auto cost = burst(device);
  const auto rate = [&](std::int64_t head, DType dtype) {
    Work work = attention(4096, 4096, head);
    work.dtype = dtype;
    return products_in_us(work) / (time_in_us(*cost, work) - 5);
  };
  const double usual = rate(128, DType::bf16);
  EXPECT_NEAR(rate(128, DType::fp8), usual, 1e-6);
  EXPECT_NEAR(rate(64, DType::bf16), usual * std::pow(0.5, 0.4), 1e-6);
  EXPECT_NEAR(rate(256, DType::bf16), usual * std::pow(2, 0.1), 1e-6);
  EXPECT_NEAR(rate(64, DType::fp8), usual * std::pow(0.5, 0.7), 1e-6);
  EXPECT_NEAR(rate(256, DType::fp8), usual * std::pow(2, 0.7), 1e-6);
}

TEST(Kernels, WhatIsBoundByMemoryHasTheBandwidthOfItsClass) {
  const auto cost = burst(device_with_rates());
  Work work;
  work.kind = WorkKind::copy;
  work.bytes = Bytes(8'000'000);
  EXPECT_NEAR(time_in_us(*cost, work), 2 + 10, 1e-3);
  work.kernel = Kernel::norm;
  EXPECT_NEAR(time_in_us(*cost, work), 2 + 20, 1e-3);
  work.kernel = Kernel::norm_backward;
  EXPECT_NEAR(time_in_us(*cost, work), 2 + 40, 1e-3);
  work.kernel = Kernel::permute;
  EXPECT_NEAR(time_in_us(*cost, work), 2 + 80, 1e-3);
  work.kernel = Kernel::gather;
  EXPECT_NEAR(time_in_us(*cost, work), 2 + 160, 1e-3);
}

TEST(Kernels, TrainingLoopsAreSlowerThanBursts) {
  const Device device = device_with_rates();
  const auto sustained = make_cost_model({"kernels", {}, ""}, device);
  const Work work = product(2560, 1280, 4096);
  EXPECT_NEAR(time_in_us(*sustained, work) - 5, 2 * (time_in_us(*burst(device), work) - 5), 1e-3);
}

TEST(Kernels, ADeviceWithoutRatesIsARoofline) {
  Device device = device_with_rates();
  device.kernels.reset();
  device.matrix_efficiency = 0.7;
  const auto cost = make_cost_model({"kernels", {}, ""}, device);
  for (const Work& work : {product(100, 100, 100), product(4096, 4096, 4096)})
    EXPECT_EQ(cost->time(work), roofline_time(device, work));
}

// Not of the roofline's efficiency: clocks that power limits are as low in one type as in another.
TEST(Kernels, TypesThatNobodyHasMeasuredHaveTheSharesOfThoseThatWere) {
  Device device = device_with_rates();
  device.matrix_efficiency = 0.9;
  device.matrix_rate[DType::tf32] = FlopRate(0.5e14);
  const auto cost = make_cost_model({"kernels", {}, ""}, device);
  const double of_bf16 = time_in_us(*cost, product(2560, 1280, 4096)) - 5;
  const Work work = product(2560, 1280, 4096, DType::tf32);
  EXPECT_NEAR(time_in_us(*cost, work), 5 + 2 * of_bf16, 1e-3);
  EXPECT_TRUE(cost->extrapolates(work));
  // The vector units do what the matrix units cannot.
  const Work wide = product(2560, 1280, 4096, DType::fp32);
  EXPECT_EQ(cost->time(wide), roofline_time(device, wide));
  EXPECT_TRUE(cost->extrapolates(wide));
}

TEST(Kernels, OutsideTheRangeOfItsFitAKernelIsExtrapolated) {
  Device device = device_with_rates();
  Work norm;
  norm.kind = WorkKind::vector;
  norm.bytes = Bytes(1000);
  Work fused = product(128, 128, 128);
  fused.kernel = Kernel::attention;
  for (const Work& work : {product(64, 64, 64), norm, fused})
    EXPECT_FALSE(burst(device)->extrapolates(work)) << "no range is known";
  KernelRates& rates = *device.kernels;
  rates.matrix[DType::bf16].range = {2.0 * 64 * 64 * 64, 2.0 * 512 * 512 * 512};
  rates.memory.range = {2000, 3000};
  rates.attention[DType::bf16].range = {0, 100};
  const auto cost = burst(device);
  EXPECT_FALSE(cost->extrapolates(product(64, 64, 64)));
  EXPECT_FALSE(cost->extrapolates(product(512, 512, 512, DType::fp16))) << "fp16 has the rates of bf16";
  EXPECT_TRUE(cost->extrapolates(product(64, 64, 63)));
  EXPECT_TRUE(cost->extrapolates(product(512, 512, 513)));
  EXPECT_TRUE(cost->extrapolates(norm));
  EXPECT_TRUE(cost->extrapolates(fused));
  EXPECT_FALSE(cost->extrapolates(Work{})) << "nothing is done";
}

}  // namespace
}  // namespace armilla
