#include "ir/derived/interconnect_figures.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "ir/machine.h"

namespace armilla {
namespace {

Machine hierarchy(std::vector<Dimension> dimensions) {
  Machine machine;
  machine.dimensions = std::move(dimensions);
  return machine;
}

TEST(InterconnectFigures, OfHierarchies) {
  // A torus of 4 x 4: two columns of rings are cut, each twice.
  const InterconnectFigures torus = figures_of(
      links_of(hierarchy({{"x", DimensionKind::ring, 4, gigabytes_per_second(1), nanoseconds(1)},
                          {"y", DimensionKind::ring, 4, gigabytes_per_second(1), nanoseconds(1)}})));
  EXPECT_EQ(torus.devices, 16);
  EXPECT_EQ(torus.switches, 0);
  EXPECT_EQ(torus.cables, 32);
  EXPECT_EQ(torus.diameter, 4);
  EXPECT_NEAR(torus.bisection.value, 8e9, 1);
  EXPECT_EQ(torus.oversubscription, 0);

  const InterconnectFigures all = figures_of(links_of(
      hierarchy({{"all", DimensionKind::fully_connected, 6, gigabytes_per_second(1), nanoseconds(1)}})));
  EXPECT_EQ(all.cables, 15);
  EXPECT_EQ(all.diameter, 1);
  EXPECT_NEAR(all.bisection.value, 9e9, 1);

  const InterconnectFigures star = figures_of(
      links_of(hierarchy({{"s", DimensionKind::switched, 6, gigabytes_per_second(2), nanoseconds(1)}})));
  EXPECT_EQ(star.switches, 1);
  EXPECT_EQ(star.diameter, 2);
  EXPECT_NEAR(star.bisection.value, 6e9, 1);
}

TEST(InterconnectFigures, OversubscriptionIsOfTheWorstSwitch) {
  Interconnect graph;
  for (int i = 0; i < 8; ++i) graph.nodes.push_back({NetworkNodeKind::device, "d"});
  for (int i = 0; i < 3; ++i) graph.nodes.push_back({NetworkNodeKind::switched, "s"});
  const auto join = [&](std::uint32_t a, std::uint32_t b, double width) {
    const LinkFigures figures = {gigabytes_per_second(width), nanoseconds(1), 0};
    graph.cables.push_back({a, b, figures, figures, 0});
  };
  for (std::uint32_t i = 0; i < 8; ++i) join(i, 8 + i / 4, 1);
  join(8, 10, 2);
  join(9, 10, 1);
  const InterconnectFigures figures = figures_of(graph);
  EXPECT_NEAR(figures.oversubscription, 4, 1e-12);
  EXPECT_NEAR(figures.bisection.value, 1e9, 1);
  EXPECT_EQ(figures.diameter, 4);
}

// Along the longest axis, whichever it is: of a torus two columns are cut, of sizes that are odd with a step.
TEST(InterconnectFigures, TellTheLeastBisectionOfTori) {
  const auto torus = [](std::int64_t x, std::int64_t y, std::int64_t z) {
    Machine machine;
    for (const std::int64_t size : {x, y, z})
      machine.dimensions.push_back({"d", DimensionKind::ring, size, gigabytes_per_second(1), nanoseconds(1)});
    return figures_of(links_of(machine));
  };
  EXPECT_NEAR(torus(8, 2, 1).bisection.value, 16e9, 1);
  EXPECT_NEAR(torus(8, 2, 1).least_bisection.value, 4e9, 1);
  EXPECT_NEAR(torus(2, 8, 1).bisection.value, 4e9, 1);
  EXPECT_NEAR(torus(2, 8, 1).least_bisection.value, 4e9, 1);
  EXPECT_NEAR(torus(3, 12, 4).least_bisection.value, 24e9, 1);
  EXPECT_NEAR(torus(7, 2, 1).least_bisection.value, 6e9, 1);
  EXPECT_NEAR(torus(4, 4, 4).least_bisection.value, 32e9, 1);
  EXPECT_NEAR(torus(16, 1, 1).least_bisection.value, 2e9, 1);
}

// The least cut of small random graphs by trying every set of nodes.
TEST(InterconnectFigures, BisectionIsTheLeastOfAllCuts) {
  std::mt19937 random(11);
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
  for (int round = 0; round < 100; ++round) {
    Interconnect graph;
    constexpr std::uint32_t kDevices = 4, kNodes = 9;
    for (std::uint32_t i = 0; i < kNodes; ++i)
      graph.nodes.push_back({i < kDevices ? NetworkNodeKind::device : NetworkNodeKind::switched, "n"});
    for (int i = 0; i < 16; ++i) {
      const auto a = static_cast<std::uint32_t>(below(kNodes)), b = static_cast<std::uint32_t>(below(kNodes));
      if (a == b) continue;
      const LinkFigures there = {gigabytes_per_second(1 + below(9)), nanoseconds(1), 0},
                        back = {gigabytes_per_second(1 + below(9)), nanoseconds(1), 0};
      graph.cables.push_back({a, b, there, back, 0});
    }
    double least = 1e300;
    for (std::uint32_t side = 0; side < 1U << kNodes; ++side) {
      if ((side & 0b1111) != 0b0011) continue;  // the first two devices here, the others there
      double cut = 0;
      for (const Cable& cable : graph.cables) {
        const bool a = (side >> cable.a & 1) != 0, b = (side >> cable.b & 1) != 0;
        if (a && !b) cut += cable.there.bandwidth.value;
        if (b && !a) cut += cable.back.bandwidth.value;
      }
      least = std::min(least, cut);
    }
    EXPECT_NEAR(figures_of(graph).bisection.value, least, 10);
  }
}

}  // namespace
}  // namespace armilla
