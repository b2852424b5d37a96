#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "collective/algorithms/alpha_beta_testing.h"
#include "collective/verify/verify_testing.h"

namespace armilla {
namespace {

class RingTest : public testing::TestWithParam<std::int32_t> {
 protected:
  const std::int32_t n = GetParam();
  const std::int64_t block = ceil_divide(kBytes, n);
  const std::int64_t hop = kAlpha + kBeta * block;

  Schedule schedule(CollectiveKind kind) const { return schedule_of("ring", kind, n, kBytes); }
};

TEST_P(RingTest, AllReduceTakesTwoRoundsOfBlocks) {
  const Schedule ring = schedule(CollectiveKind::all_reduce);
  EXPECT_EQ(finish_time(ring), 2 * (n - 1) * hop);
  EXPECT_EQ(traffic_of(ring, n - 1),
            (Traffic{2 * (n - 1), 2 * (n - 1) * block, static_cast<std::size_t>(2 * (n - 1))}));
}

TEST_P(RingTest, ReduceScatterAndAllGatherTakeOneRoundEach) {
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    const Schedule ring = schedule(kind);
    EXPECT_EQ(finish_time(ring), (n - 1) * hop);
    EXPECT_EQ(traffic_of(ring, 0), (Traffic{n - 1, (n - 1) * block, static_cast<std::size_t>(n - 1)}));
  }
}

TEST_P(RingTest, AllToAllForwardsHalfOfAllPairs) {
  const Schedule ring = schedule(CollectiveKind::all_to_all);
  const std::int64_t blocks = std::int64_t{n} * (n - 1) / 2;
  EXPECT_EQ(finish_time(ring), (n - 1) * kAlpha + kBeta * blocks * block);
  EXPECT_EQ(traffic_of(ring, 0), (Traffic{n - 1, blocks * block, static_cast<std::size_t>(n - 1)}));
}

TEST_P(RingTest, BroadcastAndReduceArePipelined) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    for (const std::int32_t root : {0, n / 2, n - 1}) {
      // Of no size, or so that 30 or none of them are in kBytes.
      for (const auto& [least, most] : {std::pair{std::int64_t{0}, n}, {kBytes / 30, 30}, {2 * kBytes, 2}}) {
        const std::int32_t blocks = std::min(n, most);
        ScheduleRequest request{kind, n, Bytes(kBytes), root, 0, false, Bytes(least)};
        const Schedule ring = Algorithm("ring", "test").schedule(request);
        const std::int64_t each = ceil_divide(kBytes, blocks);
        EXPECT_EQ(finish_time(ring), (n - 2 + blocks) * (kAlpha + kBeta * each))
            << name_of(kind) << " root " << root;
        EXPECT_EQ(total_bytes(ring), std::int64_t{blocks} * (n - 1) * each);
        request.payloads = true;
        EXPECT_EQ(verify_schedule(request, Algorithm("ring", "test").schedule(request)), "");
      }
    }
  }
}

TEST_P(RingTest, BarrierGoesAroundOnce) {
  const Schedule ring = schedule(CollectiveKind::barrier);
  EXPECT_EQ(finish_time(ring), (n - 1) * kAlpha);
  EXPECT_EQ(total_bytes(ring), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RingTest, testing::Values(2, 3, 4, 7, 8, 16, 33, 64));

TEST(RingDirectionTest, CounterClockwiseMirrorsClockwise) {
  for (const CollectiveKind kind : kCollectiveKinds) {
    const Schedule forth = schedule_of("ring", kind, 5, 1000, 2);
    const Schedule back = schedule_of("ring:direction=counter-clockwise", kind, 5, 1000, 2);
    for (std::int32_t member = 0; member < 5; ++member) {
      const std::int32_t mirrored = (4 - member + 5) % 5;  // keeps the root in its place
      EXPECT_EQ(traffic_of(forth, member), traffic_of(back, mirrored)) << name_of(kind);
      for (const Transfer& transfer : forth.of(member).sends)
        EXPECT_EQ(forth.peer(member, transfer), (member + 1) % 5);
      for (const Transfer& transfer : back.of(member).sends)
        EXPECT_EQ(back.peer(member, transfer), (member + 4) % 5);
    }
  }
}

TEST(RingSizeTest, LargeRingsShareOneRole) {
  const Schedule ring = schedule_of("ring", CollectiveKind::all_reduce, 4096, 1 << 20);
  EXPECT_TRUE(ring.is_symmetric());
  ASSERT_EQ(ring.roles.size(), 1u);
  EXPECT_EQ(ring.roles[0].steps.size(), 2u * 4095);
  EXPECT_EQ(ring.roles[0].sends.size(), 2u * 4095);
  EXPECT_EQ(schedule_of("ring", CollectiveKind::broadcast, 4096, 1 << 20, 17).roles.size(), 3u);
}

class BidirectionalRingTest : public RingTest {
 protected:
  const std::int64_t steps = n / 2;
  // Of a ring of even size two halves each.
  const std::int64_t whole = n % 2 == 0 ? 2 * ceil_divide(kBytes, 2 * n) : block;

  Schedule both_ways(CollectiveKind kind, std::int32_t chunk = 0) const {
    return Algorithm("bidirectional-ring", "test").schedule({kind, n, Bytes(kBytes), 0, chunk, false});
  }
  // What a member sends up or down the ring.
  std::int64_t one_way(const Schedule& schedule, std::int32_t peer) const {
    std::int64_t bytes = 0;
    for (const Transfer& transfer : schedule.roles.front().sends)
      bytes += transfer.peer == peer ? transfer.bytes.value : 0;
    return bytes;
  }
};

TEST_P(BidirectionalRingTest, ReducesAndGathersInHalfTheStepsOverBothLinks) {
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    const Schedule ring = both_ways(kind);
    // An even ring's far block comes half from either side; between two ranks there is one link.
    const std::int64_t halves = n % 2 == 0 && n > 2 ? 1 : 0;
    EXPECT_EQ(finish_time(ring), steps * (kAlpha + kBeta * whole) - halves * kBeta * whole / 2);
    EXPECT_EQ(one_way(ring, 1), n == 2 ? whole : (n - 1) * whole / 2);
    EXPECT_EQ(one_way(ring, n - 1), one_way(ring, 1));
    EXPECT_EQ(total_bytes(ring), std::int64_t{n} * (n - 1) * whole);
  }
  EXPECT_EQ(finish_time(both_ways(CollectiveKind::all_reduce)),
            2 * finish_time(both_ways(CollectiveKind::all_gather)));
}

TEST_P(BidirectionalRingTest, AllToAllGoesTheShorterWay) {
  const Schedule even = both_ways(CollectiveKind::all_to_all), odd = both_ways(CollectiveKind::all_to_all, 1);
  // Of all pairs together n^2 / 4 hops each way, over two chunks of an even ring.
  const std::int64_t hops = std::int64_t{n} * n / 4;
  EXPECT_EQ(one_way(even, 1) + one_way(odd, n == 2 ? 1 : n - 1), 2 * one_way(even, 1));
  if (n > 2) {
    EXPECT_EQ(one_way(even, 1) + one_way(odd, 1), n % 2 == 0 ? hops * block : (n * n - 1) / 4 * block);
  }
  EXPECT_EQ(even.roles.front().steps.size(), static_cast<std::size_t>(steps));
}

TEST_P(BidirectionalRingTest, BarrierGoesHalfwayAround) {
  EXPECT_EQ(finish_time(both_ways(CollectiveKind::barrier)), steps * kAlpha);
}

INSTANTIATE_TEST_SUITE_P(Ranks, BidirectionalRingTest, testing::Values(2, 3, 4, 7, 8, 16, 33, 64));

}  // namespace
}  // namespace armilla
