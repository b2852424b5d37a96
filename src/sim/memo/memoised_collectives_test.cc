// Collectives that are alone most of the time are remembered, and played where something meets them.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/simulate.h"

namespace armilla {
namespace {

class NothingToCompute : public CostModel {
 public:
  Time time(const Work&) const override { return Time(0); }
  FlopRate peak(DType) const override { return teraflops(1); }
};

// Two stages of four ranks in groups of `size`. Each computes and reduces `slots` times; after every
// `every`th of the first `until`, the first stage sends something to the second.
Graph stages_of(std::uint32_t slots, std::uint32_t every, std::uint32_t until, std::int32_t size = 4) {
  Graph graph;
  graph.ranks = 8;
  graph.program_of = {0, 0, 0, 0, 1, 1, 1, 1};
  graph.names.add("node");
  GroupFamily tensor, pipeline;
  tensor.name = "tensor";
  tensor.groups.resize(static_cast<std::size_t>(8 / size));
  for (std::int32_t rank = 0; rank < 8; ++rank) {
    tensor.group_of.push_back(rank / size);
    tensor.groups[static_cast<std::size_t>(rank / size)].push_back(rank);
  }
  pipeline.name = "pipeline";
  pipeline.groups = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  pipeline.group_of = {0, 1, 2, 3, 0, 1, 2, 3};
  graph.families = {tensor, pipeline};
  CollectiveCall call;
  call.kind = CollectiveKind::all_reduce;
  call.bytes = Bytes(100'000);
  graph.collectives = {call};
  PointToPoint there, back;
  there.family = back.family = 1;
  there.peer_kind = back.peer_kind = PeerKind::shift;
  there.peer = 1;
  back.peer = -1;
  there.bytes = back.bytes = Bytes(20'000);
  graph.transfers = {there, back};
  for (const std::uint64_t stage : {0, 1}) {
    Program& program = graph.programs.emplace_back();
    program.role = "stage";
    std::vector<std::uint32_t> after;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      // Of another length in each stage, so that messages come at any time.
      after = {program.add(NodeKind::delay, Phase::other, 1, -1, 1'000'003 + 777'001 * stage, after)};
      after = {program.add(NodeKind::collective, Phase::other, 1, -1, 0, after)};
      if (slot < until && slot % every == 0)
        program.add(stage == 0 ? NodeKind::send : NodeKind::receive, Phase::other, 1, -1, stage, after);
    }
  }
  return graph;
}

Study one_dimension(DimensionKind kind) {
  Study study;
  study.machine.name = "one";
  study.machine.dimensions = {{"one", kind, 8, gigabytes_per_second(10), nanoseconds(100)}};
  study.plan.ranks = 8;
  return study;
}

Study one_switch() {
  return one_dimension(DimensionKind::switched);
}

std::vector<Time> ends_of(const Result& result) {
  std::vector<Time> ends;
  for (const CollectiveRecord& record : result.collectives) ends.push_back(record.finished);
  for (const std::uint32_t ranks : result.class_of) ends.push_back(result.classes[ranks].finish);
  return ends;
}

TEST(MemoisedCollectives, ArePlayedOnlyWhereTheyAreMet) {
  const Study study = one_switch();
  std::int64_t before = 0;
  for (const std::uint32_t every : {4, 16, 64}) {
    const Graph graph = stages_of(256, every, 256);
    validate_graph(graph);
    for (const bool fold : {false, true}) {
      const Result played = simulate(graph, study, NothingToCompute(), {.fold = fold, .every_message = true});
      const Result quick = simulate(graph, study, NothingToCompute(), {.fold = fold});
      EXPECT_EQ(ends_of(quick), ends_of(played)) << every;
      EXPECT_EQ(quick.messages, played.messages) << every;
      EXPECT_LT(quick.events, played.events) << every;
      if (every == 64) {
        EXPECT_LT(4 * quick.events, played.events);
      }
      if (!fold) continue;
      // The fewer messages, the fewer collectives are met.
      if (before > 0) {
        EXPECT_LT(quick.events, before) << every;
      }
      before = quick.events;
    }
  }
}

TEST(MemoisedCollectives, AreLookedUpAgainAfterAPhaseInWhichTheyAreMet) {
  const Study study = one_switch();
  const Graph graph = stages_of(1024, 1, 128);
  const Result played = simulate(graph, study, NothingToCompute(), {.every_message = true});
  const Result quick = simulate(graph, study, NothingToCompute());
  EXPECT_EQ(ends_of(quick), ends_of(played));
  EXPECT_EQ(quick.messages, played.messages);
  EXPECT_LT(3 * quick.events, played.events);
}

// Pairs of neighbours on a ring: what others send could pass them.
TEST(MemoisedCollectives, AreLookedUpOnPartOfARing) {
  const Study study = one_dimension(DimensionKind::ring);
  const Graph graph = stages_of(256, 64, 0, 2);
  for (const bool fold : {false, true}) {
    const Result played = simulate(graph, study, NothingToCompute(), {.fold = fold, .every_message = true});
    const Result quick = simulate(graph, study, NothingToCompute(), {.fold = fold});
    EXPECT_EQ(ends_of(quick), ends_of(played));
    EXPECT_EQ(quick.messages, played.messages);
    EXPECT_LT(4 * quick.events, played.events);
  }
}

}  // namespace
}  // namespace armilla
