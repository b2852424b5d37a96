#include "collective/verify.h"

#include <gtest/gtest.h>

#include <functional>

namespace armilla {
namespace {

using Kind = CustomNode::Kind;

std::uint32_t add(CustomProgram& program, CustomNode node, std::vector<std::uint32_t> dependences) {
  program.labels.push_back("node " + std::to_string(program.nodes.size()));
  program.nodes.push_back(node);
  program.dependence.insert(program.dependence.end(), dependences.begin(), dependences.end());
  program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
  return static_cast<std::uint32_t>(program.nodes.size() - 1);
}

CustomNode message(Kind kind, std::int32_t peer, std::int64_t bytes, std::uint32_t tag = 0) {
  return {kind, peer, tag, Bytes(bytes), {}, 0, 0};
}

// `hops` rounds in which everyone passes `bytes` on to the next: n-1 gather, 2 (n-1) reduce and gather.
CustomCollective ring(std::int32_t members, std::int32_t hops, std::int64_t bytes) {
  CustomCollective collective;
  for (std::int32_t member = 0; member < members; ++member) {
    CustomProgram program;
    std::vector<std::uint32_t> last;
    for (std::int32_t hop = 0; hop < hops; ++hop) {
      add(program, message(Kind::send, (member + 1) % members, bytes), last);
      last = {add(program, message(Kind::receive, (member + members - 1) % members, bytes), last)};
    }
    collective.members.push_back(program);
  }
  return collective;
}

constexpr auto kAllReduce = CollectiveKind::all_reduce;

// What the verifier says about a ring all-reduce of 400 bytes among 4 that `breaks` it.
std::string verdict(const std::function<void(CustomCollective&)>& breaks) {
  CustomCollective collective = ring(4, 6, 100);
  EXPECT_EQ(verify_custom(collective, {kAllReduce, Bytes(400), 0}), "");
  breaks(collective);
  return verify_custom(collective, {kAllReduce, Bytes(400), 0});
}

TEST(CustomVerifyTest, RingsAreGoodForTheCollectivesTheyPerform) {
  EXPECT_EQ(verify_custom(ring(4, 3, 100), {CollectiveKind::all_gather, Bytes(400), 0}), "");
  EXPECT_EQ(verify_custom(ring(4, 3, 100), {CollectiveKind::reduce_scatter, Bytes(400), 0}), "");
  EXPECT_EQ(verify_custom(ring(4, 3, 200), {CollectiveKind::all_to_all, Bytes(400), 0}), "");
  EXPECT_EQ(verify_custom(ring(4, 3, 400), {CollectiveKind::broadcast, Bytes(400), 2}), "");
  EXPECT_EQ(verify_custom(ring(4, 3, 400), {CollectiveKind::reduce, Bytes(400), 3}), "");
  EXPECT_EQ(verify_custom(ring(4, 3, 0), {CollectiveKind::barrier, Bytes(0), 0}), "");
  EXPECT_EQ(verify_custom(ring(70, 138, 10), {kAllReduce, Bytes(700), 0}), "");
}

TEST(CustomVerifyTest, FindsAMissingSend) {
  EXPECT_EQ(
      verdict([](CustomCollective& collective) { collective.members[1].nodes[2].kind = Kind::compute; }),
      "member 2, node 11: waits for message 6 with tag 0 from member 1, which sends 5 of them");
}

TEST(CustomVerifyTest, FindsAMissingReceive) {
  EXPECT_EQ(
      verdict([](CustomCollective& collective) { collective.members[1].nodes[3].kind = Kind::compute; }),
      "member 0, node 10: sends message 6 with tag 0 to member 1, which receives 5 of them");
}

TEST(CustomVerifyTest, FindsASwappedTag) {
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[3].nodes[10].tag = 5; }),
            "member 0, node 11: waits for message 6 with tag 0 from member 3, which sends 5 of them");
}

TEST(CustomVerifyTest, FindsAnotherSize) {
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[3].nodes[4].bytes = Bytes(99); }),
            "member 0, node 5: receives 100 bytes, but member 3, node 4 sends 99");
}

TEST(CustomVerifyTest, FindsACircle) {
  // Everyone waits for the message before sending its own.
  EXPECT_EQ(
      verdict([](CustomCollective& collective) {
        for (CustomProgram& program : collective.members) {
          std::swap(program.nodes[0].kind, program.nodes[1].kind);
          std::swap(program.nodes[0].peer, program.nodes[1].peer);
          program.first_dependence.assign(1, 0);
          program.dependence.clear();
          for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
            if (i > 0) program.dependence.push_back(i - 1);
            program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
          }
        }
      }),
      "never ends: member 0, node 0 waits for member 3, node 1, which waits for member 3, node 0, which "
      "waits for member 2, node 1, which waits for member 2, node 0, which waits for member 1, node 1, "
      "which waits for member 1, node 0, which waits for member 0, node 1, which waits for member 0, node 0");
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[2].dependence[0] = 2; }),
            "member 2, node 2: waits for itself through its dependences");
}

TEST(CustomVerifyTest, FindsInformationThatIsNotPassedOn) {
  // The fourth hop of member 2 no longer waits for what arrived before: it passes on nothing new.
  const std::string found = verify_custom(ring(4, 2, 400), {kAllReduce, {}, 0});
  EXPECT_EQ(found, "member 0 ends without having heard of member 1");
  EXPECT_EQ(verify_custom(ring(4, 2, 400), {CollectiveKind::broadcast, {}, 0}),
            "member 3 ends without having heard of member 0");
  EXPECT_EQ(verdict([](CustomCollective& collective) {
              for (std::uint32_t& on : collective.members[2].dependence) on = 0;
            }),
            "member 0 ends without having heard of member 1");
}

TEST(CustomVerifyTest, FindsVolumesThatCannotSuffice) {
  EXPECT_EQ(verify_custom(ring(4, 3, 100), {kAllReduce, Bytes(400), 0}),
            "member 0 sends 300 bytes; all-reduce of 400 bytes among 4 takes at least 400");
  EXPECT_EQ(verify_custom(ring(4, 5, 100), {kAllReduce, Bytes(400), 0}),
            "all members send 2000 bytes; all-reduce of 400 bytes among 4 takes at least 6 times as many");
  EXPECT_EQ(verify_custom(ring(4, 3, 99), {CollectiveKind::all_gather, Bytes(400), 0}),
            "member 0 receives 297 bytes; all-gather of 400 bytes among 4 takes at least 300");
}

TEST(CustomVerifyTest, SharesScaleWithTheCall) {
  CustomCollective collective = ring(4, 6, 0);
  for (CustomProgram& program : collective.members) {
    for (CustomNode& node : program.nodes) {
      node.share = 1;
      node.shares = 4;
    }
  }
  EXPECT_EQ(verify_custom(collective, {kAllReduce, Bytes(1'000'000), 0}), "");
  EXPECT_EQ(bytes_of(collective.members[0].nodes[0], Bytes(1'000'001)), Bytes(250'001));
  EXPECT_EQ(bytes_of({Kind::send, 0, 0, {}, {}, INT32_MAX, 1}, Bytes(INT64_MAX)), Bytes(INT64_MAX));
  collective.members[0].nodes[0].share = 2;
  EXPECT_EQ(verify_custom(collective, {kAllReduce, {}, 0}),
            "member 1, node 1: receives 0 bytes, but member 0, node 0 sends 0");
}

TEST(CustomVerifyTest, RefusesListsOfDependencesThatDoNotFit) {
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[1].first_dependence.clear(); }),
            "member 1 has dependences for 0 of 12 nodes");
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[1].first_dependence.pop_back(); }),
            "member 1 has dependences for 11 of 12 nodes");
  const std::string unfit = "member 1: its lists of dependences do not follow each other";
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[1].first_dependence[3] = 100; }),
            unfit);
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[1].dependence.pop_back(); }),
            unfit);
}

TEST(CustomVerifyTest, RefusesPeersThatAreNoMembers) {
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[2].nodes[0].peer = 4; }),
            "member 2, node 0: its peer 4 is not a member of 4");
  EXPECT_EQ(verdict([](CustomCollective& collective) { collective.members[2].nodes[0].peer = 2; }),
            "member 2, node 0: its peer is the member itself");
}

}  // namespace
}  // namespace armilla
