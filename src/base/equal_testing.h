// For tests, part of their precompiled headers: EXPECT_EQ and ASSERT_EQ of a text and a literal. GoogleTest
// compiles a comparison anew for literals of every length, a thousand in these tests; here a literal is a
// pointer, and compared and printed alike.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace armilla {

struct EqualTest : testing::internal::EqHelper {
  using testing::internal::EqHelper::Compare;
  static testing::AssertionResult Compare(const char* left_expression, const char* right_expression,
                                          const std::string& left, const char* right) {
    return testing::internal::CmpHelperEQ(left_expression, right_expression, left, right);
  }
  static testing::AssertionResult Compare(const char* left_expression, const char* right_expression,
                                          std::string_view left, const char* right) {
    return testing::internal::CmpHelperEQ(left_expression, right_expression, left, right);
  }
};

}  // namespace armilla

#undef EXPECT_EQ
#undef ASSERT_EQ
#define EXPECT_EQ(left, right) EXPECT_PRED_FORMAT2(::armilla::EqualTest::Compare, left, right)
#define ASSERT_EQ(left, right) ASSERT_PRED_FORMAT2(::armilla::EqualTest::Compare, left, right)
