#include "cost/systolic.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/source_path_testing.h"
#include "cost/systolic/scalesim_oracle_testing.h"

namespace armilla {
namespace {

Gemm gemm_of(const OracleRow& row) {
  Gemm gemm;
  gemm.m = integer(row, "M");
  gemm.n = integer(row, "N");
  gemm.k = integer(row, "K");
  return gemm;
}

void expect_percentage(double ours, const std::string& theirs) {
  const double expected = std::stod(theirs);
  EXPECT_NEAR(ours, expected, 1e-9 * expected);
}

void expect_row(const OracleRow& row) {
  const SystolicResult result = evaluate(array_of(row, "arr_rows", "arr_cols"), gemm_of(row));
  EXPECT_EQ(result.compute_cycles, integer(row, "compute_cycles"));
  EXPECT_EQ(result.ifmap_reads, integer(row, "sram_if_reads"));
  EXPECT_EQ(result.filter_reads, integer(row, "sram_fl_reads"));
  EXPECT_EQ(result.ofmap_writes, integer(row, "sram_of_writes_reported"));
  expect_percentage(result.mapping_efficiency, row.at("mapping_eff_pct"));
  expect_percentage(result.compute_utilization, row.at("compute_util_pct"));
  // Rows of complete runs only.
  if (!row.at("reported_total_cycles").empty()) {
    EXPECT_EQ(result.reported_total_cycles, integer(row, "reported_total_cycles"));
  }
  if (!row.at("overall_util_pct").empty())
    expect_percentage(result.overall_utilization, row.at("overall_util_pct"));
}

void expect_topology(const OracleRow& row) {
  const ConvolutionShape shape = {
      integer(row, "ifmap_h"),  integer(row, "ifmap_w"),  integer(row, "filt_h"),   integer(row, "filt_w"),
      integer(row, "channels"), integer(row, "num_filt"), integer(row, "stride_h"), integer(row, "stride_w")};
  EXPECT_EQ(to_gemm(shape, row.at("layer")), gemm_of(row));
}

// How many rows of the bandwidth modes `compute` and `calc` were compared, and how many of those in full.
std::pair<int, int> compare(const std::string& path) {
  int rows = 0, complete = 0;
  for (const OracleRow& row : read_oracle(path)) {
    if (row.at("bw_mode") != "compute" && row.at("bw_mode") != "calc") continue;
    SCOPED_TRACE(row.at("topology") + " " + row.at("layer") + " " + row.at("arr_rows") + " " +
                 row.at("dataflow"));
    expect_row(row);
    expect_topology(row);
    ++rows;
    complete += row.at("bw_mode") == "calc" ? 1 : 0;
  }
  return {rows, complete};
}

std::unique_ptr<CostModel> model_of(const std::string& text) {
  Device device;
  device.vector_rate = teraflops(10);
  device.memory_bandwidth = gigabytes_per_second(1000);
  device.memory_efficiency = 0.5;
  device.launch_overhead = microseconds(1);
  return make_cost_model(parse_component(text, "--compute"), device);
}

Work matrix_product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count = 1) {
  Work work;
  work.kind = WorkKind::matrix;
  work.gemms = {{.m = m, .n = n, .k = k, .count = count}};
  work.flops = Flops(2 * m * n * k * count);
  return work;
}

TEST(Systolic, EqualsScaleSimOnTheSample) {
  const auto [rows, complete] = compare(source_path("tests/reference/scalesim.csv"));
  EXPECT_EQ(rows, 50);
  EXPECT_EQ(complete, 5);
}

TEST(Systolic, EqualsScaleSimOnEveryRow) {
  const std::string path = source_path("../shared/oracles/scalesim.csv");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the oracles folder is not here";
  const auto [rows, complete] = compare(path);
  EXPECT_GE(rows, 3000);
  EXPECT_GE(complete, 5);
}

// By hand: K = 5 needs 2 folds of 4 rows, N = 3 one fold of 4 columns; a fold takes 2*4 + 4 + 6 - 2 = 16
// cycles.
TEST(Systolic, PartialFoldsCostAsMuchAsWholeOnes) {
  const SystolicResult result = evaluate({4, 4, Dataflow::weight_stationary}, {.m = 6, .n = 3, .k = 5});
  EXPECT_EQ(result.folds, 2);
  EXPECT_EQ(result.compute_cycles, 32);
  EXPECT_EQ(result.reported_total_cycles, 31);
  EXPECT_DOUBLE_EQ(result.mapping_efficiency, 100.0 * 15 / 32);
  EXPECT_DOUBLE_EQ(result.overall_utilization, 100.0 * 90 / (31 * 16));
  EXPECT_EQ(result.ifmap_reads, 30);
  EXPECT_EQ(result.filter_reads, 15);
  EXPECT_EQ(result.ofmap_writes, 36);
}

TEST(Systolic, NothingCostsNothing) {
  for (const Gemm& gemm :
       {Gemm{.m = 0, .n = 1, .k = 1}, Gemm{.m = 1, .n = 0, .k = 1}, Gemm{.m = 1, .n = 1}}) {
    const SystolicResult result = evaluate({}, gemm);
    EXPECT_EQ(result.compute_cycles, 0);
    EXPECT_EQ(result.compute_utilization, 0);
  }
  EXPECT_EQ(evaluate({1, 1, Dataflow::output_stationary}, {.m = 1, .n = 1, .k = 1}).compute_cycles, 1);
}

TEST(Systolic, AbsurdSizesSaturate) {
  for (const Dataflow dataflow :
       {Dataflow::output_stationary, Dataflow::weight_stationary, Dataflow::input_stationary}) {
    const SystolicResult result =
        evaluate({256, 256, dataflow}, {.m = INT64_MAX, .n = INT64_MAX, .k = INT64_MAX});
    EXPECT_EQ(result.compute_cycles, INT64_MAX);
    EXPECT_EQ(result.ofmap_writes, INT64_MAX);
  }
  Work work = matrix_product(1, 1, 1);
  work.gemms = {{.m = INT64_MAX, .n = INT64_MAX, .k = INT64_MAX, .count = INT64_MAX},
                {.m = 1, .n = 1, .k = 1}};
  EXPECT_EQ(model_of("systolic:frequency=1Hz")->time(work), kEndOfTime);
  EXPECT_EQ(model_of("systolic")->cycles(work), INT64_MAX);
}

TEST(Systolic, ConvolutionsThatMakeNoSenseAreRefused) {
  ConvolutionShape shape;
  shape.ifmap_height = shape.ifmap_width = 4;
  shape.filter_height = shape.filter_width = 5;
  EXPECT_EQ(
      error_of([&] { to_gemm(shape, "conv1"); }),
      "conv1: a filter of 5 does not fit an input of 4\n  hint: SCALE-Sim's inputs include their padding");
  shape.filter_height = shape.filter_width = 1;
  shape.stride_width = 0;
  EXPECT_EQ(error_of([&] { to_gemm(shape, "conv1"); }),
            "conv1: sizes and strides of a convolution must be at least 1");
  shape.stride_width = 1;
  shape.channels = 0;
  EXPECT_EQ(error_of([&] { to_gemm(shape, "conv1"); }),
            "conv1: a convolution has at least 1 channel and 1 filter");
  shape = {.ifmap_height = INT64_MAX, .ifmap_width = INT64_MAX};
  EXPECT_EQ(error_of([&] { to_gemm(shape, "conv1"); }),
            "conv1: sizes overflow 64 bits\n  hint: check the dimensions");
}

TEST(SystolicModel, TimeIsCyclesOverFrequency) {
  const auto model = model_of("systolic:rows=4,columns=4,dataflow=ws,frequency=500MHz");
  EXPECT_EQ(model->cycles(matrix_product(6, 3, 5)), 32);
  EXPECT_EQ(model->time(matrix_product(6, 3, 5)), nanoseconds(64));
}

TEST(SystolicModel, RepeatedProductsAddUpAndArraysShareTheFolds) {
  EXPECT_EQ(model_of("systolic:rows=4,columns=4")->cycles(matrix_product(6, 3, 5, 10)), 320);
  EXPECT_EQ(model_of("systolic:rows=4,columns=4,cycles=reported")->cycles(matrix_product(6, 3, 5, 10)), 310);
  // 20 folds on 3 arrays: the busiest has 7.
  EXPECT_EQ(model_of("systolic:rows=4,columns=4,arrays=3")->cycles(matrix_product(6, 3, 5, 10)), 7 * 16);
  Work two = matrix_product(6, 3, 5);
  two.gemms.push_back(two.gemms.front());
  EXPECT_EQ(model_of("systolic:rows=4,columns=4")->cycles(two), 64);
}

TEST(SystolicModel, DefaultsAreTheGeneratorsArray) {
  // 256 x 256 ws: one fold of 2*256 + 256 + 100 - 2 cycles.
  EXPECT_EQ(model_of("systolic")->time(matrix_product(100, 256, 256)), nanoseconds(866));
}

TEST(SystolicModel, MemoryBoundsAProductOnlyWhenAsked) {
  Work work = matrix_product(6, 3, 5);
  work.bytes = Bytes(500'000);
  EXPECT_EQ(model_of("systolic:rows=4,columns=4")->time(work), nanoseconds(32));
  EXPECT_EQ(model_of("systolic:rows=4,columns=4,memory_bound=true")->time(work), microseconds(1));
}

TEST(SystolicModel, OtherWorkTakesItsRooflineTime) {
  Work vector;
  vector.kind = WorkKind::vector;
  vector.flops = Flops(20'000'000);
  vector.bytes = Bytes(500);
  EXPECT_EQ(model_of("systolic")->time(vector), microseconds(3));
  EXPECT_EQ(model_of("systolic")->cycles(vector), 0);
  EXPECT_EQ(model_of("systolic")->time(Work{}), Time(0));
}

TEST(SystolicModel, BadParametersAreRefused) {
  EXPECT_EQ(error_of([] { model_of("systolic:rows=0"); }), "--compute: rows: '0' must be at least 1");
  EXPECT_EQ(error_of([] { model_of("systolic:columns=-4"); }), "--compute: columns: '-4' must be at least 1");
  EXPECT_EQ(error_of([] { model_of("systolic:rows=65537"); }),
            "--compute: rows: 65537 is too large\n  hint: the highest value is 65536");
  EXPECT_EQ(error_of([] { model_of("systolic:dataflow=xs"); }),
            "--compute: dataflow: unknown value 'xs'\n  hint: did you mean 'os'?");
  EXPECT_EQ(error_of([] { model_of("systolic:frequency=0GHz"); }),
            "--compute: frequency: '0GHz' is too small\n  hint: the lowest value is 1 Hz");
  EXPECT_EQ(
      error_of([] { model_of("systolic:frequency=1"); }),
      "--compute: frequency: '1' has no unit\n  hint: expected a frequency with its unit, such as '1.41GHz'");
}

// One array with small buffers waits; with large ones it does not.
TEST(Systolic, WaitsForDramWhereItsBandwidthIsGiven) {
  const Work work = matrix_product(200, 300, 400, 2);
  const std::string array = "systolic:rows=8,columns=8,dataflow=os";
  const std::int64_t free = model_of(array)->cycles(work);
  EXPECT_EQ(model_of(array + ",dram_bandwidth=1")->cycles(work), free);
  SystolicBuffers buffers;
  buffers.limited = true;
  buffers.ifmap = buffers.filter = buffers.ofmap = 2048;
  buffers.ifmap_bandwidth = buffers.filter_bandwidth = buffers.ofmap_bandwidth = 3;
  const std::int64_t stalls = stall_cycles({8, 8, Dataflow::output_stationary}, buffers, 200, 300, 400);
  EXPECT_GT(stalls, 0);
  const std::string small =
      array + ",dram_bandwidth=3,ifmap_sram=4KiB,filter_sram=4KiB,ofmap_sram=4KiB,word=2";
  EXPECT_EQ(model_of(small)->cycles(work), free + 2 * stalls);
  EXPECT_EQ(model_of(small)->time(work), from_seconds(static_cast<double>(free + 2 * stalls) * 1e-9));
}

TEST(Systolic, RefusesBuffersThatMakeNoSense) {
  EXPECT_EQ(error_of([] { model_of("systolic:arrays=2,dram_bandwidth=1"); }),
            "--compute: dram_bandwidth: waiting for DRAM is modelled for one array only\n  hint: omit "
            "'arrays' or "
            "'dram_bandwidth'");
  EXPECT_EQ(error_of([] { model_of("systolic:dram_bandwidth=1,ifmap_sram=100B"); }),
            "--compute: ifmap_sram: is too small\n  hint: a buffer holds at least 1024 words");
  EXPECT_EQ(error_of([] { model_of("systolic:dram_bandwidth=1,word=17"); }),
            "--compute: word: lies between 1 and 16");
}

}  // namespace
}  // namespace armilla
