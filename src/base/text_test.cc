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

TEST(Text, ANumberIsAllOfTheText) {
  EXPECT_EQ(number_from<std::int32_t>("-12"), -12);
  EXPECT_EQ(number_from<double>("2.5e3"), 2500);
  for (const char* other : {"", " 1", "1 ", "+1", "1x", "2147483648"})
    EXPECT_FALSE(number_from<std::int32_t>(other)) << other;
  EXPECT_FALSE(number_from<std::uint64_t>("-1"));
}

}  // namespace
}  // namespace armilla
