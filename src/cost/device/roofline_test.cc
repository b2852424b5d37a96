#include "cost/device/roofline.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

Device device() {
  Device device;
  device.name = "demo";
  device.matrix_rate[DType::fp16] = teraflops(100);
  device.vector_rate = teraflops(10);
  device.memory_bandwidth = gigabytes_per_second(1000);
  device.matrix_efficiency = 0.5;
  device.vector_efficiency = 0.25;
  device.memory_efficiency = 0.8;
  device.launch_overhead = microseconds(3);
  return device;
}

Work work(WorkKind kind, std::int64_t flops, std::int64_t bytes, DType dtype = DType::fp16) {
  Work work;
  work.kind = kind;
  work.dtype = dtype;
  work.flops = Flops(flops);
  work.bytes = Bytes(bytes);
  return work;
}

Time time_of(const std::string& text, const Work& work) {
  return make_cost_model(parse_component(text, "--compute"), device())->time(work);
}

constexpr std::int64_t kGiga = 1'000'000'000;

TEST(Roofline, TheLongerOfArithmeticAndMemoryPlusOverhead) {
  // 1 Gflop at 50 TFLOPS is 20 us; 8 MB at 800 GB/s is 10 us, 32 MB 40 us.
  EXPECT_EQ(time_of("roofline", work(WorkKind::matrix, kGiga, 8'000'000)), microseconds(23));
  EXPECT_EQ(time_of("roofline", work(WorkKind::matrix, kGiga, 32'000'000)), microseconds(43));
}

TEST(Roofline, KindsOfWork) {
  // Element-wise work runs at 2.5 TFLOPS, a copy has no arithmetic, a view costs nothing.
  EXPECT_EQ(time_of("roofline", work(WorkKind::vector, kGiga, 8)), microseconds(403));
  EXPECT_EQ(time_of("roofline", work(WorkKind::copy, kGiga, 8'000'000)), microseconds(13));
  EXPECT_EQ(time_of("roofline", work(WorkKind::none, kGiga, 8'000'000)), Time(0));
}

TEST(Roofline, ATypeTheMatrixUnitsLackRunsAtTheVectorRate) {
  EXPECT_EQ(time_of("roofline", work(WorkKind::matrix, kGiga, 0, DType::fp32)), microseconds(203));
}

TEST(Roofline, ParametersReplaceTheDevicesFigures) {
  const Work product = work(WorkKind::matrix, kGiga, 0, DType::fp32);
  EXPECT_EQ(time_of("roofline:peak=200TFLOPS", product), microseconds(13));
  EXPECT_EQ(time_of("roofline:peak=200TFLOPS,matrix_efficiency=100%,launch_overhead=0s", product),
            microseconds(5));
  const Work vector = work(WorkKind::vector, kGiga, 0);
  EXPECT_EQ(time_of("roofline:vector_peak=20TFLOPS,vector_efficiency=0.5", vector), microseconds(103));
  const Work copy = work(WorkKind::copy, 0, 8'000'000);
  EXPECT_EQ(time_of("roofline:memory_bandwidth=2TB/s,memory_efficiency=0.5", copy), microseconds(11));
}

TEST(Roofline, AbsurdSizesSaturate) {
  EXPECT_EQ(time_of("roofline:peak=1FLOPS", work(WorkKind::matrix, INT64_MAX, 0)), kEndOfTime);
  EXPECT_EQ(time_of("roofline:memory_bandwidth=1B/s,launch_overhead=26h", work(WorkKind::copy, 0, INT64_MAX)),
            kEndOfTime);
}

TEST(Roofline, BadParametersAreRefused) {
  EXPECT_EQ(
      error_of([] { time_of("roofline:matrix_efficiency=0", {}); }),
      "--compute: matrix_efficiency: '0' leaves nothing of the peak\n  hint: an efficiency is more than 0");
  EXPECT_EQ(
      error_of([] { time_of("roofline:memory_efficiency=-1", {}); }),
      "--compute: memory_efficiency: '-1' is not a fraction between 0 and 1\n  hint: write '0.9' or '90%'");
  EXPECT_EQ(error_of([] { time_of("roofline:memory_bandwidth=0B/s", {}); }),
            "--compute: memory_bandwidth: '0B/s' is too small\n  hint: the lowest value is 1 B/s");
  EXPECT_EQ(error_of([] { time_of("roofline:peek=1TFLOPS", {}); }),
            "--compute: peek: 'roofline' has no parameter 'peek'\n  hint: did you mean 'peak'?");
}

}  // namespace
}  // namespace armilla
