#include "sim/plan/senders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace armilla {
namespace {

// Eight ranks, four of a node: tensor groups of two, data groups of two across nodes, stages of four.
struct JobOfSenders {
  JobOfSenders() {
    machine.dimensions = {{"node", DimensionKind::switched, 4, gigabytes_per_second(10), nanoseconds(100)},
                          {"net", DimensionKind::switched, 2, gigabytes_per_second(1), nanoseconds(100)}};
    graph.ranks = 8;
    graph.program_of.assign(8, 0);
    graph.names.add("node");
    add_family({{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {0, 0, 1, 1, 2, 2, 3, 3});
    add_family({{0, 4}, {1, 5}, {2, 6}, {3, 7}}, {0, 1, 2, 3, 0, 1, 2, 3});
    add_family({{0, 2}, {1, 3}, {4, 6}, {5, 7}}, {0, 1, 0, 1, 2, 3, 2, 3});
    graph.programs.emplace_back();
  }
  void add_family(std::vector<std::vector<std::int32_t>> groups, std::vector<std::int32_t> group_of) {
    GroupFamily family;
    family.groups = std::move(groups);
    family.group_of = std::move(group_of);
    graph.families.push_back(family);
  }
  void call(std::uint32_t family, std::size_t program = 0) {
    CollectiveCall call;
    call.kind = CollectiveKind::all_reduce;
    call.bytes = Bytes(1000);
    call.family = family;
    graph.collectives.push_back(call);
    graph.programs[program].add(NodeKind::collective, Phase::other, 0, -1, graph.collectives.size() - 1, {});
  }
  void shift(std::uint32_t family) {
    PointToPoint there;
    there.family = family;
    there.peer_kind = PeerKind::shift;
    there.peer = 1;
    there.bytes = Bytes(10);
    graph.transfers.push_back(there);
    graph.programs[0].add(NodeKind::send, Phase::other, 0, -1, graph.transfers.size() - 1, {});
  }
  std::uint32_t shared() const {
    Study study;
    study.machine = machine;
    CollectivePlanner planner(study.machine, {});
    return shared_dimensions({graph, issued_by(graph), study, Peers(graph)}, unfolded(graph), planner);
  }
  Machine machine;
  Graph graph;
};

TEST(Senders, DimensionsAreSharedThatSeveralUse) {
  JobOfSenders job;
  EXPECT_EQ(job.shared(), 0U);
  job.call(0);
  job.call(0);
  EXPECT_EQ(job.shared(), 0U);
  job.call(1);
  EXPECT_EQ(job.shared(), 0U) << "each has a dimension of its own";
  JobOfSenders beside = job;
  beside.shift(1);
  EXPECT_EQ(beside.shared(), 2U) << "messages and the collectives across nodes";
  job.call(2);
  EXPECT_EQ(job.shared(), 1U) << "two families within a node";
  job.shift(1);
  EXPECT_EQ(job.shared(), 3U);
}

// A ring of eight.
struct JobOnARing : JobOfSenders {
  JobOnARing() {
    machine.dimensions = {{"ring", DimensionKind::ring, 8, gigabytes_per_second(1), nanoseconds(100)}};
    graph.families.clear();
  }
  // `groups` of some ranks.
  void add(std::vector<std::vector<std::int32_t>> groups) {
    std::vector<std::int32_t> group_of(8, -1);
    for (std::size_t group = 0; group < groups.size(); ++group) {
      for (const std::int32_t rank : groups[group])
        group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(group);
    }
    add_family(std::move(groups), std::move(group_of));
  }
};

TEST(Senders, RingsAreSharedWhereSeveralUseOneCable) {
  JobOnARing job;
  job.add({{0, 1, 2, 3}, {4, 5, 6, 7}});
  job.add({{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  job.add({{1, 2}, {3, 4}, {5, 6}, {7, 0}});
  job.call(1);
  job.call(2);
  EXPECT_EQ(job.shared(), 0U) << "neighbours of one family are none of the other's";
  JobOnARing beside = job;
  beside.call(0);
  EXPECT_EQ(beside.shared(), 1U) << "fours beside pairs";
  job.shift(2);
  EXPECT_EQ(job.shared(), 1U) << "messages and collectives of the same pairs";
}

// The way from 3 back to 0 is shorter over 2 and 1 than round the ring, the way from 4 to 0 is not.
TEST(Senders, GroupsUseTheShorterWayOfARing) {
  const auto shared = [](const std::vector<std::int32_t>& one, const std::vector<std::int32_t>& other) {
    JobOnARing job;
    job.graph.programs.resize(3);  // that of all others does nothing
    job.graph.program_of.assign(8, 2);
    job.add({one});
    job.add({other});
    for (const std::int32_t rank : one) job.graph.program_of[static_cast<std::size_t>(rank)] = 0;
    for (const std::int32_t rank : other) job.graph.program_of[static_cast<std::size_t>(rank)] = 1;
    job.call(0);
    job.call(1, 1);
    return job.shared();
  };
  EXPECT_EQ(shared({0, 1, 2, 3}, {4, 5, 6, 7}), 0U);
  EXPECT_EQ(shared({0, 1, 2, 4}, {5, 6}), 1U);
  EXPECT_EQ(shared({0, 2}, {4, 6}), 0U);
  EXPECT_EQ(shared({0, 2}, {1, 3}), 1U);
}

// Groups of no grid, here two on each of two rings but at other places, go from ring to ring at any.
TEST(Senders, GroupsOfNoGridMayUseEveryCable) {
  const auto shared = [](const std::vector<std::int32_t>& one) {
    JobOnARing job;
    job.machine.dimensions.front().size = 4;
    job.machine.dimensions.push_back(
        {"rail", DimensionKind::switched, 2, gigabytes_per_second(1), nanoseconds(100)});
    job.graph.programs.resize(3);
    job.graph.program_of = {2, 2, 2, 2, 2, 2, 2, 2};
    job.add({one});
    job.add({{1, 2}});
    for (const std::int32_t rank : one) job.graph.program_of[static_cast<std::size_t>(rank)] = 0;
    for (const std::int32_t rank : {1, 2}) {
      if (std::ranges::find(one, rank) == one.end()) job.graph.program_of[static_cast<std::size_t>(rank)] = 1;
    }
    job.call(0);
    job.call(1, 1);
    return job.shared() & 1U;
  };
  EXPECT_EQ(shared({0, 3, 4, 7}), 0U);
  EXPECT_EQ(shared({0, 3, 6, 7}), 1U);
}

TEST(Senders, MessagesAloneShareWithNobody) {
  JobOfSenders job;
  job.shift(0);
  job.shift(1);
  EXPECT_EQ(job.shared(), 0U);
}

}  // namespace
}  // namespace armilla
