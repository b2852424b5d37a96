#include "cost/systolic.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "base/source_path_testing.h"
#include "cost/systolic/read_buffer.h"
#include "cost/systolic/scalesim_oracle_testing.h"

namespace armilla {
namespace {

SystolicTraffic traffic_of(const OracleRow& row, const std::string& name) {
  return {integer(row, name + "_first"), integer(row, name + "_last"), integer(row, name + "_words")};
}

void expect_traffic(const SystolicTraffic& ours, const SystolicTraffic& theirs, const char* what) {
  EXPECT_EQ(ours.first, theirs.first) << what;
  EXPECT_EQ(ours.last, theirs.last) << what;
  EXPECT_EQ(ours.words, theirs.words) << what;
}

// What SCALE-Sim v2 and v3 reported for small layers: all dataflows and modes, buffers too small, strides
// that leave a rest.
TEST(SystolicMemory, EqualsScaleSimsReports) {
  const std::vector<OracleRow> rows = read_oracle(source_path("tests/data/scalesim_reports.csv"));
  ASSERT_GE(rows.size(), 90u);
  for (const OracleRow& row : rows) {
    std::string line;
    for (const auto& [name, cell] : row) line += name + "=" + cell + " ";
    SCOPED_TRACE(line);
    const ConvolutionShape shape = {integer(row, "ifmap_height"),  integer(row, "ifmap_width"),
                                    integer(row, "filter_height"), integer(row, "filter_width"),
                                    integer(row, "channels"),      integer(row, "filters"),
                                    integer(row, "stride_height"), integer(row, "stride_width")};
    SystolicBuffers buffers;
    buffers.ifmap = integer(row, "ifmap_kib") * 1024;
    buffers.filter = integer(row, "filter_kib") * 1024;
    buffers.ofmap = integer(row, "ofmap_kib") * 1024;
    buffers.limited = row.at("mode") == "user";
    buffers.version = row.at("version") == "v3" ? ScaleSimVersion::v3 : ScaleSimVersion::v2;
    buffers.ifmap_bandwidth = integer(row, "ifmap_bandwidth");
    buffers.filter_bandwidth = integer(row, "filter_bandwidth");
    buffers.ofmap_bandwidth = integer(row, buffers.limited ? "ofmap_bandwidth" : "columns");
    const SystolicReport report = simulate_layer(array_of(row, "rows", "columns"), buffers, shape, "test");
    EXPECT_EQ(report.total_cycles, integer(row, "total_cycles"));
    EXPECT_EQ(report.stall_cycles, integer(row, "stall_cycles"));
    EXPECT_EQ(report.overall_utilization, std::stod(row.at("overall_utilization")));
    EXPECT_EQ(report.mapping_efficiency, std::stod(row.at("mapping_efficiency")));
    EXPECT_EQ(report.compute_utilization, std::stod(row.at("compute_utilization")));
    expect_traffic(report.ifmap_sram, traffic_of(row, "ifmap_sram"), "ifmap SRAM");
    expect_traffic(report.filter_sram, traffic_of(row, "filter_sram"), "filter SRAM");
    expect_traffic(report.ofmap_sram, traffic_of(row, "ofmap_sram"), "ofmap SRAM");
    expect_traffic(report.ifmap_dram, traffic_of(row, "ifmap_dram"), "ifmap DRAM");
    expect_traffic(report.filter_dram, traffic_of(row, "filter_dram"), "filter DRAM");
    expect_traffic(report.ofmap_dram, traffic_of(row, "ofmap_dram"), "ofmap DRAM");
  }
}

// Complete runs on the layers of whole networks.
TEST(SystolicMemory, EqualsTheOracle) {
  for (const Oracle& oracle : oracles("scalesim.csv")) {
    int complete = 0;
    for (const OracleRow& row : read_oracle(oracle.path)) {
      const std::string& mode = row.at("bw_mode");
      SCOPED_TRACE(row.at("topology") + " " + row.at("layer") + " " + row.at("arr_rows") + " " +
                   row.at("dataflow") + " " + mode);
      const ConvolutionShape shape = {integer(row, "ifmap_h"),  integer(row, "ifmap_w"),
                                      integer(row, "filt_h"),   integer(row, "filt_w"),
                                      integer(row, "channels"), integer(row, "num_filt"),
                                      integer(row, "stride_h"), integer(row, "stride_w")};
      SystolicBuffers buffers;
      buffers.ifmap = integer(row, "sram_if_kB") * 1024;
      buffers.filter = integer(row, "sram_fl_kB") * 1024;
      buffers.ofmap = integer(row, "sram_of_kB") * 1024;
      buffers.limited = mode.starts_with("user");
      const std::int64_t bandwidth = buffers.limited ? std::stoll(mode.substr(4)) : integer(row, "arr_cols");
      buffers.ifmap_bandwidth = buffers.filter_bandwidth = buffers.ofmap_bandwidth = bandwidth;
      if (mode == "compute") continue;  // cost/systolic/systolic_test.cc
      const SystolicReport report =
          simulate_layer(array_of(row, "arr_rows", "arr_cols"), buffers, shape, "test");
      ++complete;
      EXPECT_EQ(report.total_cycles, integer(row, "reported_total_cycles"));
      EXPECT_EQ(report.stall_cycles, integer(row, "stall_cycles"));
      EXPECT_EQ(report.overall_utilization, std::stod(row.at("overall_util_pct")));
      EXPECT_EQ(report.mapping_efficiency, std::stod(row.at("mapping_eff_pct")));
      EXPECT_EQ(report.compute_utilization, std::stod(row.at("compute_util_pct")));
      EXPECT_EQ(report.ifmap_sram.words, integer(row, "sram_if_reads"));
      EXPECT_EQ(report.filter_sram.words, integer(row, "sram_fl_reads"));
      EXPECT_EQ(report.ofmap_sram.words, integer(row, "sram_of_writes_reported"));
      EXPECT_EQ(report.ifmap_dram.words, integer(row, "dram_if_reads"));
      EXPECT_EQ(report.filter_dram.words, integer(row, "dram_fl_reads"));
      EXPECT_EQ(report.ofmap_dram.words, integer(row, "dram_of_writes"));
    }
    EXPECT_GE(complete, oracle.whole ? 11 : 5);
  }
}

SystolicBuffers buffers_of(std::int64_t words, std::int64_t bandwidth) {
  SystolicBuffers buffers;
  buffers.ifmap = buffers.filter = buffers.ofmap = words;
  buffers.limited = true;
  buffers.ifmap_bandwidth = buffers.filter_bandwidth = buffers.ofmap_bandwidth = bandwidth;
  return buffers;
}

TEST(SystolicMemory, ProductsThatFitDoNotStall) {
  const SystolicArray array = {8, 8, Dataflow::weight_stationary};
  EXPECT_EQ(stall_cycles(array, buffers_of(1 << 20, 1), 20, 30, 40), 0);
  EXPECT_EQ(stall_cycles(array, buffers_of(1 << 20, 1), 0, 30, 40), 0);
  EXPECT_GT(stall_cycles(array, buffers_of(1024, 1), 200, 300, 400), 0);
}

// Every word once, followed in closed form, against the same words one by one: a convolution whose windows
// touch, once as a convolution and once as the product it is.
TEST(SystolicMemory, StallsOfAProductAreThoseOfTheConvolution) {
  for (const Dataflow dataflow :
       {Dataflow::output_stationary, Dataflow::weight_stationary, Dataflow::input_stationary}) {
    const SystolicArray array = {8, 4, dataflow};
    const SystolicBuffers buffers = buffers_of(2048, 3);
    const SystolicReport report = simulate_layer(array, buffers, {20, 1, 2, 1, 300, 11, 2, 1}, "test");
    EXPECT_GT(report.stall_cycles, 0);
    EXPECT_EQ(report.stall_cycles, stall_cycles(array, buffers, 10, 11, 600));
    // One row more in the image is read by nobody, but makes the last window reach over the edge.
    const SystolicReport over = simulate_layer(array, buffers, {20, 1, 2, 1, 300, 11, 3, 1}, "test");
    EXPECT_EQ(over.stall_cycles, stall_cycles(array, buffers, 7, 11, 600));
  }
}

// A network of products of the size of today's language models is a matter of milliseconds.
TEST(SystolicMemory, LargeProductsAreFollowedInLargeSteps) {
  const SystolicArray array = {128, 128, Dataflow::output_stationary};
  EXPECT_GT(stall_cycles(array, buffers_of(1 << 20, 64), 8192, 8192, 28672), 0);
}

TEST(SystolicMemory, RefusesWhatDoesNotFit) {
  const SystolicArray array = {8, 8, Dataflow::weight_stationary};
  EXPECT_EQ(error_of([&] {
              simulate_layer(array, buffers_of(1024, 1), {2, 2, 3, 3, 1, 1, 1, 1}, "net.csv:2");
            }),
            "net.csv:2: a filter of 3 does not fit an input of 2\n  hint: SCALE-Sim's inputs include their "
            "padding");
  EXPECT_EQ(error_of([&] {
              simulate_layer(array, buffers_of(1024, 1),
                             {INT32_MAX, INT32_MAX, 1, INT32_MAX, 1, INT32_MAX, 1, 1}, "net.csv:2");
            }),
            "net.csv:2: sizes overflow 64 bits\n  hint: check the dimensions");
  EXPECT_EQ(error_of([&] {
              simulate_layer(array, buffers_of(1024, 1), {65536, 65536, 3, 3, 1, 1, 1, 1}, "net.csv:2");
            }),
            "net.csv:2: overlapping windows of an image of 2^31 words and more are not supported");
}

}  // namespace
}  // namespace armilla
