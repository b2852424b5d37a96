#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "collective/algorithms/alpha_beta_testing.h"

namespace armilla {
namespace {

struct DirectCase {
  std::int32_t ranks;
  std::int32_t window;  // 0: none given
};

class DirectTest : public testing::TestWithParam<DirectCase> {
 protected:
  const std::int32_t n = GetParam().ranks;
  const std::int64_t block = (kBytes + n - 1) / n;
  const std::int64_t rounds =
      GetParam().window == 0 ? 1 : (n - 1 + GetParam().window - 1) / GetParam().window;

  Schedule schedule(CollectiveKind kind, std::int32_t root = 0) const {
    const std::string text =
        GetParam().window == 0 ? "direct" : fmt::format("direct:window={}", GetParam().window);
    return schedule_of(text.c_str(), kind, n, kBytes, root);
  }
};

TEST_P(DirectTest, AllReduceTakesTwoExchanges) {
  const Schedule direct = schedule(CollectiveKind::all_reduce);
  EXPECT_EQ(finish_time(direct), 2 * rounds * (kAlpha + kBeta * block));
  EXPECT_EQ(traffic_of(direct, 0), (Traffic{2 * (n - 1), 2 * (n - 1) * block, 2}));
}

TEST_P(DirectTest, OtherSymmetricKindsTakeOneExchange) {
  for (const CollectiveKind kind :
       {CollectiveKind::reduce_scatter, CollectiveKind::all_gather, CollectiveKind::all_to_all}) {
    const Schedule direct = schedule(kind);
    EXPECT_EQ(finish_time(direct), rounds * (kAlpha + kBeta * block)) << name_of(kind);
    EXPECT_EQ(traffic_of(direct, n - 1), (Traffic{n - 1, (n - 1) * block, 1})) << name_of(kind);
  }
  EXPECT_EQ(finish_time(schedule(CollectiveKind::barrier)), rounds * kAlpha);
}

TEST_P(DirectTest, TheRootTalksToEveryone) {
  const Schedule broadcast = schedule(CollectiveKind::broadcast, n - 1);
  EXPECT_EQ(finish_time(broadcast), rounds * (kAlpha + kBeta * kBytes));
  EXPECT_EQ(traffic_of(broadcast, n - 1), (Traffic{n - 1, (n - 1) * kBytes, 1}));
  const Schedule reduce = schedule(CollectiveKind::reduce, n - 1);
  EXPECT_EQ(finish_time(reduce), kAlpha + kBeta * kBytes);
  EXPECT_EQ(reduce.of(n - 1).steps.at(0).reduced, Bytes((n - 1) * kBytes));
}

INSTANTIATE_TEST_SUITE_P(RanksAndWindows, DirectTest,
                         testing::Values(DirectCase{2, 0}, DirectCase{8, 0}, DirectCase{8, 1},
                                         DirectCase{8, 2}, DirectCase{8, 3}, DirectCase{8, 7},
                                         DirectCase{8, 900}, DirectCase{33, 0}, DirectCase{33, 5}));

TEST(DirectOrderTest, NoReceiverIsHitByAllAtOnce) {
  const Schedule direct = schedule_of("direct", CollectiveKind::all_to_all, 9, 900);
  for (std::size_t i = 0; i < 8; ++i) {
    std::set<std::int32_t> receivers;
    for (std::int32_t member = 0; member < 9; ++member)
      receivers.insert(direct.peer(member, direct.of(member).sends[i]));
    EXPECT_EQ(receivers.size(), 9u) << "message " << i;
  }
}

TEST(DirectSizeTest, LargeGroupsShareTheirRoles) {
  const Schedule direct = schedule_of("direct", CollectiveKind::all_reduce, 4096, 1 << 20);
  EXPECT_TRUE(direct.is_symmetric());
  ASSERT_EQ(direct.roles.size(), 1u);
  EXPECT_EQ(direct.roles[0].sends.size(), 2u * 4095);
  EXPECT_EQ(schedule_of("direct", CollectiveKind::reduce, 4096, 1 << 20, 17).roles.size(), 2u);
}

TEST(DirectSizeTest, RefusesAReductionThatOverflows) {
  try {
    schedule_of("direct", CollectiveKind::reduce, 4096, std::int64_t{1} << 60);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "direct reduce: sizes overflow 64 bits\n  hint: check the dimensions");
  }
}

}  // namespace
}  // namespace armilla
