#include "network/routing/ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error_testing.h"

namespace armilla {
namespace {

Machine mixed_machine() {
  Machine machine;
  machine.dimensions = {{"ring", DimensionKind::ring, 5, gigabytes_per_second(1), nanoseconds(1)},
                        {"all", DimensionKind::fully_connected, 3, gigabytes_per_second(2), nanoseconds(2)},
                        {"rail", DimensionKind::switched, 2, gigabytes_per_second(3), nanoseconds(3)}};
  return machine;
}

// Two devices, and two ways between them: over one switch or another, or over both.
Machine diamond(double first_width, double second_width) {
  Machine machine;
  machine.dimensions = {{"fabric", DimensionKind::switched, 2, gigabytes_per_second(1), nanoseconds(1)}};
  Interconnect& graph = machine.graph;
  graph.nodes = {{NetworkNodeKind::device, "a"},
                 {NetworkNodeKind::device, "b"},
                 {NetworkNodeKind::switched, "s"},
                 {NetworkNodeKind::switched, "t"}};
  const auto join = [&](std::uint32_t a, std::uint32_t b, double width) {
    const LinkFigures figures = {gigabytes_per_second(width), nanoseconds(10), 0};
    graph.cables.push_back({a, b, figures, figures, 0});
  };
  join(0, 2, first_width);
  join(0, 3, second_width);
  join(2, 1, first_width);
  join(3, 1, second_width);
  join(2, 3, 100);
  return machine;
}

TEST(Ways, OverDimensionsAreThoseOfTheTopology) {
  const Machine machine = mixed_machine();
  const Topology topology(machine);
  Ways ways(machine, {}, "ecmp");
  for (std::int32_t source = 0; source < 30; ++source) {
    for (std::int32_t destination = 0; destination < 30; ++destination) {
      if (source == destination) continue;
      const Message message{source, destination, Bytes(1)};
      Position at = topology.start(message);
      auto node = static_cast<std::uint32_t>(source);
      for (const std::uint32_t number : ways.way(message)) {
        ASSERT_GT(at.hops_left, 0);
        const LinkId id = topology.advance(message, at);
        const DirectedLink& link = ways.links()[number];
        EXPECT_EQ(link.dimension, id.dimension);
        EXPECT_EQ(link.from, node) << "from " << source << " to " << destination;
        node = link.to;
        if (!at.at_switch) {
          EXPECT_EQ(node, static_cast<std::uint32_t>(at.rank));
        }
      }
      EXPECT_EQ(at.hops_left, 0);
      EXPECT_EQ(node, static_cast<std::uint32_t>(destination));
    }
  }
}

// No two links of the topology are the same one here.
TEST(Ways, LinksOfDimensionsAreDistinct) {
  const Machine machine = mixed_machine();
  Ways ways(machine, {}, "ecmp");
  std::set<std::uint32_t> used;
  for (std::int32_t source = 0; source < 30; ++source) {
    for (std::int32_t destination = 0; destination < 30; ++destination) {
      if (source == destination) continue;
      const std::span<const std::uint32_t> way = ways.way({source, destination, Bytes(1)});
      used.insert(way.begin(), way.end());
    }
  }
  // 30 devices: two links each on the ring and at the switch, two to the others of a group of three.
  EXPECT_EQ(used.size(), 30U * (2 + 2 + 2));
  EXPECT_EQ(ways.links().size(), used.size());
}

TEST(Ways, OverAGraphAreTheWidestOfTheShortest) {
  for (const bool first : {true, false}) {
    Ways ways(diamond(first ? 4 : 1, first ? 1 : 4), {}, "ecmp");
    const std::span<const std::uint32_t> way = ways.way({0, 1, Bytes(1)});
    ASSERT_EQ(way.size(), 2U);
    EXPECT_EQ(ways.link_name(way[0]), first ? "a -> s (fabric)" : "a -> t (fabric)");
    EXPECT_EQ(ways.link_name(way[1]), first ? "s -> b (fabric)" : "t -> b (fabric)");
  }
}

// 64 devices on each of two leaf switches below 8 spines: pairs spread over all spines, or over none.
TEST(Ways, EqualOnesAreSharedOutByAHash) {
  Machine machine;
  machine.dimensions = {{"fabric", DimensionKind::switched, 128, gigabytes_per_second(1), nanoseconds(1)}};
  for (int i = 0; i < 128; ++i) machine.graph.nodes.push_back({NetworkNodeKind::device, "d"});
  for (int i = 0; i < 10; ++i) machine.graph.nodes.push_back({NetworkNodeKind::switched, "s"});
  const LinkFigures figures = {gigabytes_per_second(1), nanoseconds(1), 0};
  for (std::uint32_t i = 0; i < 128; ++i)
    machine.graph.cables.push_back({i, 128 + i / 64, figures, figures, 0});
  for (std::uint32_t i = 0; i < 16; ++i)
    machine.graph.cables.push_back({128 + i / 8, 130 + i % 8, figures, figures, 0});
  const NetworkGraph packets = network_graph(machine.graph);
  for (const std::string routing : {"ecmp", "ecmp-ns3", "first"}) {
    const bool hashed = routing != "first";
    Ways ways(machine, {}, routing);
    std::map<std::uint32_t, int> over;
    for (std::int32_t from = 0; from < 64; ++from) {
      for (std::int32_t to = 64; to < 128; ++to) {
        const std::span<const std::uint32_t> way = ways.way({from, to, Bytes(1)});
        ASSERT_EQ(way.size(), 4U);
        ++over[ways.links()[way[1]].to];
        if (routing != "ecmp-ns3") continue;
        // As of ns-3's first flow between the two.
        const TrafficFlow flow{from, to, 1};
        const Routes routes(packets, 1000, std::array{static_cast<std::uint32_t>(to)});
        EXPECT_EQ(way[1], next_port(packets, routes, 128, addresses_of({&flow, 1}).front()));
        EXPECT_EQ(ways.links()[way[3]].to, static_cast<std::uint32_t>(to));
      }
    }
    EXPECT_EQ(over.size(), hashed ? 8U : 1U);
    if (!hashed) continue;
    for (const auto& [spine, count] : over) EXPECT_NEAR(count, 512, 80) << spine;
  }
}

// Of eight devices below a leaf each sends to one below another leaf, over four spines: two for each link up
// and down if none collide.
TEST(Ways, SayWhereHashesCollide) {
  constexpr std::uint32_t kBelow = 8, kSpines = 4;
  Machine machine;
  machine.dimensions = {
      {"fabric", DimensionKind::switched, 2 * kBelow, gigabytes_per_second(1), nanoseconds(1)}};
  Interconnect& graph = machine.graph;
  const LinkFigures figures = {gigabytes_per_second(1), nanoseconds(10), 0};
  for (std::uint32_t d = 0; d < 2 * kBelow; ++d)
    graph.nodes.push_back({NetworkNodeKind::device, "d" + std::to_string(d)});
  for (std::uint32_t s = 0; s < 2 + kSpines; ++s)
    graph.nodes.push_back(
        {NetworkNodeKind::switched, (s < 2 ? "leaf" : "spine") + std::to_string(s < 2 ? s : s - 2)});
  for (std::uint32_t d = 0; d < 2 * kBelow; ++d)
    graph.cables.push_back({d, 2 * kBelow + d / kBelow, figures, figures, 0});
  for (std::uint32_t leaf = 0; leaf < 2; ++leaf) {
    for (std::uint32_t spine = 0; spine < kSpines; ++spine)
      graph.cables.push_back({2 * kBelow + leaf, 2 * kBelow + 2 + spine, figures, figures, 0});
  }
  for (const char* const routing : {"ecmp", "first", "spray"}) {
    Ways ways(machine, {}, routing);
    EXPECT_EQ(ways.collision_note(), "");
    std::map<std::string, int> taken;  // by link up
    for (std::int32_t from = 0; from < 8; ++from) {
      const Message message{from, from + 8, Bytes(1)};
      if (ways.routing().choice == WayChoice::first) ++taken[ways.link_name(ways.way(message)[1])];
      ways.ways(message);
      ways.ways(message);  // known already
    }
    const std::string note = ways.collision_note();
    if (std::string_view(routing) != "ecmp") {
      EXPECT_EQ(note, "") << routing;  // nobody hashes
      continue;
    }
    const auto most = std::max_element(taken.begin(), taken.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_GE(most->second, 3) << "by this hash";
    EXPECT_EQ(note, "hashed ways (ecmp) collide: " + most->first + " is on the way of " +
                        std::to_string(most->second) +
                        " pairs of devices, and 2 would be its even share; routing=spray takes all ways");
    ways.forget_pairs();
    EXPECT_EQ(ways.collision_note(), "");
    // Where all eight also send to one device its own link is what they wait for.
    for (std::int32_t from = 0; from < 8; ++from) ways.ways({from, from + 8, Bytes(1)});
    EXPECT_EQ(ways.collision_note(), note);
    for (std::int32_t from = 0; from < 8; ++from) ways.ways({from, 15, Bytes(1)});
    EXPECT_EQ(ways.collision_note(), "");
  }
  Ways alone(machine, {}, "ecmp");
  alone.ways({0, 8, Bytes(1)});
  EXPECT_EQ(alone.collision_note(), "") << "one pair meets nobody";
}

TEST(Ways, SlowLinksAreThoseOfTheRanks) {
  const SlowLinks slow = {0, {1, 1}, 0.5, 2};
  Ways ways(diamond(4, 1), std::vector{slow}, "ecmp");
  const std::span<const std::uint32_t> way = ways.way({0, 1, Bytes(1)});
  EXPECT_EQ(ways.links()[way[0]].figures.bandwidth, gigabytes_per_second(4));
  EXPECT_EQ(ways.links()[way[1]].figures.bandwidth, gigabytes_per_second(2));
  EXPECT_EQ(ways.links()[way[1]].figures.latency, nanoseconds(20));
}

TEST(Ways, SaysWhereNoWayLeads) {
  Machine machine = diamond(1, 1);
  machine.graph.cables.resize(2);
  Ways ways(machine, {}, "ecmp");
  EXPECT_EQ(error_of([&] { ways.way({0, 1, Bytes(1)}); }), "network: no way leads from 'a' to 'b'");
  EXPECT_EQ(
      error_of([&] { validate_interconnect(machine.graph, "machine 'm'"); }),
      "machine 'm': no way leads from 'a' to 'b'\n  hint: devices do not forward: join them over switches");
}

}  // namespace
}  // namespace armilla
