#include "write/scalesim.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

ScaleSimRun example(ScaleSimVersion version) {
  ScaleSimRun run;
  run.config.run_name = "edge";
  run.config.array = {8, 4, Dataflow::output_stationary};
  run.config.buffers.version = version;
  run.config.ifmap_kib = 1;
  run.config.filter_kib = 2;
  run.config.ofmap_kib = 3;
  run.topology_path = "net.csv";
  SystolicReport layer;
  layer.total_cycles = 9;
  layer.stall_cycles = 2;
  layer.overall_utilization = 100.0 / 3;
  layer.mapping_efficiency = 75;
  layer.compute_utilization = 0.00001;
  layer.ifmap_sram = {1, 6, 18};
  layer.filter_sram = {1, 5, 9};
  layer.ofmap_sram = {4, 9, 3};
  layer.ifmap_dram = {-3, -1, 12};
  layer.filter_dram = {-1, -1, 7};
  layer.ofmap_dram = {9, 10, 3};
  run.layers = {layer};
  return run;
}

TEST(ScaleSimReport, IsVersion2s) {
  const std::vector<NamedContents> files = write_scalesim_reports(example(ScaleSimVersion::v2), "out/edge");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].path, "out/edge/COMPUTE_REPORT.csv");
  EXPECT_EQ(files[0].contents,
            "LayerID, Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\n"
            "0, 9, 2, 33.333333333333336, 75.0, 1e-05,\n");
  EXPECT_EQ(files[1].path, "out/edge/BANDWIDTH_REPORT.csv");
  EXPECT_EQ(
      files[1].contents,
      "LayerID, Avg IFMAP SRAM BW, Avg FILTER SRAM BW, Avg OFMAP SRAM BW, Avg IFMAP DRAM BW, Avg FILTER DRAM "
      "BW, Avg OFMAP DRAM BW,\n0, 2.0, 1.0, 0.3333333333333333, 4.0, 7.0, 1.5,\n");
  EXPECT_EQ(files[2].path, "out/edge/DETAILED_ACCESS_REPORT.csv");
  EXPECT_EQ(files[2].contents.substr(files[2].contents.find('\n') + 1),
            "0, 1.0, 6.0, 18, 1.0, 5.0, 9, 4.0, 9.0, 3, -3.0, -1.0, 12, -1.0, -1.0, 7, 9.0, 10.0, 3,\n");
}

TEST(ScaleSimReport, IsVersion3s) {
  const ScaleSimRun run = example(ScaleSimVersion::v3);
  EXPECT_EQ(write_scalesim_reports(run, "out")[0].contents,
            "LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, Mapping "
            "Efficiency "
            "%, Compute Util %,\n0, 13, 9, 2, 33.333333333333336, 75.0, 1e-05,\n");
  EXPECT_NE(write_scalesim_text(run).find("Total cycles: 13\nCompute cycles: 9\n"), std::string::npos);
  EXPECT_NE(write_scalesim_text(run).find("topology file path: \tnet.csv\n"), std::string::npos);
}

TEST(ScaleSimReport, PrintsWhatVersion2Prints) {
  EXPECT_EQ(write_scalesim_text(example(ScaleSimVersion::v2)),
            "====================================================\n"
            "******************* SCALE SIM **********************\n"
            "====================================================\n"
            "Array Size: \t8x4\nSRAM IFMAP (kB): \t1\nSRAM Filter (kB): \t2\nSRAM OFMAP (kB): \t3\n"
            "Dataflow: \tOutput Stationary\nCSV file path: \tnet.csv\nWorking in ESTIMATE BANDWIDTH mode.\n"
            "====================================================\n"
            "\nRunning Layer 0\nCompute cycles: 9\nStall cycles: 2\nOverall utilization: 33.33%\n"
            "Mapping efficiency: 75.00%\nAverage IFMAP DRAM BW: 4.000 words/cycle\n"
            "Average Filter DRAM BW: 7.000 words/cycle\nAverage OFMAP DRAM BW: 1.500 words/cycle\n"
            "************ SCALE SIM Run Complete ****************\n");
}

}  // namespace
}  // namespace armilla
