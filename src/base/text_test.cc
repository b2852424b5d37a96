#include "base/text.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(Text, TrimsBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, OnlyAsciiLettersChangeCase) {
  EXPECT_EQ(lower_case("IFMAP Größe_9Z"), "ifmap größe_9z");
}

}  // namespace
}  // namespace armilla
