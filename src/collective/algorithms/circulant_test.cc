#include <gtest/gtest.h>

#include <bit>

#include "base/checked.h"
#include "collective/algorithms/alpha_beta_testing.h"

namespace armilla {
namespace {

Schedule circulant_schedule(CollectiveKind kind, std::int32_t n) {
  return schedule_of("circulant", kind, n, kBytes);
}

TEST(CirculantTest, TakesFewStepsAndFewBytesForAnyNumber) {
  for (std::int32_t n = 2; n <= 130; ++n) {
    const std::int64_t steps = std::bit_width(static_cast<std::uint32_t>(n - 1));
    const std::int64_t sent = (n - 1) * ceil_divide(kBytes, n);
    for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
      EXPECT_EQ(finish_time(circulant_schedule(kind, n)), steps * kAlpha + kBeta * sent) << n;
      EXPECT_EQ(traffic_of(circulant_schedule(kind, n), n - 1),
                (Traffic{steps, sent, static_cast<std::size_t>(steps)}))
          << n;
    }
    EXPECT_EQ(finish_time(circulant_schedule(CollectiveKind::all_reduce, n)),
              2 * (steps * kAlpha + kBeta * sent))
        << n;
    EXPECT_EQ(finish_time(circulant_schedule(CollectiveKind::barrier, n)), steps * kAlpha) << n;
  }
}

TEST(CirculantTest, IsAsHalvingAndDoublingForPowersOfTwo) {
  for (const std::int32_t n : {2, 8, 64}) {
    EXPECT_EQ(finish_time(circulant_schedule(CollectiveKind::all_reduce, n)),
              finish_time(schedule_of("halving-doubling", CollectiveKind::all_reduce, n, kBytes)));
  }
}

TEST(CirculantTest, AllMembersAreAlike) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_gather, CollectiveKind::barrier})
    EXPECT_TRUE(circulant_schedule(kind, 12'500).is_symmetric());
}

}  // namespace
}  // namespace armilla
