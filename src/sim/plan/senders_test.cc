#include "sim/plan/senders.h"

#include <gtest/gtest.h>

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
  void call(std::uint32_t family) {
    CollectiveCall call;
    call.kind = CollectiveKind::all_reduce;
    call.bytes = Bytes(1000);
    call.family = family;
    graph.collectives.push_back(call);
    graph.programs[0].add(NodeKind::collective, Phase::other, 0, -1, graph.collectives.size() - 1, {});
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
    CollectivePlanner planner(machine, {});
    return shared_dimensions(graph, issued_by(graph), machine, unfolded(graph), planner);
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

TEST(Senders, MessagesAloneShareWithNobody) {
  JobOfSenders job;
  job.shift(0);
  job.shift(1);
  EXPECT_EQ(job.shared(), 0U);
}

}  // namespace
}  // namespace armilla
