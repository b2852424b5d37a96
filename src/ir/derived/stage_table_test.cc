#include "ir/derived/stage_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace armilla {
namespace {

using testing::ElementsAre;

struct Builder {
  Run run;
  Program& program() { return run.graph.programs.back(); }
  std::uint32_t add(NodeKind kind, std::uint64_t payload = 0) {
    return program().add(kind, Phase::forward, 0, -1, payload, {});
  }
};

// Two roles of two ranks each in 10 us; families "tensor" and "pipeline".
Run two_stages() {
  Builder builder;
  Run& run = builder.run;
  run.graph.ranks = 4;
  run.graph.program_of = {0, 0, 1, 1};
  run.graph.families = {{"tensor", {{0, 1}, {2, 3}}, {0, 0, 1, 1}, 0},
                        {"pipeline", {{0, 2}, {1, 3}}, {0, 1, 0, 1}, 0}};
  run.graph.works = {{WorkKind::vector, DType::fp32, Flops(1), Bytes(1), {}}};
  run.graph.collectives = {{CollectiveKind::all_reduce, Bytes(8), 0}};
  run.graph.transfers = {{1, 0, Bytes(8), PeerKind::position, 1}};
  for (const char* const role : {"stage 0", "stage 1"}) {
    run.graph.programs.emplace_back().role = role;
    builder.add(NodeKind::compute);
    builder.add(NodeKind::collective);
    builder.add(role == std::string_view("stage 0") ? NodeKind::send : NodeKind::receive);
  }
  run.result.iteration = microseconds(10);
  run.result.ranks = 4;
  run.result.class_of = {0, 0, 1, 1};
  run.result.classes.resize(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    RankClass& ranks = run.result.classes[i];
    ranks.program = i;
    ranks.ranks = 2;
    ranks.representative = static_cast<std::int32_t>(2 * i);
  }
  // Stage 0 computes until 4, its all-reduce is hidden until 4 and exposed until 6, its message from 5 to 7.
  RankClass& first = run.result.classes[0];
  first.compute = microseconds(4);
  first.communication = microseconds(4);
  first.exposed_communication = microseconds(3);
  first.computes = {{microseconds(0), microseconds(4), 0}};
  first.collectives = {{microseconds(3), microseconds(6), 1}};
  first.others = {{microseconds(5), microseconds(7), 2}};
  // Stage 1 waits for it until 7 and then computes for 2.
  RankClass& second = run.result.classes[1];
  second.compute = microseconds(2);
  second.computes = {{microseconds(7), microseconds(9), 0}};
  second.collectives = {{microseconds(9), microseconds(9), 1}};
  second.others = {{microseconds(0), microseconds(7), 2}};
  return run;
}

TEST(StageTable, AnIterationIsComputeExposedCommunicationAndBubble) {
  const auto run = two_stages();
  const StageTable table = stage_table(run);
  EXPECT_THAT(table.kinds, ElementsAre("tensor", "pipeline"));
  ASSERT_EQ(table.stages.size(), 2U);
  // While both are under way the time is the first kind's.
  EXPECT_THAT(table.stages[0].exposed, ElementsAre(microseconds(2), microseconds(1)));
  EXPECT_EQ(table.stages[0].bubble, microseconds(10 - 4 - 3));
  EXPECT_EQ(table.stages[0].ranks, 2);
  // Waiting for a message is bubble.
  EXPECT_THAT(table.stages[1].exposed, ElementsAre(Time(0), Time(0)));
  EXPECT_EQ(table.stages[1].bubble, microseconds(8));
  EXPECT_DOUBLE_EQ(bubble_fraction(run), (3.0 + 8.0) / 20);
  EXPECT_DOUBLE_EQ(bubble_ratio(run), (3.0 + 8.0) / (4 + 2));
}

TEST(StageTable, BubblesAreMeansOverAllRanksNotTheFirstOfEveryRole) {
  auto run = two_stages();
  RankClass longer = run.result.classes[1];  // a rank of the second role that computes three times as long
  run.result.classes[1].ranks = longer.ranks = 1;
  longer.compute = microseconds(6);
  run.result.classes.push_back(longer);
  EXPECT_DOUBLE_EQ(bubble_fraction(run), (2 * 3.0 + 8.0 + 4.0) / 40);
  EXPECT_DOUBLE_EQ(bubble_ratio(run), (2 * 3.0 + 8.0 + 4.0) / (2 * 4 + 2 + 6));
}

TEST(StageTable, KindsThatNobodyWaitsForAreLeftOut) {
  auto run = two_stages();
  run.result.classes[0].collectives[0].end = microseconds(4);
  const StageTable table = stage_table(run);
  EXPECT_THAT(table.kinds, ElementsAre("pipeline"));
  EXPECT_THAT(table.stages[0].exposed, ElementsAre(microseconds(2)));
}

TEST(StageTable, AStragglersClassWidensTheRangeOfItsRole) {
  auto run = two_stages();
  run.result.classes[1].ranks = 1;
  RankClass slow;
  slow.program = 1;
  slow.representative = 3;
  slow.compute = microseconds(3);
  run.result.classes.push_back(slow);
  run.result.class_of = {0, 0, 1, 2};
  const StageTable table = stage_table(run);
  ASSERT_EQ(table.stages.size(), 2U);
  EXPECT_EQ(table.stages[1].ranks, 2);
  EXPECT_EQ(table.stages[1].compute, microseconds(2));
  EXPECT_EQ(table.stages[1].least_compute, microseconds(2));
  EXPECT_EQ(table.stages[1].most_compute, microseconds(3));
}

TEST(StageTable, WithoutIntervalsEverythingButComputeIsBubble) {
  auto run = two_stages();
  for (RankClass& ranks : run.result.classes) ranks.computes = ranks.collectives = ranks.others = {};
  const StageTable table = stage_table(run);
  EXPECT_TRUE(table.kinds.empty());
  EXPECT_EQ(table.stages[0].bubble, microseconds(6));
}

TEST(StageTable, ARunWithoutRanksHasNone) {
  const armilla::Run run;
  const StageTable table = stage_table(run);
  EXPECT_TRUE(table.stages.empty());
  EXPECT_EQ(bubble_fraction(run), 0);
  EXPECT_EQ(bubble_ratio(run), 0);
}

TEST(MemoryOverTime, FollowsTheComputations) {
  auto run = two_stages();
  run.result.classes[0].computes.push_back({microseconds(5), microseconds(7), 2});
  RoleMemory memory;
  memory.use.weights = Bytes(100);
  memory.use.activations = Bytes(30);
  memory.use.temporary = Bytes(5);
  memory.over_time = {{0, false, Bytes(20), Bytes(1), Bytes(0)},
                      {0, true, Bytes(20), Bytes(0), Bytes(0)},
                      {2, false, Bytes(30), Bytes(5), Bytes(0)},
                      {2, true, Bytes(0), Bytes(0), Bytes(0)}};
  const auto held_at = [](const MemorySample& sample) { return std::pair(sample.at, sample.held); };
  const std::vector<MemorySample> samples = memory_over_time(run, memory, 100);
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(held_at(samples[0]), std::pair(Time(0), Bytes(121)));
  EXPECT_EQ(held_at(samples[1]), std::pair(microseconds(4), Bytes(120)));
  EXPECT_EQ(held_at(samples[2]), std::pair(microseconds(5), Bytes(135)));
  EXPECT_EQ(samples[2].activations, Bytes(30));
  EXPECT_EQ(samples[2].temporary, Bytes(5));
  EXPECT_EQ(held_at(samples[3]), std::pair(microseconds(7), Bytes(100)));
  // Thinned, the peak stays.
  const std::vector<MemorySample> thinned = memory_over_time(run, memory, 2);
  ASSERT_EQ(thinned.size(), 2U);
  EXPECT_EQ(thinned[1].held, memory.use.peak());
  // Where a window of the run was recorded, it begins with what was held before.
  run.result.classes[0].computes = {{microseconds(5), microseconds(7), 2}};
  EXPECT_EQ(held_at(memory_over_time(run, memory, 100)[0]), std::pair(Time(0), Bytes(120)));
  memory.program = 7;
  EXPECT_TRUE(memory_over_time(run, memory, 100).empty());
}

TEST(MemoryOverTime, GradientsComeWhenTheyAreMade) {
  auto run = two_stages();
  run.result.classes[0].computes.push_back({microseconds(5), microseconds(7), 2});
  RoleMemory memory;
  memory.use.weights = Bytes(100);
  memory.use.gradients = Bytes(40);
  memory.over_time = {{0, false, Bytes(30), Bytes(0), Bytes(0)}, {2, true, Bytes(0), Bytes(0), Bytes(40)}};
  const std::vector<MemorySample> samples = memory_over_time(run, memory, 100);
  EXPECT_EQ(samples.front().held, Bytes(130));
  EXPECT_EQ(samples.back().held, memory.use.peak());
}

// All of a pass's gradients are there when its last block is done, and gone as the next pass begins.
TEST(MemoryOverTime, KeepsThePeakBetweenTwoComputations) {
  auto run = two_stages();
  run.result.classes[0].computes = {{microseconds(0), microseconds(4), 0},
                                    {microseconds(4), microseconds(7), 2}};
  RoleMemory memory;
  memory.use.gradients = Bytes(90);
  memory.over_time = {{0, false, Bytes(30), Bytes(5), Bytes(40)},
                      {0, true, Bytes(0), Bytes(0), Bytes(90)},
                      {2, false, Bytes(30), Bytes(5), Bytes(0)},
                      {2, true, Bytes(0), Bytes(0), Bytes(0)}};
  const std::vector<MemorySample> samples = memory_over_time(run, memory, 100);
  const MemorySample& fullest = *std::ranges::max_element(samples, {}, &MemorySample::held);
  EXPECT_EQ(fullest.held, memory.use.peak());
  EXPECT_EQ(fullest.at, microseconds(4));
}

TEST(MemoryOverTime, KeepsThePeakOfAComputationThatTakesNoTime) {
  auto run = two_stages();
  run.result.classes[0].computes = {{microseconds(4), microseconds(4), 0}};
  RoleMemory memory;
  memory.use.activations = Bytes(30);
  memory.over_time = {{0, false, Bytes(30), Bytes(0), Bytes(0)}, {0, true, Bytes(0), Bytes(0), Bytes(0)}};
  const std::vector<MemorySample> samples = memory_over_time(run, memory, 100);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[1].held, Bytes(30));
  EXPECT_EQ(samples[2].held, Bytes(0));
}

}  // namespace
}  // namespace armilla
