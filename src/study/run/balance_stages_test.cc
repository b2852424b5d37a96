#include "study/run/balance_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace armilla {
namespace {

using testing::ElementsAre;

std::vector<Time> times(const std::vector<std::int64_t>& values) {
  std::vector<Time> all;
  for (const std::int64_t value : values) all.push_back(Time(value));
  return all;
}

std::int64_t slowest(const std::vector<std::int64_t>& costs, const std::vector<std::int64_t>& sizes) {
  std::int64_t most = 0, next = 0;
  for (const std::int64_t size : sizes) {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < size; ++i) sum += costs[static_cast<std::size_t>(next++)];
    most = std::max(most, sum);
  }
  EXPECT_EQ(next, static_cast<std::int64_t>(costs.size()));
  return most;
}

// Every way to cut costs[first ..] into so many stages.
std::int64_t best(const std::vector<std::int64_t>& costs, std::size_t first, std::int64_t stages) {
  if (stages == 1) {
    std::int64_t sum = 0;
    for (std::size_t i = first; i < costs.size(); ++i) sum += costs[i];
    return sum;
  }
  std::int64_t least = INT64_MAX, sum = 0;
  for (std::size_t end = first + 1; end + static_cast<std::size_t>(stages) - 1 <= costs.size(); ++end) {
    sum += costs[end - 1];
    least = std::min(least, std::max(sum, best(costs, end, stages - 1)));
  }
  return least;
}

TEST(BalanceStages, AHeadThatCostsThreeLayersTakesTheirPlace) {
  EXPECT_THAT(balanced_cut(times({1, 10, 10, 10, 10, 10, 10, 10, 10, 30}), 4), ElementsAre(3, 3, 3, 1));
}

TEST(BalanceStages, EveryStageGetsABlockAndLaterOnesMore) {
  EXPECT_THAT(balanced_cut(times({0, 0, 0, 0}), 3), ElementsAre(1, 1, 2));
  EXPECT_THAT(balanced_cut(times({5, 5, 5, 5, 5}), 2), ElementsAre(2, 3));
  EXPECT_THAT(balanced_cut(times({7}), 1), ElementsAre(1));
}

TEST(BalanceStages, NoCutHasAFasterSlowestStage) {
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    const auto next = [&] { return (state = state * 1664525 + 1013904223) >> 16; };
    std::vector<std::int64_t> costs(1 + next() % 9);
    for (std::int64_t& cost : costs) cost = next() % 20;
    const std::int64_t stages = 1 + next() % static_cast<std::uint32_t>(costs.size());
    const std::vector<std::int64_t> sizes = balanced_cut(times(costs), stages);
    ASSERT_EQ(sizes.size(), static_cast<std::size_t>(stages));
    EXPECT_GT(*std::min_element(sizes.begin(), sizes.end()), 0);
    EXPECT_EQ(slowest(costs, sizes), best(costs, 0, stages));
  }
}

}  // namespace
}  // namespace armilla
