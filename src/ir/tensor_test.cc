#include "ir/tensor.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace armilla {
namespace {

TEST(Tensor, NamesAndTypesMapBothWays) {
  for (const std::string_view name : dtype_names()) {
    const auto dtype = dtype_from_name(name);
    ASSERT_TRUE(dtype.has_value()) << name;
    EXPECT_EQ(name_of(*dtype), name);
  }
  EXPECT_FALSE(dtype_from_name("float32").has_value());
  EXPECT_FALSE(dtype_from_name("unknown").has_value());
}

TEST(Tensor, ElementCounts) {
  EXPECT_EQ(element_count({}, "t"), 1);
  EXPECT_EQ(element_count({2, 3, 5}, "t"), 30);
  EXPECT_EQ(element_count({2, 0, 5}, "t"), 0);
}

TEST(Tensor, OverflowAndNegativeDimensionsAreErrors) {
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THROW(element_count({huge, huge}, "t"), Error);
  EXPECT_THROW(element_count({huge, huge, 0}, "t"), Error);
  EXPECT_THROW(size_of(std::int64_t{1} << 60, DType::fp32, "t"), Error);
  try {
    element_count({2, -3}, "input 'x'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "input 'x': the shape 2x-3 has a negative dimension");
  }
}

TEST(Tensor, SubByteTypesRoundUp) {
  EXPECT_EQ(size_of(3, DType::int4, "t"), Bytes(2));
  EXPECT_EQ(size_of(3, DType::bf16, "t"), Bytes(6));
}

}  // namespace
}  // namespace armilla
