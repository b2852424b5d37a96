#include <gtest/gtest.h>

#include <bit>

#include "base/checked.h"
#include "collective/algorithms/alpha_beta_testing.h"

namespace armilla {
namespace {

Schedule halving_schedule(CollectiveKind kind, std::int32_t n, std::int32_t root = 0) {
  return schedule_of("halving-doubling", kind, n, kBytes, root);
}

class HalvingDoublingTest : public testing::TestWithParam<std::int32_t> {
 protected:
  const std::int32_t n = GetParam();
  const std::int32_t q = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(n)));
  const std::int32_t r = n - q;
  const std::int64_t log_q = std::countr_zero(static_cast<std::uint32_t>(q));
  const std::int64_t rounds_up = r == 0 ? log_q : log_q + 1;  // ceil(log2 n)
  const std::int64_t block = ceil_divide(kBytes, n);
};

TEST_P(HalvingDoublingTest, AllReduceIsThatOfThePowerOfTwoBelowPlusFolding) {
  const std::int64_t piece = ceil_divide(kBytes, q);
  const std::int64_t fold = r == 0 ? 0 : 2 * (kAlpha + kBeta * q * piece);
  EXPECT_EQ(finish_time(halving_schedule(CollectiveKind::all_reduce, n)),
            fold + 2 * log_q * kAlpha + 2 * (q - 1) * kBeta * piece);
}

TEST_P(HalvingDoublingTest, ReduceScatterAndAllGatherMoveEveryBlockToItsOwner) {
  EXPECT_EQ(total_bytes(halving_schedule(CollectiveKind::reduce_scatter, n)),
            block * (std::int64_t{n} * (q - 1) + std::int64_t{r} * n + r));
  EXPECT_EQ(total_bytes(halving_schedule(CollectiveKind::all_gather, n)),
            block * (std::int64_t{n} * (q - 1) + r + std::int64_t{r} * (n - 1)));
  if (r > 0) return;
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
    EXPECT_EQ(finish_time(halving_schedule(kind, n)), log_q * kAlpha + (n - 1) * kBeta * block);
}

TEST_P(HalvingDoublingTest, AllToAllMovesABlockOncePerBitOfItsWay) {
  std::int64_t moves = 0;
  for (std::int32_t way = 1; way < n; ++way) moves += std::popcount(static_cast<std::uint32_t>(way));
  const Schedule exchange = halving_schedule(CollectiveKind::all_to_all, n);
  EXPECT_EQ(finish_time(exchange), rounds_up * kAlpha + kBeta * block * moves);
  EXPECT_EQ(traffic_of(exchange, 0),
            (Traffic{rounds_up, block * moves, static_cast<std::size_t>(rounds_up)}));
}

TEST_P(HalvingDoublingTest, RootedKindsAreBinomialTrees) {
  for (const std::int32_t root : {0, n / 3, n - 1}) {
    const Schedule broadcast = halving_schedule(CollectiveKind::broadcast, n, root);
    EXPECT_EQ(finish_time(broadcast), rounds_up * (kAlpha + kBeta * kBytes));
    EXPECT_EQ(traffic_of(broadcast, root).messages, rounds_up);
    EXPECT_EQ(total_bytes(broadcast), (n - 1) * kBytes);
    // With ports that never block, a reduction is as deep as the most bits of any position.
    const Schedule reduce = halving_schedule(CollectiveKind::reduce, n, root);
    EXPECT_EQ(finish_time(reduce), log_q * (kAlpha + kBeta * kBytes));
    EXPECT_EQ(total_bytes(reduce), (n - 1) * kBytes);
  }
}

TEST_P(HalvingDoublingTest, BarrierTakesALogarithmOfSteps) {
  EXPECT_EQ(finish_time(halving_schedule(CollectiveKind::barrier, n)), rounds_up * kAlpha);
}

INSTANTIATE_TEST_SUITE_P(Ranks, HalvingDoublingTest,
                         testing::Values(2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 31, 33, 64, 100));

TEST(HalvingDoublingStepsTest, MessagesHalveAndDistancesDouble) {
  const Schedule all_reduce = schedule_of("halving-doubling", CollectiveKind::all_reduce, 8, 800);
  const std::vector<std::pair<std::int32_t, std::int64_t>> expected = {{1, 400}, {2, 200}, {4, 100},
                                                                       {4, 100}, {2, 200}, {1, 400}};
  ASSERT_EQ(all_reduce.roles.size(), 1u);
  ASSERT_EQ(all_reduce.roles[0].sends.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Transfer& transfer = all_reduce.roles[0].sends[i];
    EXPECT_EQ(std::pair(transfer.peer, transfer.bytes.value), expected[i]) << "step " << i;
  }
}

TEST(HalvingDoublingSizeTest, CompactForPowersOfTwoAndBoundedForOthers) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
        CollectiveKind::all_to_all, CollectiveKind::barrier}) {
    const Schedule even = halving_schedule(kind, 4096);
    EXPECT_EQ(even.addressing, Addressing::exchange);
    EXPECT_TRUE(even.is_symmetric());
    ASSERT_EQ(even.roles.size(), 1u);
    EXPECT_EQ(even.roles[0].steps.size(), kind == CollectiveKind::all_reduce ? 24u : 12u);
  }
  std::size_t sends = 0;
  for (const RankSchedule& role : halving_schedule(CollectiveKind::all_reduce, 5000).roles)
    sends += role.sends.size();
  EXPECT_EQ(sends, 2u * 12 * 4096 + 2 * (5000 - 4096));
  // All-to-all and barrier need no folding.
  EXPECT_TRUE(halving_schedule(CollectiveKind::all_to_all, 5000).is_symmetric());
  EXPECT_TRUE(halving_schedule(CollectiveKind::barrier, 5000).is_symmetric());
  // A role per size of subtree, and one more where the tree is cut off.
  EXPECT_LE(halving_schedule(CollectiveKind::broadcast, 5000).roles.size(), 2u * 13);
}

}  // namespace
}  // namespace armilla
