#include "ir/derived/rank_ranges.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

TEST(RankRanges, SingleRanksAndRangesInTheOrderGiven) {
  const std::vector<RankRange> ranges = parse_rank_ranges("0-7,128,9-9", "here");
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].first, 0);
  EXPECT_EQ(ranges[0].last, 7);
  EXPECT_EQ(ranges[1].first, 128);
  EXPECT_EQ(ranges[1].last, 128);
  EXPECT_EQ(ranges[2].first, 9);
  EXPECT_EQ(ranges[2].last, 9);
}

TEST(RankRanges, AnythingElseIsRefused) {
  const auto error = [](const char* text) { return error_of([&] { parse_rank_ranges(text, "here"); }); };
  const std::string hint =
      " is neither a rank nor a range of ranks\n  hint: write ranks as 3, 0-7 or 0-7,128";
  EXPECT_EQ(error(""), "here: ''" + hint);
  EXPECT_EQ(error("all"), "here: 'all'" + hint);
  EXPECT_EQ(error("1,"), "here: ''" + hint);
  EXPECT_EQ(error("-1"), "here: '-1'" + hint);
  EXPECT_EQ(error("1-2-3"), "here: '1-2-3'" + hint);
  EXPECT_EQ(error("7-0"), "here: the range 7-0 runs backwards\n  hint: write 0-7");
  EXPECT_NE(error("99999999999999999999"), "");
}

TEST(RankRanges, RanksMustExist) {
  check_rank_ranges({{0, 7}}, 8, "here");
  EXPECT_EQ(error_of([] {
              check_rank_ranges({{0, 3}, {4, 8}}, 8, "here");
            }),
            "here: there is no rank 8\n  hint: ranks are 0 to 7");
  EXPECT_EQ(error_of([] {
              check_rank_ranges({{1, 1}}, 1, "here");
            }),
            "here: there is no rank 1\n  hint: the only rank is 0");
}

}  // namespace
}  // namespace armilla
