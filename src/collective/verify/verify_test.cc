#include "collective/verify/verify_testing.h"

#include <gtest/gtest.h>

#include <functional>

namespace armilla {
namespace {

ScheduleRequest request_for(CollectiveKind kind, std::int32_t ranks, std::int64_t bytes) {
  return {kind, ranks, Bytes(bytes), 0, 0, true};
}

Schedule correct(const char* algorithm, const ScheduleRequest& request) {
  return Algorithm(algorithm, "test").schedule(request);
}

// What the verifier says about a correct schedule that `breaks` it.
std::string verdict_on(const char* algorithm, const ScheduleRequest& request,
                       const std::function<void(Schedule&)>& breaks) {
  Schedule schedule = correct(algorithm, request);
  EXPECT_EQ(verify_schedule(request, schedule), "");
  breaks(schedule);
  return verify_schedule(request, schedule);
}

RankSchedule& member(Schedule& schedule, std::size_t index) {
  return schedule.roles[schedule.role_of[index]];
}

void erase_send(RankSchedule& role, std::size_t index) {
  role.sends.erase(role.sends.begin() + static_cast<std::ptrdiff_t>(index));
  role.payloads.erase(role.payloads.begin() + static_cast<std::ptrdiff_t>(index));
  for (Step& step : role.steps) {
    if (step.first_send > index) --step.first_send;
    if (step.end_send > index) --step.end_send;
  }
}

Step& receiving_step(Schedule& schedule, std::int32_t from, std::size_t index) {
  const Transfer& transfer = schedule.of(from).sends[index];
  const auto peer = static_cast<std::size_t>(schedule.peer(from, transfer));
  return member(schedule, peer).steps[static_cast<std::size_t>(transfer.step)];
}

TEST(VerifyTest, FindsAMissingMessage) {
  EXPECT_EQ(verdict_on("ring", request_for(CollectiveKind::all_reduce, 4, 100),
                       [](Schedule& schedule) { erase_send(member(schedule, 1), 2); }),
            "member 2, step 2: waits for 1 messages, but 0 are sent to it");
}

TEST(VerifyTest, FindsAMissingContribution) {
  EXPECT_EQ(verdict_on("ring", request_for(CollectiveKind::reduce_scatter, 4, 100),
                       [](Schedule& schedule) {
                         Step& step = receiving_step(schedule, 1, 2);
                         step.receives = 0;
                         step.reduced = Bytes(0);
                         erase_send(member(schedule, 1), 2);
                       }),
            "member 2 ends with block 2 lacking the contribution of member 0");
}

TEST(VerifyTest, FindsAWrongBlock) {
  EXPECT_EQ(verdict_on("ring", request_for(CollectiveKind::all_gather, 4, 100),
                       [](Schedule& schedule) { member(schedule, 3).payloads[0].blocks = {1}; }),
            "member 3, step 0: sends block 1 to member 0 without holding it");
  EXPECT_EQ(verdict_on("direct", request_for(CollectiveKind::all_to_all, 3, 99),
                       [](Schedule& schedule) { member(schedule, 0).payloads[0].blocks = {2}; }),
            "member 1 ends without block 1");
}

TEST(VerifyTest, FindsAReductionWhereACopyBelongs) {
  EXPECT_EQ(verdict_on("ring", request_for(CollectiveKind::all_reduce, 4, 100),
                       [](Schedule& schedule) {
                         member(schedule, 0).payloads[3].reduce = true;
                         receiving_step(schedule, 0, 3).reduced = Bytes(25);
                       }),
            "member 1, step 3: member 0 adds the contribution of member 1 to block 0 twice");
}

TEST(VerifyTest, FindsACopyWhereAReductionBelongs) {
  const ScheduleRequest request = request_for(CollectiveKind::reduce_scatter, 4, 100);
  const auto copy = [](Schedule& schedule) { member(schedule, 0).payloads[2].reduce = false; };
  EXPECT_EQ(verdict_on("ring", request, copy), "member 1, step 2: combines 0 bytes, but states 25");
  EXPECT_EQ(verdict_on("ring", request,
                       [&](Schedule& schedule) {
                         copy(schedule);
                         receiving_step(schedule, 0, 2).reduced = Bytes(0);
                       }),
            "member 1 ends with block 1 lacking the contribution of member 1");
}

TEST(VerifyTest, FindsADuplicateContribution) {
  EXPECT_EQ(verdict_on("direct", request_for(CollectiveKind::reduce, 3, 100),
                       [](Schedule& schedule) {
                         RankSchedule& role = member(schedule, 2);
                         role.sends.push_back(role.sends[0]);
                         role.payloads.push_back(role.payloads[0]);
                         ++role.steps[0].end_send;
                         member(schedule, 0).steps[0].receives = 3;
                         member(schedule, 0).steps[0].reduced = Bytes(300);
                       }),
            "member 0, step 0: member 2 adds the contribution of member 2 to block 0 twice");
}

TEST(VerifyTest, FindsWrongBytes) {
  EXPECT_EQ(verdict_on("halving-doubling", request_for(CollectiveKind::all_reduce, 4, 100),
                       [](Schedule& schedule) { member(schedule, 2).sends[0].bytes = Bytes(51); }),
            "member 2 sends 51 bytes to member 3, but their payload is 50 bytes");
}

TEST(VerifyTest, FindsAWrongStep) {
  const ScheduleRequest request = request_for(CollectiveKind::all_reduce, 4, 100);
  EXPECT_EQ(verdict_on("ring", request, [](Schedule& schedule) { member(schedule, 0).sends[0].step = 1; }),
            "member 1, step 0: waits for 1 messages, but 0 are sent to it");
  EXPECT_EQ(verdict_on("ring", request, [](Schedule& schedule) { member(schedule, 0).sends[0].step = 6; }),
            "member 0 sends to step 6 of member 1, which has 6 steps");
  EXPECT_EQ(verdict_on("ring", request, [](Schedule& schedule) { member(schedule, 0).sends[0].step = -1; }),
            "member 0 sends to step -1 of member 1, which has 6 steps");
}

// The messages of two steps change places in what the receiver waits for: the counts still fit.
TEST(VerifyTest, FindsMessagesThatCountInEachOthersSteps) {
  EXPECT_EQ(verdict_on("ring", request_for(CollectiveKind::reduce_scatter, 4, 100),
                       [](Schedule& schedule) {
                         member(schedule, 0).sends[0].step = 2;
                         member(schedule, 0).sends[2].step = 0;
                       }),
            "member 3 ends with block 3 lacking the contribution of member 0");
}

TEST(VerifyTest, FindsACircularWait) {
  EXPECT_EQ(verdict_on("ring", request_for(CollectiveKind::all_gather, 3, 99),
                       [](Schedule& schedule) {
                         for (RankSchedule& role : schedule.roles) {
                           role.steps[0].end_send = 0;
                           role.steps[1].first_send = 0;
                         }
                       }),
            "never ends: member 0 in step 0 waits for member 2, member 2 in step 0 waits for member 1, "
            "member 1 in step 0 waits for member 0");
}

TEST(VerifyTest, FindsARaceBetweenMessagesOfAStep) {
  EXPECT_EQ(verdict_on("direct", request_for(CollectiveKind::all_gather, 3, 99),
                       [](Schedule& schedule) {
                         RankSchedule& role = member(schedule, 1);
                         role.sends.push_back(role.sends[0]);
                         role.payloads.push_back(role.payloads[0]);
                         ++role.steps[0].end_send;
                         ++member(schedule, 2).steps[0].receives;
                       }),
            "member 2, step 0: block 1 is replaced while another message changes it");
}

TEST(VerifyTest, FindsABarrierThatLetsSomeoneGoEarly) {
  EXPECT_EQ(verdict_on("halving-doubling", request_for(CollectiveKind::barrier, 4, 0),
                       [](Schedule& schedule) {
                         receiving_step(schedule, 0, 1).receives = 0;
                         erase_send(member(schedule, 0), 1);
                       }),
            "member 2 leaves the barrier without having heard of member 0");
}

TEST(VerifyTest, RefusesSchedulesOutOfShape) {
  const ScheduleRequest request = request_for(CollectiveKind::all_reduce, 4, 100);
  const auto ring = [&](const std::function<void(Schedule&)>& breaks) {
    return verdict_on("ring", request, breaks);
  };
  EXPECT_EQ(ring([](Schedule& s) { s.ranks = 5; }), "the schedule is for 5 ranks, not for 4");
  EXPECT_EQ(ring([](Schedule& s) { s.pieces = -1; }), "the buffer is cut into -1 pieces");
  EXPECT_EQ(ring([](Schedule& s) { s.role_of.pop_back(); }), "not every member has a role");
  EXPECT_EQ(ring([](Schedule& s) { s.role_of.clear(), s.roles.clear(); }), "not every member has a role");
  EXPECT_EQ(ring([](Schedule& s) { s.role_of[2] = 9; }), "there is no role 9");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).payloads.clear(); }),
            "member 1 has 6 messages but 0 payloads");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).steps[2].end_send = 99; }),
            "member 1, step 2: its messages do not follow those of the step before");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).steps.pop_back(); }),
            "member 0 sends to step 5 of member 1, which has 5 steps");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 0).steps.pop_back(); }),
            "member 0 has messages that belong to no step");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).steps[0].receives = -1; }),
            "member 1, step 0: a negative count");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).sends[0].peer = 7; }),
            "member 1 addresses peer 7 of 4 ranks");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).sends[0].peer = 0; }), "member 1 sends to itself");
  EXPECT_EQ(ring([](Schedule& s) { member(s, 1).payloads[0].blocks = {4}; }),
            "member 1 sends block 4 of 4 blocks");
  EXPECT_EQ(ring([](Schedule& s) {
              member(s, 1).payloads[0].blocks = {2, 2};
              member(s, 1).sends[0].bytes = Bytes(50);
            }),
            "member 1 sends block 2 twice in one message");
}

TEST(VerifyTest, RefusesRequestsOutOfShape) {
  ScheduleRequest request = request_for(CollectiveKind::reduce, 4, 100);
  const Schedule schedule = correct("ring", request);
  request.root = 4;
  EXPECT_EQ(verify_schedule(request, schedule), "the root 4 is not a member of 4");
  const ScheduleRequest scatter = request_for(CollectiveKind::reduce_scatter, 3, 100);
  EXPECT_EQ(verify_schedule(scatter,
                            correct("double-binary-tree", request_for(CollectiveKind::all_reduce, 3, 100))),
            "2 pieces cannot be scattered over 3 ranks");
}

TEST(VerifyTest, KnowsWhichCollectiveAScheduleIsFor) {
  EXPECT_EQ(verify_schedule(request_for(CollectiveKind::all_reduce, 4, 100),
                            correct("ring", request_for(CollectiveKind::reduce_scatter, 4, 100))),
            "member 0 ends with block 1 lacking the contribution of member 1");
}

// Every message of every data-moving schedule is needed, as it is: without it, with another block in it, or
// with copying and combining exchanged, the collective fails.
TEST(VerifyTest, FindsEverySingleMutation) {
  int mutations = 0;
  const auto expect_broken = [&](const ScheduleRequest& request, const Schedule& schedule, const char* how) {
    ++mutations;
    EXPECT_NE(verify_schedule(request, schedule), "") << name_of(request.kind) << ": " << how;
  };
  for (const AlgorithmInfo& info : collective_algorithms()) {
    for (const CollectiveKind kind : info.kinds) {
      if (kind == CollectiveKind::barrier) continue;  // hears of some members more than once
      for (const std::int32_t ranks : {4, 5, 7}) {
        const ScheduleRequest request = request_for(kind, ranks, 840);
        const Schedule schedule = correct(std::string(info.name).c_str(), request);
        for (std::int32_t from = 0; from < ranks; ++from) {
          const auto index = static_cast<std::size_t>(from);
          for (std::size_t i = 0; i < schedule.of(from).sends.size(); ++i) {
            const bool reduces = schedule.of(from).payloads[i].reduce;
            const Bytes bytes = schedule.of(from).sends[i].bytes;

            Schedule dropped = schedule;
            Step& poorer = receiving_step(dropped, from, i);
            --poorer.receives;
            if (reduces) poorer.reduced -= bytes;
            erase_send(member(dropped, index), i);
            expect_broken(request, dropped, "dropped");
            // A word that something is in a switch carries nothing.
            if (schedule.of(from).payloads[i].blocks.empty()) continue;

            Schedule flipped = schedule;
            member(flipped, index).payloads[i].reduce = !reduces;
            receiving_step(flipped, from, i).reduced += reduces ? Bytes(0) - bytes : bytes;
            expect_broken(request, flipped, "flipped");

            const std::int32_t pieces = kind == CollectiveKind::all_to_all ? ranks * ranks : schedule.pieces;
            Schedule shifted = schedule;
            std::vector<std::int32_t>& blocks = member(shifted, index).payloads[i].blocks;
            if (static_cast<std::int32_t>(blocks.size()) == pieces) continue;
            for (std::int32_t& block : blocks) block = (block + 1) % pieces;
            expect_broken(request, shifted, "shifted");
          }
        }
      }
    }
  }
  EXPECT_GT(mutations, 3000);
}

}  // namespace
}  // namespace armilla
