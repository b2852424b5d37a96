#include "study/validate/row_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "study/validate.h"
#include "study/validate/validate_testing.h"

namespace armilla {
namespace {

TEST(RowStudy, ATorusIsShapedForItsSlices) {
  MeasuredPlan row = small_row();
  row.device = "TPU-v5e";
  row.devices = 512;
  row.devices_per_node = 256;
  row.tensor = row.pipeline = 1;
  row.data = 512;
  row.global_batch = 512;
  const Study study = study_of(row, "x.csv:2");
  ASSERT_EQ(study.machine.dimensions.size(), 3u);
  EXPECT_EQ(study.machine.dimensions[0].size, 16);
  EXPECT_EQ(study.machine.dimensions[1].size, 16);
  EXPECT_EQ(study.machine.dimensions[2].size, 2);
  // Slices may be less than a square that the torus is made of.
  row.devices = row.data = row.global_batch = 16;
  row.devices_per_node = 8;
  std::vector<std::int64_t> sides;
  for (const Dimension& dimension : study_of(row, "x.csv:2").machine.dimensions)
    sides.push_back(dimension.size);
  EXPECT_EQ(sides, (std::vector<std::int64_t>{2, 4, 2}));
}

TEST(RowStudy, ATorusHasWholeAxesForTensorRanks) {
  MeasuredPlan row = small_row();
  row.device = "TPU-v5p";
  row.devices = row.devices_per_node = row.global_batch = 512;
  row.pipeline = 1;
  const auto sides = [&](std::int64_t tensor) {
    row.tensor = tensor;
    row.data = row.devices / tensor;
    std::vector<std::int64_t> of;
    for (const Dimension& dimension : study_of(row, "x.csv:2").machine.dimensions)
      of.push_back(dimension.size);
    return of;
  };
  using Sides = std::vector<std::int64_t>;
  EXPECT_EQ(sides(1), (Sides{8, 8, 8}));
  EXPECT_EQ(sides(8), (Sides{8, 8, 8}));
  EXPECT_EQ(sides(16), (Sides{16, 4, 8}));
}

TEST(RowStudy, DevicesAreKnownByTheirModels) {
  const std::vector<std::pair<const char*, const char*>> kNames = {{"A100-SXM4-80GB", "a100-80gb-sxm"},
                                                                   {"a100_80gb", "a100-80gb-sxm"},
                                                                   {"A100(DGX-A100)", "a100-80gb-sxm"},
                                                                   {"8xA100", "a100-80gb-sxm"},
                                                                   {"A100x8", "a100-80gb-sxm"},
                                                                   {"A100-SXM4-40GBx8", "a100-40gb-sxm"},
                                                                   {"A100 PCIe4", "a100-80gb-pcie"},
                                                                   {"NVIDIA H100 80GB HBM3", "h100-sxm"},
                                                                   {"H100SXM5", "h100-sxm"},
                                                                   {"DGXH100", "h100-sxm"},
                                                                   {"H100 NVLink", "h100-sxm"},
                                                                   {"H100s", "h100-sxm"},
                                                                   {"B200SXM", "b200-hgx"},
                                                                   {"GB200 NVL 72", "gb200"},
                                                                   {"GB200NVL72", "gb200"},
                                                                   {"TPUv4", "tpu-v4"},
                                                                   {"tpu_v5p", "tpu-v5p"},
                                                                   {"TPU7x", "tpu-7x"}};
  for (const auto& [name, device] : kNames) EXPECT_EQ(device_of_row(name, "x.csv:2").name, device) << name;
  for (const char* const name :
       {"GH200 144GB", "L40", "H1000", "A1000", "H100 NVL", "H100-NVL-94GB", "RTX A100X"})
    EXPECT_THAT(error_of([&] { device_of_row(name, "x.csv:2"); }), testing::HasSubstr("is not known"))
        << name;
}

TEST(RowStudy, NodesAreWhole) {
  MeasuredPlan row = small_row();
  row.devices_per_node = 3;
  EXPECT_EQ(error_of([&] { study_of(row, "x.csv:2"); }),
            "x.csv:2: 16 GPUs do not fill nodes of 3\n  hint: expected whole nodes");
}

TEST(RowStudy, NicsThatTheNotesCountAreShared) {
  MeasuredPlan row = small_row();
  row.notes = "TFLOPs=128; Jean Zay, 4x Omni-Path 100 Gb/s HCAs/node (memory); 250k vocab";
  EXPECT_EQ(study_of(row, "x.csv:2").machine.dimensions[1].bandwidth.value, 6.25e9);
  row.inter_bandwidth = 25e9;
  EXPECT_EQ(study_of(row, "x.csv:2").machine.dimensions[1].bandwidth.value, 25e9) << "the column counts more";
  row.inter_bandwidth = 0;
  row.notes = "repo config: 800 Gb/s per node total inter";
  row.inter_bandwidth = 25e9;
  const Dimension halved = study_of(row, "x.csv:2").machine.dimensions[1];
  EXPECT_EQ(halved.bandwidth.value, 12.5e9) << "a total is no GPU's";
  row.inter_bandwidth = 0;
  row.notes = "8x faster; 100 Gb/s of something";
  const Dimension whole = study_of(row, "x.csv:2").machine.dimensions[1];
  EXPECT_EQ(whole.bandwidth.value, 25e9) << "the cluster's own";
  EXPECT_EQ(halved.trees_of_two.value * 2, whole.trees_of_two.value) << "of half as many adapters";
  EXPECT_EQ(halved.trees_of_more.value * 2, whole.trees_of_more.value);
  EXPECT_GT(whole.trees_of_more.value, 0);
}

TEST(RowStudy, FabricsAreToldByName) {
  MeasuredPlan row = small_row();
  row.device = "H100-SXM5-80GB";
  EXPECT_EQ(study_of(row, "x.csv:2").machine.name, "dgx-h100");
  row.notes = "DEFAULT settings";
  EXPECT_EQ(study_of(row, "x.csv:2").machine.name, "dgx-h100");
  row.notes = "8xH100 nodes on AWS EFA";
  EXPECT_EQ(study_of(row, "x.csv:2").machine.name, "aws-p5");
  row.device = "A100-SXM4-80GB";
  row.notes = "Jean Zay, 4x Omni-Path 100 Gb/s HCAs/node (memory)";
  EXPECT_EQ(study_of(row, "x.csv:2").machine.name, "hgx-omni-path");
}

TEST(RowStudy, V100sAreThoseOfADgx1UnlessTheySayOtherwise) {
  EXPECT_EQ(study_of(MeasuredCollective{"V100-SXM NVLink 1 node", "all_reduce", 4, 1, 1 << 20}, "x.csv:2")
                .machine.dimensions[0]
                .cables.size(),
            24u);
  EXPECT_TRUE(study_of(MeasuredCollective{"V100-32GB(DGX-2)", "all_reduce", 4, 1, 1 << 20}, "x.csv:2")
                  .machine.dimensions[0]
                  .cables.empty());
}

// 39 replicas of 8 GPUs in each of 8 stages: racks of 24 hold whole ones, racks of 64 would cut groups.
TEST(RowStudy, RacksHoldWholeReplicas) {
  MeasuredPlan row = small_row();
  row.device = "GB200";
  row.devices = 2496;
  row.tensor = 4;
  row.context = 2;
  row.pipeline = 8;
  row.data = 39;
  row.global_batch = 1248;
  row.layers = 8;
  EXPECT_EQ(study_of(row, "x.csv:2").machine.dimensions[0].size, 24);
  row.devices = 512;
  row.data = 8;
  row.global_batch = 256;
  EXPECT_EQ(study_of(row, "x.csv:2").machine.dimensions[0].size, 64);
}

TEST(RowMachine, OnlyBridgedPairsSendBySockets) {
  EXPECT_TRUE(by_sockets("4xA100 pairwise NVLink", "x.csv:2"));
  EXPECT_FALSE(by_sockets("DGX-A100 NVLink3", "x.csv:2"));
}

TEST(RowMachine, DevicesAreThoseThatTheirNamesSay) {
  const auto device = [](const std::string& name) { return device_of_row(name, "x.csv:2").name; };
  for (const std::string name :
       {"a100-40gb-pcie", "a10", "a800-sxm", "h20-96gb", "h20-141gb", "tpu-7x", "tpu-v3", "h100-96gb-sxm",
        "v100-16gb-sxm2", "b200-hgx", "l40s", "l4", "t4", "gh200-96gb"})
    EXPECT_EQ(device(name), name);
  EXPECT_EQ(device("A100-PCIE-40GB"), "a100-40gb-pcie");
  EXPECT_EQ(device("A100 40 GB"), "a100-40gb-sxm");
  EXPECT_EQ(device("H100 SXM InfiniBand 400 Gb/s"), "h100-sxm");
  EXPECT_EQ(device("B200 192GB"), "b200-hgx");
  for (const std::string name : {"H100 94GB", "H100-SXM5-64GB"}) EXPECT_THROW(device(name), Error) << name;
}

}  // namespace
}  // namespace armilla
