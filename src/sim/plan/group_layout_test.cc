#include "sim/group_layout.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

Machine grid(std::vector<std::int64_t> sizes) {
  Machine machine;
  for (const std::int64_t size : sizes)
    machine.dimensions.push_back({"d", DimensionKind::switched, size, gigabytes_per_second(1), Time(0)});
  return machine;
}

using Sizes = std::vector<std::int64_t>;

TEST(GroupLayout, TheWholeMachineIsItsGrid) {
  const GroupLayout layout = lay_out({0, 1, 2, 3, 4, 5}, grid({2, 3}));
  EXPECT_EQ(layout.sizes(), (Sizes{2, 3}));
  EXPECT_EQ(layout.position(5, 0), 1);
  EXPECT_EQ(layout.position(5, 1), 2);
  EXPECT_EQ(layout.member(5, 1, 2, 0), 1);
}

TEST(GroupLayout, ASubGridHasItsOwnSizes) {
  // Every other rank of the inner dimension, in the upper half of the outer one.
  const GroupLayout layout = lay_out({8, 10, 12, 14}, grid({4, 4}));
  EXPECT_EQ(layout.sizes(), (Sizes{2, 2}));
  EXPECT_EQ(layout.position(14, 0), 1);
  EXPECT_EQ(layout.position(14, 1), 1);
  EXPECT_EQ(layout.member(14, 0, 1, 0), 12);
  EXPECT_EQ(layout.flat_position(12), 2);
}

TEST(GroupLayout, AnythingElseIsFlat) {
  EXPECT_FALSE(lay_out({0, 1, 2, 5}, grid({4, 4})).is_grid());
  EXPECT_FALSE(lay_out({1, 0}, grid({4})).is_grid());
  const GroupLayout layout = lay_out({5, 0, 2}, grid({4, 4}));
  EXPECT_FALSE(layout.is_grid());
  EXPECT_EQ(layout.flat_position(5), 0);
  EXPECT_EQ(layout.flat_position(0), 1);
  EXPECT_EQ(layout.flat_position(2), 2);
}

TEST(GroupLayout, PositionsAndMembersAreInverse) {
  const GroupLayout layout = lay_out({0, 2, 12, 14, 24, 26}, grid({4, 3, 3}));
  ASSERT_EQ(layout.sizes(), (Sizes{2, 1, 3}));
  for (const std::int32_t rank : layout.ranks) {
    for (std::uint32_t d = 0; d < 3; ++d) {
      const std::int32_t here = layout.position(rank, d);
      for (std::int32_t to = 0; to < layout.sizes()[d]; ++to) {
        const std::int32_t other = layout.member(rank, d, here, to);
        EXPECT_EQ(layout.position(other, d), to);
        EXPECT_EQ(layout.member(other, d, to, here), rank);
      }
    }
  }
}

}  // namespace
}  // namespace armilla
