#include "ir/derived/torus_slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TorusSlice, IsAsNearToACubeAsItGoes) {
  EXPECT_THAT(slice_sides(64, 3, 4, 1), ElementsAre(4, 4, 4));
  EXPECT_THAT(slice_sides(512, 3, 4, 1), ElementsAre(8, 8, 8));
  EXPECT_THAT(slice_sides(3072, 3, 4, 1), ElementsAre(12, 16, 16));
  EXPECT_THAT(slice_sides(192, 3, 4, 1), ElementsAre(4, 4, 12));
  EXPECT_THAT(slice_sides(128, 2, 4, 1), ElementsAre(8, 16));
  EXPECT_THAT(slice_sides(7, 3, 1, 1), ElementsAre(7, 1, 1));
}

TEST(TorusSlice, MayBeAPartOfACubeThatDividesIt) {
  EXPECT_THAT(slice_sides(8, 2, 4, 1), ElementsAre(2, 4));
  EXPECT_THAT(slice_sides(32, 3, 4, 1), ElementsAre(2, 4, 4));
  EXPECT_THAT(slice_sides(4, 3, 4, 1), ElementsAre(2, 2, 1));
  EXPECT_THAT(slice_sides(1, 3, 4, 1), ElementsAre(1, 1, 1));
  for (const std::int64_t devices : {3, 24, 48, 65, 96, 100})
    EXPECT_THAT(slice_sides(devices, 3, 4, 1), IsEmpty()) << devices;
}

TEST(TorusSlice, BlocksTakeWholeAxesThatComeFirst) {
  EXPECT_THAT(slice_sides(256, 3, 4, 8), ElementsAre(8, 4, 8));
  EXPECT_THAT(slice_sides(256, 3, 4, 32), ElementsAre(4, 8, 8));
  EXPECT_THAT(slice_sides(3072, 3, 4, 16), ElementsAre(16, 12, 16));
  // Where nothing has such axes, sides are those of no block.
  EXPECT_THAT(slice_sides(64, 3, 4, 2), ElementsAre(4, 4, 4));
  EXPECT_THAT(slice_sides(64, 3, 1, 2), ElementsAre(2, 4, 8));
}

}  // namespace
}  // namespace armilla
