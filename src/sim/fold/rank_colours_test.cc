#include "sim/fold/rank_colours.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/engine/compute_times.h"

namespace armilla {
namespace {

Dimension fast_dimension(DimensionKind kind, std::int64_t size) {
  return {"d", kind, size, gigabytes_per_second(1), nanoseconds(100)};
}

// Tensor parallelism in 8, data in 8, pipeline in 4, on nodes of 8: every rank reduces with its tensor group
// and exchanges activations with the stages before and after; then gradients.
struct ColouredJob {
  Graph graph;
  Machine machine;
  CollectiveOptions collectives;
  WhatIf what_if;

  explicit ColouredJob(DimensionKind outer = DimensionKind::switched) {
    machine.dimensions = {fast_dimension(DimensionKind::switched, 8), fast_dimension(outer, 32)};
    graph.ranks = 256;
    const std::vector<std::int64_t> sizes = {8, 8, 4};
    for (std::uint32_t axis = 0; axis < 3; ++axis)
      graph.families.push_back(grid_family(sizes, std::uint32_t{1} << axis));
    graph.names.add("node");
    graph.collectives = {{CollectiveKind::all_reduce, Bytes(8000), 0},
                         {CollectiveKind::all_reduce, Bytes(80000), 1}};
    for (std::int32_t rank = 0; rank < 256; ++rank)
      graph.program_of.push_back(static_cast<std::uint32_t>(rank / 64));
    for (std::uint32_t stage = 0; stage < 4; ++stage) add_stage(stage);
  }

  void add_stage(std::uint32_t stage) {
    Program& program = graph.programs.emplace_back();
    std::uint32_t last = program.add(NodeKind::delay, Phase::forward, 1, -1, 1000, {});
    const auto add = [&](NodeKind kind, std::uint64_t payload) {
      last = program.add(kind, Phase::forward, 1, -1, payload, std::span(&last, 1));
    };
    add(NodeKind::collective, 0);
    if (stage > 0) add(NodeKind::receive, transfer(-1, stage));
    if (stage < 3) add(NodeKind::send, transfer(1, stage + 1));
    add(NodeKind::collective, 1);
  }

  std::uint64_t transfer(std::int32_t shift, std::uint32_t tag) {
    graph.transfers.push_back({shift, tag, Bytes(5000), PeerKind::shift, 2});
    return graph.transfers.size() - 1;
  }

  RankClasses fold(bool shares_memory = false) const {
    CollectivePlanner planner(machine, collectives);
    Study study;
    study.machine = machine;
    study.what_if = what_if;
    return fold_ranks({graph, issued_by(graph), study, Peers(graph), shares_memory}, planner);
  }
};

TEST(RankColours, RanksOfAStageAreOneClass) {
  const RankClasses classes = ColouredJob().fold();
  EXPECT_EQ(classes.real, (std::vector<std::int32_t>{0, 64, 128, 192}));
  EXPECT_EQ(classes.sizes, (std::vector<std::int64_t>(4, 64)));
  EXPECT_EQ(classes.simulated_rank(200), 3);
  // A tensor group is one rank of the quotient, a pipeline all four.
  EXPECT_EQ(classes.families[0].groups.size(), 4U);
  EXPECT_EQ(classes.families[2].groups.size(), 1U);
  EXPECT_EQ(classes.families[2].groups[0], (std::vector<std::int32_t>{0, 1, 2, 3}));
}

// Tensor group of the straggler: halving-doubling tells the distances 1, 2, 4 apart, so 8 classes, and as
// many positions in data groups; the pipeline spreads them over all stages.
TEST(RankColours, AStragglerSplitsByDistanceAlone) {
  ColouredJob job;
  job.what_if.ranks = {{{0, 0}, 2.0}};
  EXPECT_EQ(job.fold().simulated(), 8 * 8 * 4);
  // A slow tensor group leaves its members alike.
  job.what_if.ranks = {{{0, 7}, 2.0}};
  EXPECT_EQ(job.fold().simulated(), 8 * 4);
  // So does a slow replica.
  job.what_if.ranks.clear();
  for (std::int64_t stage = 0; stage < 4; ++stage)
    job.what_if.ranks.push_back({{stage * 64, stage * 64 + 7}, 2.0});
  EXPECT_EQ(job.fold().simulated(), 8 * 4);
  // Half of the replicas, every second one: two kinds.
  job.what_if.ranks.clear();
  for (std::int64_t node = 0; node < 32; node += 2)
    job.what_if.ranks.push_back({{node * 8, node * 8 + 7}, 2.0});
  EXPECT_EQ(job.fold().simulated(), 2 * 4);
}

TEST(RankColours, SlowLinksAndOtherDevicesSplit) {
  ColouredJob links;
  links.what_if.links = {{1, {0, 255}, 0.5, 1}};
  EXPECT_EQ(links.fold().simulated(), 4);
  links.what_if.links = {{1, {0, 7}, 0.5, 1}};
  EXPECT_EQ(links.fold().simulated(), 8 * 4);
  ColouredJob devices;
  devices.machine.others = {{128, 255, devices.machine.device}};
  EXPECT_EQ(devices.fold().simulated(), 4);
  devices.machine.others = {{0, 31, devices.machine.device}};
  // Replicas 0 to 3 of the first stage, against 4 to 7: two halves that exchange (halving-doubling).
  EXPECT_EQ(devices.fold().simulated(), 2 * 4);
}

// Messages between stages run along the ring over others' links: every node on the way is alike, so the
// stages stay whole, but for those at the end that nobody crosses.
TEST(RankColours, TrafficThatPassesThroughIsSeen) {
  const RankClasses classes = ColouredJob(DimensionKind::ring).fold();
  EXPECT_GT(classes.simulated(), 4);
  EXPECT_LT(classes.simulated(), 256);
}

TEST(RankColours, TreesTellPositionsApart) {
  ColouredJob job;
  job.collectives.algorithms = {"double-binary-tree", "ring"};
  EXPECT_EQ(job.fold().simulated(), 8 * 4);
}

TEST(RankColours, RanksThatShareMemoryAreSimulatedThemselves) {
  ColouredJob job;
  job.graph.programs[0].add(NodeKind::memory_load, Phase::other, 1, -1, 1000, {});
  EXPECT_EQ(job.fold(false).simulated(), 4);
  EXPECT_EQ(job.fold(true).simulated(), 256);
}

// Two groups of three ranks in two nodes of four, 0, 1, 4 and 2, 3, `last`, that all-reduce.
std::int64_t simulated_of_two_groups(std::int32_t last) {
  ColouredJob job;
  job.machine.dimensions = {fast_dimension(DimensionKind::switched, 4),
                            fast_dimension(DimensionKind::switched, 2)};
  job.graph = {};
  job.graph.ranks = 8;
  job.graph.program_of.assign(8, 1);
  job.graph.names.add("node");
  GroupFamily& family = job.graph.families.emplace_back();
  family.name = "replicas";
  family.groups = {{0, 1, 4}, {2, 3, last}};
  family.group_of.assign(8, -1);
  for (const std::int32_t group : {0, 1}) {
    for (const std::int32_t rank : family.groups[static_cast<std::size_t>(group)]) {
      family.group_of[static_cast<std::size_t>(rank)] = group;
      job.graph.program_of[static_cast<std::size_t>(rank)] = 0;
    }
  }
  job.graph.collectives = {{CollectiveKind::all_reduce, Bytes(8000), 0}};
  job.graph.programs.resize(2);
  job.graph.programs[0].add(NodeKind::collective, Phase::forward, 1, -1, 0, {});
  return job.fold().simulated();
}

// Both groups are served by one ring that enters at their first members, wherever these stand; where the
// second group's place in the other node is its second, it is not, and 5 and 6, which do nothing, stand
// beside members that differ.
TEST(RankColours, GroupsThatLieAlikeInTheirNodesAreAlikeWhereverTheyBegin) {
  EXPECT_EQ(simulated_of_two_groups(6), 4);
  EXPECT_EQ(simulated_of_two_groups(7), 8);
}

// Everyone sends to both neighbours under one tag: which message a receive matches is a question of names.
TEST(RankColours, AmbiguousMessagesAreNotFolded) {
  Graph graph;
  graph.ranks = 6;
  graph.program_of.assign(6, 0);
  graph.families = {world_family(6)};
  graph.names.add("node");
  Program& program = graph.programs.emplace_back();
  for (const std::int32_t shift : {1, -1}) {
    graph.transfers.push_back({shift, 0, Bytes(100), PeerKind::shift, 0});
    program.add(NodeKind::send, Phase::other, 1, -1, graph.transfers.size() - 1, {});
    graph.transfers.push_back({-shift, 0, Bytes(100), PeerKind::shift, 0});
    program.add(NodeKind::receive, Phase::other, 1, -1, graph.transfers.size() - 1, {});
  }
  Study study;
  study.machine.dimensions = {fast_dimension(DimensionKind::ring, 6)};
  CollectivePlanner planner(study.machine, study.collectives);
  EXPECT_EQ(fold_ranks({graph, issued_by(graph), study, Peers(graph)}, planner).simulated(), 6);
  graph.transfers[2].tag = graph.transfers[3].tag = 1;
  EXPECT_EQ(fold_ranks({graph, issued_by(graph), study, Peers(graph)}, planner).simulated(), 1);
}

// Of 131,072 ranks in 16 stages, 16 are simulated.
TEST(RankColours, ManyRanksAreAsManyClassesAsRoles) {
  Graph graph;
  graph.ranks = 1 << 17;
  const std::vector<std::int64_t> sizes = {8, 1024, 16};
  for (std::uint32_t axis = 0; axis < 3; ++axis)
    graph.families.push_back(grid_family(sizes, std::uint32_t{1} << axis));
  graph.names.add("node");
  graph.collectives = {{CollectiveKind::all_reduce, Bytes(8000), 0},
                       {CollectiveKind::all_gather, Bytes(80000), 1}};
  graph.transfers = {{1, 0, Bytes(5000), PeerKind::shift, 2}, {-1, 0, Bytes(5000), PeerKind::shift, 2}};
  for (std::int64_t rank = 0; rank < graph.ranks; ++rank)
    graph.program_of.push_back(static_cast<std::uint32_t>(rank / 8192));
  for (int stage = 0; stage < 16; ++stage) {
    Program& program = graph.programs.emplace_back();
    program.add(NodeKind::collective, Phase::other, 1, -1, 0, {});
    program.add(NodeKind::collective, Phase::other, 1, -1, 1, {});
    program.add(NodeKind::send, Phase::other, 1, -1, 0, {});
    program.add(NodeKind::receive, Phase::other, 1, -1, 1, {});
  }
  Study study;
  study.machine.dimensions = {fast_dimension(DimensionKind::switched, 8),
                              fast_dimension(DimensionKind::switched, 1 << 14)};
  CollectivePlanner planner(study.machine, study.collectives);
  EXPECT_EQ(fold_ranks({graph, issued_by(graph), study, Peers(graph)}, planner).simulated(), 16);
}

TEST(ComputeTimes, FactorsMultiplyAndJitterHasMeanOne) {
  Graph graph;
  graph.ranks = 2;
  graph.program_of = {0, 0};
  graph.programs.emplace_back();
  Machine machine;
  machine.dimensions = {fast_dimension(DimensionKind::ring, 2)};
  WhatIf what_if;
  what_if.ranks = {{{1, 1}, 1.5}, {{0, 1}, 2}};
  const ComputeTimes slow(graph, machine, what_if, {}, unfolded(graph));
  EXPECT_EQ(slow.of_delay(0, 0, Time(1001)), Time(2002));
  EXPECT_EQ(slow.of_delay(1, 0, Time(1001)), Time(3003));
  what_if = {};
  what_if.jitter = {0.2, 7};
  const ComputeTimes jittery(graph, machine, what_if, {}, unfolded(graph));
  double sum = 0, squares = 0;
  constexpr std::uint32_t kNodes = 20000;
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    const double factor = static_cast<double>(jittery.of_delay(0, node, Time(1'000'000)).value) * 1e-6;
    sum += factor;
    squares += (factor - 1) * (factor - 1);
  }
  EXPECT_NEAR(sum / kNodes, 1, 0.005);
  EXPECT_NEAR(std::sqrt(squares / kNodes), 0.2, 0.005);
  EXPECT_EQ(jittery.of_delay(0, 5, Time(1000)), jittery.of_delay(0, 5, Time(1000)));
  EXPECT_NE(jittery.of_delay(0, 5, Time(1'000'000)), jittery.of_delay(1, 5, Time(1'000'000)));
}

}  // namespace
}  // namespace armilla
