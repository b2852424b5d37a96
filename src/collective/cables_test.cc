#include "collective/cables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace armilla {
namespace {

// Of a DGX-1, as machines/clusters/dgx-1.yaml.
const std::vector<MemberCable> kCubeMesh = {{0, 1}, {0, 2}, {0, 3}, {0, 3}, {0, 4}, {0, 4}, {1, 2}, {1, 2},
                                            {1, 3}, {1, 5}, {1, 5}, {2, 3}, {2, 3}, {2, 6}, {3, 7}, {4, 5},
                                            {4, 6}, {4, 7}, {4, 7}, {5, 6}, {5, 6}, {5, 7}, {6, 7}, {6, 7}};

Dimension cube_mesh() {
  Dimension dimension;
  dimension.size = 8;
  dimension.bandwidth = Bandwidth(150e9);
  dimension.cables = kCubeMesh;
  return dimension;
}

std::vector<std::int32_t> first_members(std::int32_t count) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(count));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// As many as nccl-tests' bus bandwidths of 2 to 8 GPUs say: 22, 45, 85, (no ring), 46, 87, 134 GB/s.
TEST(Cables, RingsOfADgx1AreThoseThatNcclFinds) {
  const std::int32_t expected[] = {1, 2, 4, 0, 2, 4, 6};
  for (std::int32_t count = 2; count <= 8; ++count)
    EXPECT_EQ(find_rings(kCubeMesh, first_members(count)).rings, expected[count - 2]) << count;
  EXPECT_TRUE(find_rings(kCubeMesh, first_members(5)).chain);
}

TEST(Cables, OrdersOfRingsShareNoCable) {
  const MemberRings found = find_rings(kCubeMesh, first_members(8));
  ASSERT_EQ(found.orders.size(), 6U);
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> taken;
  for (const std::vector<std::int32_t>& order : found.orders) {
    EXPECT_TRUE(std::ranges::is_permutation(order, first_members(8)));
    for (std::size_t i = 0; i < order.size(); ++i) ++taken[{order[i], order[(i + 1) % order.size()]}];
  }
  for (const auto& [ends, rings] : taken)
    EXPECT_LE(rings, cables_between(cube_mesh(), ends.first, ends.second));
  const std::vector<MemberCable> chain = {{0, 2}, {2, 1}};
  EXPECT_EQ(find_rings(chain, first_members(3)).orders,
            (std::vector<std::vector<std::int32_t>>{{0, 2, 1}, {1, 2, 0}}));
  EXPECT_EQ(find_rings({}, first_members(2)).orders,
            (std::vector<std::vector<std::int32_t>>{{0, 1}, {1, 0}}));
}

TEST(Cables, WhereMembersLieDecides) {
  EXPECT_EQ(find_rings(kCubeMesh, std::vector<std::int32_t>{0, 3}).rings, 2);
  const MemberRings apart = find_rings(kCubeMesh, std::vector<std::int32_t>{0, 5});
  EXPECT_EQ(apart.rings, 0);
  EXPECT_FALSE(apart.chain);
  EXPECT_EQ(find_rings(kCubeMesh, std::vector<std::int32_t>{0, 1, 4, 5}).rings, 2);
}

// Between all pairs of n members n - 1 rings are disjoint, but for 4 and 6 (Tillson 1980).
TEST(Cables, AllPairsHaveAsManyRingsAsNeighbours) {
  for (const std::int32_t count : {3, 5, 7, 8}) {
    std::vector<MemberCable> all;
    for (std::int32_t a = 0; a < count; ++a) {
      for (std::int32_t b = a + 1; b < count; ++b) all.push_back({a, b});
    }
    EXPECT_EQ(find_rings(all, first_members(count)).rings, count - 1) << count;
  }
  const std::vector<MemberCable> four = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  EXPECT_EQ(find_rings(four, first_members(4)).rings, 2);
}

TEST(Cables, ACollectiveAttainsItsRingsAnAllReduceItsChain) {
  const Dimension mesh = cube_mesh();
  const Bandwidth pcie(16e9);
  const auto attained = [&](std::vector<std::int32_t> members, CollectiveKind kind) {
    return attained_on_cables(mesh, members, kind, pcie).value / 1e9;
  };
  EXPECT_DOUBLE_EQ(cable_bandwidth(mesh).value, 25e9);
  EXPECT_DOUBLE_EQ(attained(first_members(8), CollectiveKind::all_reduce), 150);
  EXPECT_DOUBLE_EQ(attained(first_members(5), CollectiveKind::all_reduce), 25 * 2 * 4 / 5.0);
  EXPECT_DOUBLE_EQ(attained(first_members(5), CollectiveKind::all_gather), 16);
  EXPECT_DOUBLE_EQ(attained({0, 5}, CollectiveKind::all_reduce), 16);
  // GPU 0 reaches 5, 6 and 7 over PCIe alone.
  EXPECT_DOUBLE_EQ(attained(first_members(8), CollectiveKind::all_to_all), 7 * 16 / 3.0);
  EXPECT_DOUBLE_EQ(attained(first_members(2), CollectiveKind::all_to_all), 25);
}

TEST(Cables, MessagesTakeTheCablesOfTheirPair) {
  const Dimension mesh = cube_mesh();
  EXPECT_DOUBLE_EQ(pair_bandwidth(mesh, 0, 1, Bandwidth(16e9)).value, 25e9);
  EXPECT_DOUBLE_EQ(pair_bandwidth(mesh, 4, 0, Bandwidth(16e9)).value, 50e9);
  EXPECT_DOUBLE_EQ(pair_bandwidth(mesh, 0, 5, Bandwidth(16e9)).value, 16e9);
  EXPECT_DOUBLE_EQ(pair_bandwidth(mesh, 0, 5, Bandwidth(0)).value, 25e9);
}

}  // namespace
}  // namespace armilla
