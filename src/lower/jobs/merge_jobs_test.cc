#include "lower/merge_jobs.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

// Two ranks: a computation, an all-reduce of both, a message from the first to the second.
Graph pair_of_ranks(std::int64_t flops) {
  Graph graph;
  graph.ranks = 2;
  graph.families.push_back(world_family(2));
  Work work;
  work.kind = WorkKind::vector;
  work.flops = Flops(flops);
  graph.works.push_back(work);
  graph.collectives.push_back({CollectiveKind::all_reduce, Bytes(100), 0});
  graph.transfers.push_back({1, 7, Bytes(10), PeerKind::rank, 0});
  graph.transfers.push_back({1, 7, Bytes(10), PeerKind::shift, 0});
  graph.layers = {"layer"};
  graph.program_of = {0, 1};
  const std::uint32_t name = graph.names.add("work");
  for (const NodeKind kind : {NodeKind::send, NodeKind::receive}) {
    Program& program = graph.programs.emplace_back();
    program.role = kind == NodeKind::send ? "first" : "second";
    program.add(NodeKind::compute, Phase::forward, name, 0, 0, {});
    const std::uint32_t after = 0;
    program.add(NodeKind::collective, Phase::other, name, -1, 0, std::span(&after, 1));
    program.add(kind, Phase::other, name, -1, kind == NodeKind::send ? 0 : 1, {});
  }
  return graph;
}

TEST(MergeJobs, EverythingPointsToItsOwnJob) {
  const Graph a = pair_of_ranks(1), b = pair_of_ranks(2);
  const std::vector<PlacedJob> jobs = {{&a, "a", {0, 2}, Time(0)}, {&b, "b", {3, 1}, microseconds(5)}};
  const Graph merged = merge_jobs(jobs, 5);
  EXPECT_EQ(merged.ranks, 5);
  EXPECT_EQ(merged.program_of, (std::vector<std::uint32_t>{1, 4, 2, 3, 0}));
  EXPECT_EQ(merged.programs[0].size(), 0u);
  EXPECT_EQ(merged.programs[3].role, "b, first");
  EXPECT_EQ(merged.works[merged.programs[3].payload[0]].flops, Flops(2));
  const CollectiveCall& call = merged.collectives[merged.programs[4].payload[1]];
  EXPECT_EQ(merged.families[call.family].name, "b world");
  EXPECT_EQ(merged.families[call.family].groups, (std::vector<std::vector<std::int32_t>>{{3, 1}}));
  EXPECT_EQ(merged.families[call.family].group_of, (std::vector<std::int32_t>{-1, 0, -1, 0, -1}));
  const Peers peers(merged);
  EXPECT_EQ(peers.of(3, merged.transfers[merged.programs[3].payload[2]]), 1);
  EXPECT_EQ(peers.of(1, merged.transfers[merged.programs[4].payload[2]]), 3);
  EXPECT_EQ(peers.of(0, merged.transfers[merged.programs[1].payload[2]]), 2);
}

TEST(MergeJobs, ALaterStartDelaysWhatDependsOnNothing) {
  const Graph a = pair_of_ranks(1);
  const std::vector<PlacedJob> jobs = {{&a, "a", {0, 1}, microseconds(5)}};
  const Graph merged = merge_jobs(jobs, 2);
  const Program& program = merged.programs[1];
  ASSERT_EQ(program.size(), 4u);
  EXPECT_EQ(program.kind[3], NodeKind::delay);
  EXPECT_EQ(program.payload[3], 5'000'000u);
  EXPECT_EQ(program.lane[3], Lane::none);
  EXPECT_EQ(program.dependences(0)[0], 3u);
  ASSERT_EQ(program.dependences(1).size(), 1u);
  EXPECT_EQ(program.dependences(1)[0], 0u);
  EXPECT_EQ(program.dependences(2)[0], 3u);
  EXPECT_TRUE(program.dependences(3).empty());
}

TEST(MergeJobs, ADeviceRunsOneJob) {
  const Graph a = pair_of_ranks(1);
  const std::vector<PlacedJob> jobs = {{&a, "a", {0, 1}, Time(0)}, {&a, "b", {1, 2}, Time(0)}};
  EXPECT_EQ(error_of([&] { merge_jobs(jobs, 4); }),
            "b: device 1 already runs a rank of 'a'\n  hint: a device runs one rank");
  const std::vector<PlacedJob> outside = {{&a, "a", {0, 4}, Time(0)}};
  EXPECT_EQ(error_of([&] { merge_jobs(outside, 4); }),
            "a: device 4 does not exist\n  hint: the machine has devices 0 to 3");
  const std::vector<PlacedJob> missing = {{&a, "a", {0}, Time(0)}};
  EXPECT_EQ(error_of([&] { merge_jobs(missing, 4); }), "a: 1 device for 2 ranks");
}

}  // namespace
}  // namespace armilla
