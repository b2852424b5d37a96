#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "collective/algorithms/alpha_beta_testing.h"

namespace armilla {
namespace {

class ScatterGatherTest : public testing::TestWithParam<std::int32_t> {
 protected:
  const std::int32_t n = GetParam();
  const std::int64_t block = ceil_divide(kBytes, n - 1);
};

TEST_P(ScatterGatherTest, TakesTwoExchangesOfPieces) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    for (const std::int32_t root : {0, n / 2, n - 1}) {
      const Schedule pieces = schedule_of("scatter-gather", kind, n, kBytes, root);
      EXPECT_EQ(finish_time(pieces), (n == 2 ? 1 : 2) * (kAlpha + kBeta * block)) << name_of(kind);
      EXPECT_EQ(total_bytes(pieces), std::int64_t{n - 1} * (n - 1) * block);
    }
  }
}

TEST_P(ScatterGatherTest, NoPairCarriesMoreThanOnePiece) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    const Schedule pieces = schedule_of("scatter-gather", kind, n, kBytes, 1);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> carried;
    for (std::int32_t member = 0; member < n; ++member) {
      for (const Transfer& transfer : pieces.of(member).sends)
        carried[{member, pieces.peer(member, transfer)}] += transfer.bytes.value;
    }
    for (const auto& [pair, bytes] : carried) EXPECT_EQ(bytes, block) << pair.first << " to " << pair.second;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ScatterGatherTest, testing::Values(2, 3, 4, 7, 8, 16, 33));

TEST(ScatterGatherSizeTest, RefusesGroupsWhoseSchedulesWouldBeHuge) {
  try {
    schedule_of("scatter-gather", CollectiveKind::broadcast, 1025, 1000);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "collective: scatter-gather over 1025 ranks: at most 1024\n"
                 "  hint: use ring or halving-doubling");
  }
}

}  // namespace
}  // namespace armilla
