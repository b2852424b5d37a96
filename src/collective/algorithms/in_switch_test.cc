#include <gtest/gtest.h>

#include "collective/algorithms/alpha_beta_testing.h"
#include "collective/verify/verify_testing.h"

namespace armilla {
namespace {

struct Carried {
  std::int64_t up = 0, down = 0;
};

// What crosses a member's links to and from the switch.
Carried carried(const Schedule& schedule, std::int32_t member) {
  Carried sum;
  for (std::int32_t m = 0; m < schedule.ranks; ++m) {
    const RankSchedule& role = schedule.of(m);
    for (const Step& step : role.steps) {
      for (std::uint32_t s = step.first_send; s < step.end_send; ++s) {
        EXPECT_NE(step.leg, Leg::whole);
        if (step.leg == Leg::to_switch && m == member) sum.up += role.sends[s].bytes.value;
        if (step.leg == Leg::from_switch && schedule.peer(m, role.sends[s]) == member)
          sum.down += role.sends[s].bytes.value;
      }
    }
  }
  return sum;
}

class InSwitchTest : public testing::TestWithParam<std::int32_t> {
 protected:
  const std::int32_t n = GetParam();
  const std::int64_t bytes = std::int64_t{n} * 1000, share = 1000;

  Carried of(const char* algorithm, CollectiveKind kind, std::int32_t member = 0) const {
    return carried(schedule_of(algorithm, kind, n, bytes), member);
  }
};

TEST_P(InSwitchTest, EverythingGoesUpOnceAndComesDownOnce) {
  for (std::int32_t member = 0; member < n; ++member) {
    const Carried sum = of("sharp", CollectiveKind::all_reduce, member);
    EXPECT_EQ(sum.up, bytes);
    EXPECT_EQ(sum.down, bytes);
  }
  EXPECT_EQ(finish_time(schedule_of("sharp", CollectiveKind::all_reduce, n, bytes)),
            2 * message_time(Bytes(bytes)));
  EXPECT_EQ(finish_time(schedule_of("sharp", CollectiveKind::barrier, n, bytes)), 2 * kAlpha);
}

TEST_P(InSwitchTest, NvlsAlsoSendsItsShareUpAgain) {
  const Carried sum = of("nvls", CollectiveKind::all_reduce);
  EXPECT_EQ(sum.up, bytes + share);
  EXPECT_EQ(sum.down, bytes);
}

TEST_P(InSwitchTest, SharesGoOneWayOnly) {
  for (const char* const algorithm : {"nvls", "sharp"}) {
    const Carried scattered = of(algorithm, CollectiveKind::reduce_scatter);
    EXPECT_EQ(scattered.up, bytes);
    EXPECT_EQ(scattered.down, share);
    const Carried gathered = of(algorithm, CollectiveKind::all_gather);
    EXPECT_EQ(gathered.up, share);
    EXPECT_EQ(gathered.down, bytes - share);
  }
}

TEST_P(InSwitchTest, AMulticastLeavesTheRootOnce) {
  EXPECT_EQ(of("multicast", CollectiveKind::broadcast).up, bytes);
  for (std::int32_t member = 1; member < n; ++member) {
    EXPECT_EQ(of("multicast", CollectiveKind::broadcast, member).down, bytes);
    EXPECT_EQ(of("multicast", CollectiveKind::broadcast, member).up, 0);
  }
}

// Of several switches: whoever is told by whom, each contribution goes up once, and the sum comes down once.
TEST_P(InSwitchTest, TreesTakeThreeMessagesForEachMember) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::barrier}) {
    ScheduleRequest request{kind, n, Bytes(bytes), 0, 0, true};
    request.tree = true;
    EXPECT_EQ(verify_schedule(request, Algorithm("sharp", "test").schedule(request)), "");
    request.payloads = false;
    const Schedule schedule = Algorithm("sharp", "test").schedule(request);
    const std::int64_t sent = kind == CollectiveKind::barrier ? 0 : bytes;
    std::size_t messages = 0;
    for (std::int32_t member = 0; member < n; ++member) {
      const Carried sum = carried(schedule, member);
      EXPECT_EQ(sum.up, sent);
      EXPECT_EQ(sum.down, sent);
      messages += schedule.of(member).sends.size();
    }
    EXPECT_EQ(messages, static_cast<std::size_t>(3 * n - 2));
    EXPECT_EQ(finish_time(schedule), 2 * message_time(Bytes(sent)));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, InSwitchTest, testing::Values(2, 3, 8, 17));

// Whoever asks a switch without having heard that all of the sum is there would get a part of it.
TEST(InSwitchVerifierTest, FindsWhoAsksTooEarly) {
  const ScheduleRequest request{CollectiveKind::all_reduce, 3, Bytes(300), 0, 0, true};
  Schedule schedule = Algorithm("sharp", "test").schedule(request);
  EXPECT_EQ(verify_schedule(request, schedule), "");
  for (RankSchedule& role : schedule.roles) role.steps.front().window = 0;
  EXPECT_EQ(verify_schedule(request, schedule),
            "member 2 asks the switch for block 0 without knowing that member 2's has arrived");
  schedule = Algorithm("sharp", "test").schedule(request);
  // Member 1 sends its word to member 0 in the step after.
  for (Transfer& transfer : schedule.roles[1].sends) {
    if (schedule.peer(1, transfer) == 0) transfer.step = 1;
  }
  --schedule.roles[0].steps[0].receives;
  ++schedule.roles[0].steps[1].receives;
  EXPECT_EQ(verify_schedule(request, schedule),
            "member 0 asks the switch for block 0 without knowing that member 1's has arrived");
}

TEST(InSwitchVerifierTest, FindsWhatIsGivenTwice) {
  const ScheduleRequest request{CollectiveKind::all_reduce, 3, Bytes(300), 0, 0, true};
  Schedule schedule = Algorithm("sharp", "test").schedule(request);
  Payload& word = schedule.roles[2].payloads[1];
  word = schedule.roles[2].payloads[0];
  schedule.roles[2].sends[1].bytes = Bytes(300);
  EXPECT_EQ(verify_schedule(request, schedule),
            "member 2 adds the contribution of member 2 to block 0 of the switch twice");
}

}  // namespace
}  // namespace armilla
