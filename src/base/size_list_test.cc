#include "base/size_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> texts(const std::string& text) {
  std::vector<std::string> all;
  for (const ListedSize& size : parse_sizes(text, "--bytes")) all.push_back(size.text);
  return all;
}

TEST(SizeList, RangesOfNumbersDouble) {
  EXPECT_THAT(numbers_of_range("1..8", ""), ElementsAre("1", "2", "4", "8"));
  EXPECT_THAT(numbers_of_range("3..20", ""), ElementsAre("3", "6", "12", "20"));
  EXPECT_THAT(numbers_of_range("0..3", ""), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(numbers_of_range("0..0", ""), ElementsAre("0"));
  for (const char* const wrong : {"8..2", "..8", "1..", "-1..2", "a..b", "1"})
    EXPECT_EQ(error_of([&] { numbers_of_range(wrong, "--tp"); }),
              std::string("--tp: '") + wrong +
                  "' is not a range\n  hint: a range has two whole numbers and goes up, such as 1..8");
}

std::vector<std::int64_t> bytes(const std::string& text) {
  std::vector<std::int64_t> all;
  for (const ListedSize& size : parse_sizes(text, "--bytes")) all.push_back(size.bytes.value);
  return all;
}

TEST(SizeList, ASizeIsShownAsTyped) {
  EXPECT_THAT(texts("1GB"), ElementsAre("1GB"));
  EXPECT_THAT(bytes("1GB"), ElementsAre(1'000'000'000));
  EXPECT_THAT(texts("8"), ElementsAre("8"));
  EXPECT_THAT(bytes("8"), ElementsAre(8));
}

TEST(SizeList, RangesDoubleAndHaveBothEnds) {
  EXPECT_THAT(texts("256KiB..2MiB"), ElementsAre("256KiB", "512KiB", "1MiB", "2MiB"));
  EXPECT_THAT(texts("1MB..5MB"), ElementsAre("1MB", "2MB", "4MB", "5MB"));
  EXPECT_THAT(bytes("512B..1024"), ElementsAre(512, 1024));
  EXPECT_THAT(texts("1.5MiB..3MiB"), ElementsAre("1.5MiB", "3MiB"));
  EXPECT_THAT(texts("3KiB..3KiB"), ElementsAre("3KiB"));
}

TEST(SizeList, WhatIsNoRangeIsRefused) {
  EXPECT_EQ(error_of([] { parse_sizes("1GiB..1MiB", "--bytes"); }),
            "--bytes: '1GiB..1MiB' is not a range of sizes\n"
            "  hint: a range goes up from at least 1B, such as 1MiB..1GiB");
  EXPECT_EQ(error_of([] { parse_sizes("0B..1MiB", "--bytes"); }),
            "--bytes: '0B..1MiB' is not a range of sizes\n"
            "  hint: a range goes up from at least 1B, such as 1MiB..1GiB");
  for (const std::string open : {"1MiB..", "..1MiB", ".."}) {
    EXPECT_EQ(error_of([&] { parse_sizes(open, "--bytes"); }),
              "--bytes: '" + open +
                  "' is not a range of sizes\n  hint: a range has both its ends, such as 1MiB..1GiB");
  }
}

}  // namespace
}  // namespace armilla
