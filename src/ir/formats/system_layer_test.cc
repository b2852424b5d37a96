#include "ir/formats/system_layer.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

StreamDimension dimension(DimensionKind kind, std::int64_t size, double bandwidth, double latency,
                          std::int64_t links = 1) {
  StreamDimension made;
  made.kind = kind;
  made.size = size;
  made.bandwidth = bandwidth;
  made.latency_ns = latency;
  made.links = links;
  return made;
}

TEST(SystemLayer, RanksAreTheProductOfTheDimensions) {
  SystemLayer system;
  EXPECT_EQ(rank_count(system), 1);
  system.dimensions = {dimension(DimensionKind::ring, 4, 1, 0), dimension(DimensionKind::switched, 6, 1, 0)};
  EXPECT_EQ(rank_count(system), 24);
  system.dimensions.assign(3, dimension(DimensionKind::ring, INT32_MAX, 1, 0));
  EXPECT_EQ(error_of([&] { rank_count(system); }),
            "network configuration: sizes overflow 64 bits\n  hint: check the dimensions");
}

TEST(SystemLayer, ProfilesHaveNames) {
  EXPECT_EQ(name_of(Semantics::native), "native");
  EXPECT_EQ(name_of(Semantics::astra1), "astra1");
  EXPECT_EQ(name_of(Semantics::astra2_unaware), "astra2-unaware");
  EXPECT_EQ(name_of(Semantics::astra2_aware), "astra2-aware");
}

TEST(SystemLayer, MachineOfAstra2TakesLinksAsTheyAre) {
  SystemLayer system;
  system.memory_bytes_per_second = 1.6e12;
  system.dimensions = {dimension(DimensionKind::ring, 8, 50, 500, 7),
                       dimension(DimensionKind::switched, 2, 12.5, 0.5)};
  const Machine machine = machine_of(system);
  EXPECT_EQ(rank_count(machine), 16);
  EXPECT_EQ(machine.dimensions[0].kind, DimensionKind::ring);
  EXPECT_EQ(machine.dimensions[0].bandwidth, Bandwidth(50.0 * 1073741824));
  EXPECT_EQ(machine.dimensions[0].latency, nanoseconds(500));
  EXPECT_EQ(machine.dimensions[1].bandwidth, Bandwidth(12.5 * 1073741824));
  EXPECT_EQ(machine.dimensions[1].latency, picoseconds(500));
  EXPECT_EQ(machine.device.memory_bandwidth, Bandwidth(1.6e12));
}

TEST(SystemLayer, MachineOfAstra1CountsLinksPerDirectionAndFoldsInterfaces) {
  SystemLayer system;
  system.semantics = Semantics::astra1;
  system.dimensions = {dimension(DimensionKind::ring, 4, 25, 500, 5),
                       dimension(DimensionKind::fully_connected, 4, 10, 500, 7),
                       dimension(DimensionKind::switched, 4, 10, 250, 3)};
  for (StreamDimension& each : system.dimensions) {
    each.nic_latency_ns = 20;
    each.router_latency_ns = 100;
  }
  const Machine machine = machine_of(system);
  EXPECT_EQ(machine.dimensions[0].bandwidth, Bandwidth(2 * 25.0 * 1073741824));  // 5 links: 2 each way
  EXPECT_EQ(machine.dimensions[0].latency, nanoseconds(540));
  EXPECT_EQ(machine.dimensions[1].bandwidth, Bandwidth(2 * 10.0 * 1073741824));  // 7 over 3 neighbours
  EXPECT_EQ(machine.dimensions[1].latency, nanoseconds(540));
  EXPECT_EQ(machine.dimensions[2].bandwidth, Bandwidth(3 * 10.0 * 1073741824));
  EXPECT_EQ(2 * machine.dimensions[2].latency.value, nanoseconds(2 * 250 + 2 * 20 + 100).value);
}

TEST(SystemLayer, MachineNeedsBandwidth) {
  SystemLayer system;
  system.semantics = Semantics::astra1;
  system.dimensions = {dimension(DimensionKind::ring, 4, 25, 500, 1)};  // none of one link's halves
  EXPECT_EQ(error_of([&] { machine_of(system); }),
            "machine 'network configuration', dimension 'dim0': has no bandwidth");
}

}  // namespace
}  // namespace armilla
