#include <gtest/gtest.h>

#include <bit>

#include "collective/algorithms/alpha_beta_testing.h"

namespace armilla {
namespace {

constexpr std::int64_t kHalf = 500'002;
constexpr std::int64_t kHop = kAlpha + kBeta * kHalf;

std::int64_t floor_log2(std::int32_t n) {
  return std::bit_width(static_cast<std::uint32_t>(n)) - 1;
}

Schedule tree_schedule(CollectiveKind kind, std::int32_t n, std::int32_t root = 0) {
  return schedule_of("double-binary-tree", kind, n, kBytes, root);
}

TEST(DoubleBinaryTreeTest, AllReduceGoesUpAndDownBothTreesAtOnce) {
  for (std::int32_t n = 2; n <= 130; ++n) {
    const Schedule tree = tree_schedule(CollectiveKind::all_reduce, n);
    EXPECT_EQ(finish_time(tree), 2 * floor_log2(n) * kHop) << n;
    EXPECT_EQ(total_bytes(tree), 4 * (n - 1) * kHalf) << n;
  }
}

// The point of two trees: nobody forwards in both, so nobody sends more than twice its data.
TEST(DoubleBinaryTreeTest, NobodySendsMoreThanTwiceItsData) {
  for (std::int32_t n = 2; n <= 130; ++n) {
    const Schedule tree = tree_schedule(CollectiveKind::all_reduce, n);
    for (std::int32_t member = 0; member < n; ++member) {
      const Traffic traffic = traffic_of(tree, member);
      EXPECT_LE(traffic.bytes, 4 * kHalf) << n << " " << member;
      EXPECT_LE(traffic.steps, 3u) << n << " " << member;
    }
  }
}

TEST(DoubleBinaryTreeTest, RootedKindsHangTheTreesBelowTheRoot) {
  for (std::int32_t n = 2; n <= 66; ++n) {
    for (const std::int32_t root : {0, n / 2, n - 1}) {
      const std::int64_t expected = (floor_log2(n - 1) + 1) * kHop;
      for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
        const Schedule tree = tree_schedule(kind, n, root);
        EXPECT_EQ(finish_time(tree), expected) << name_of(kind) << " " << n << " root " << root;
        EXPECT_EQ(total_bytes(tree), 2 * (n - 1) * kHalf);
      }
      EXPECT_EQ(traffic_of(tree_schedule(CollectiveKind::broadcast, n, root), root).bytes, 2 * kHalf);
    }
  }
}

TEST(DoubleBinaryTreeTest, BarrierUsesOneTreePerChunk) {
  const Algorithm algorithm("double-binary-tree", "test");
  for (std::int32_t n = 2; n <= 40; ++n) {
    const Schedule even = algorithm.schedule({CollectiveKind::barrier, n, Bytes(0), 0, 0, false});
    const Schedule odd = algorithm.schedule({CollectiveKind::barrier, n, Bytes(0), 0, 1, false});
    EXPECT_EQ(finish_time(even), 2 * floor_log2(n) * kAlpha);
    EXPECT_EQ(finish_time(odd), 2 * floor_log2(n) * kAlpha);
    for (std::int32_t member = 0; member < n; ++member)
      EXPECT_FALSE(traffic_of(even, member).messages > 1 && traffic_of(odd, member).messages > 1)
          << member << " of " << n << " is an inner node of both trees";
  }
}

}  // namespace
}  // namespace armilla
