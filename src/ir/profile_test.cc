#include "ir/profile.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(Profile, ShapesAreReadAsTheyAreWritten) {
  Work work;
  work.gemms = {{1, 2, 3, 1}, {4096, 1024, 8192, 32}};
  EXPECT_EQ(shapes_text(work.gemms), "1x2x3, 32 x 4096x1024x8192");
  EXPECT_EQ(shapes_from(shapes_text(work.gemms)), work.gemms);
  EXPECT_EQ(shapes_from(""), std::vector<Gemm>());
  for (const char* const text : {"1x2", "1x2x3,", "1x2x3, ", "0x1x2", "-1x2x3", "2 x", "1x2x3x4", "axbxc",
                                 "99999999999999999999x1x1", " 1x2x3"})
    EXPECT_FALSE(shapes_from(text)) << text;
}

TEST(Profile, AProductByItselfMovesItsOperandsOnce) {
  const ComputationKey key = product_key({64, 32, 16, 3}, DType::bf16);
  EXPECT_EQ(key.name, "matmul");
  EXPECT_EQ(key.shapes, "3 x 64x32x16");
  EXPECT_EQ(key.flops, 2 * 3 * 64 * 32 * 16);
  EXPECT_EQ(key.bytes, 2 * 3 * (64 * 16 + 16 * 32 + 64 * 32));
}

}  // namespace
}  // namespace armilla
