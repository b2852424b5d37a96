#include "network/topology.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

Machine machine_with(std::vector<Dimension> dimensions) {
  Machine machine;
  machine.dimensions = std::move(dimensions);
  return machine;
}

Dimension dimension(DimensionKind kind, std::int64_t size, std::string name = "net") {
  return {std::move(name), kind, size, gigabytes_per_second(1), nanoseconds(1)};
}

std::vector<std::string> way(const Topology& topology, const Message& message) {
  std::vector<std::string> links;
  Position at = topology.start(message);
  topology.for_each_link(message, [&](const LinkId& link, const Position& beyond) {
    links.push_back(topology.link_name(link));
    at = beyond;
  });
  EXPECT_EQ(at.rank, message.destination);
  EXPECT_FALSE(at.at_switch);
  return links;
}

using Names = std::vector<std::string>;

TEST(Topology, ARingGoesTheShorterWayAndClockwiseWhenEqual) {
  const Topology ring(machine_with({dimension(DimensionKind::ring, 4)}));
  EXPECT_EQ(way(ring, {0, 1, Bytes(1)}), (Names{"rank 0 -> rank 1 (net)"}));
  EXPECT_EQ(way(ring, {0, 3, Bytes(1)}), (Names{"rank 0 -> rank 3 (net)"}));
  EXPECT_EQ(way(ring, {0, 2, Bytes(1)}), (Names{"rank 0 -> rank 1 (net)", "rank 1 -> rank 2 (net)"}));
  EXPECT_EQ(way(ring, {3, 1, Bytes(1)}), (Names{"rank 3 -> rank 0 (net)", "rank 0 -> rank 1 (net)"}));
}

TEST(Topology, FullyConnectedIsOneHopAndASwitchTwo) {
  const Topology direct(machine_with({dimension(DimensionKind::fully_connected, 4)}));
  EXPECT_EQ(way(direct, {3, 1, Bytes(1)}), (Names{"rank 3 -> rank 1 (net)"}));
  const Topology star(machine_with({dimension(DimensionKind::switched, 4)}));
  EXPECT_EQ(way(star, {3, 1, Bytes(1)}), (Names{"rank 3 -> switch (net)", "switch -> rank 1 (net)"}));
}

TEST(Topology, WithoutASwitchCablesOfAPairAreALinkAndPcieIsOne) {
  Dimension joined = dimension(DimensionKind::switched, 4);
  joined.cables = {{0, 1}, {1, 2}, {2, 3}};
  const Topology topology(machine_with({joined}));
  EXPECT_EQ(way(topology, {3, 1, Bytes(1)}), (Names{"rank 3 -> PCIe (net)", "PCIe -> rank 1 (net)"}));
  EXPECT_EQ(way(topology, {2, 1, Bytes(1)}),
            (Names{"rank 2 -> cables to rank 1 (net)", "cables from rank 2 -> rank 1 (net)"}));
  // Of a ring that goes along cables, as fast as these together are.
  Message in_ring{3, 1, Bytes(1)};
  in_ring.share = 1;
  Machine machine = machine_with({joined});
  machine.device.host_bandwidth = Bandwidth(joined.bandwidth.value / 4);
  EXPECT_EQ(way(Topology(machine), in_ring), (Names{"rank 3 -> cables of rings to rank 1 (net)",
                                                    "cables of rings from rank 3 -> rank 1 (net)"}));
  in_ring.share = 0.25;
  EXPECT_EQ(way(Topology(machine), in_ring), (Names{"rank 3 -> PCIe (net)", "PCIe -> rank 1 (net)"}));
}

TEST(Topology, DimensionsAreCrossedInOrder) {
  const Topology topology(
      machine_with({dimension(DimensionKind::ring, 4, "a"), dimension(DimensionKind::switched, 3, "b")}));
  // rank = a + 4 b: from (1, 0) to (2, 2).
  EXPECT_EQ(way(topology, {1, 10, Bytes(1)}),
            (Names{"rank 1 -> rank 2 (a)", "rank 2 -> switch (b)", "switch -> rank 10 (b)"}));
  EXPECT_EQ(way(topology, {1, 9, Bytes(1), 1}), (Names{"rank 1 -> switch (b)", "switch -> rank 9 (b)"}));
}

TEST(Topology, EveryPairIsReachedOverEveryKind) {
  const Topology topology(
      machine_with({dimension(DimensionKind::ring, 5), dimension(DimensionKind::fully_connected, 3),
                    dimension(DimensionKind::switched, 2), dimension(DimensionKind::ring, 2)}));
  for (std::int32_t from = 0; from < topology.ranks(); ++from) {
    for (std::int32_t to = 0; to < topology.ranks(); ++to) way(topology, {from, to, Bytes(1)});
  }
}

}  // namespace
}  // namespace armilla
