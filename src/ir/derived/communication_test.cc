#include "ir/derived/communication.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

// Ranks 0 to 2 run the first program, rank 3 the second; all of them in the one group "tensor". Two
// all-reduces of the first program overlap from 5 to 6 us.
Run two_roles() {
  Run run;
  run.study.machine.dimensions = {
      {"nvlink", DimensionKind::switched, 2, gigabytes_per_second(300), microseconds(1)},
      {"rail", DimensionKind::switched, 2, gigabytes_per_second(25), microseconds(1)}};
  run.graph.ranks = 4;
  run.graph.program_of = {0, 0, 0, 1};
  run.graph.families = {world_family(4)};
  run.graph.families[0].name = "tensor";
  run.graph.collectives = {{CollectiveKind::all_gather, Bytes(1'000'000)}};
  run.graph.transfers = {{1, 0, Bytes(2'500'000), PeerKind::shift, 0}, {2, 0, Bytes(500'000)}};
  run.graph.programs.resize(2);
  for (Program& program : run.graph.programs) {
    program.add(NodeKind::collective, Phase::forward, 0, -1, 0, {});
    program.add(NodeKind::collective, Phase::forward, 0, -1, 0, {});
    program.add(NodeKind::send, Phase::forward, 0, -1, 0, {});
    program.add(NodeKind::send, Phase::forward, 0, -1, 1, {});
  }
  run.result.iteration = microseconds(200);
  run.result.classes.resize(2);
  run.result.classes[0].ranks = 3;
  run.result.classes[1].program = 1;
  run.result.classes[1].representative = 3;
  const auto call = [&](std::uint32_t program, std::uint32_t node, std::int64_t start, std::int64_t end) {
    CollectiveRecord record;
    record.program = program;
    record.node = node;
    record.group_size = 4;
    record.issued = microseconds(start - 1);
    record.started = microseconds(start);
    record.finished = microseconds(end);
    record.link_limit = microseconds(2);
    run.result.collectives.push_back(record);
  };
  call(0, 0, 1, 6);
  call(0, 1, 5, 8);
  call(1, 0, 1, 4);
  // Rank 0 to rank 1 within a node; rank 3 to rank 0 over the rail; rank 0 to rank 2 over the rail.
  run.result.classes[0].others = {{microseconds(10), microseconds(20), 2},
                                  {microseconds(30), microseconds(50), 3}};
  run.result.classes[1].others = {{microseconds(10), microseconds(210), 2}};
  return run;
}

TEST(Communication, CollectivesArePerRank) {
  const auto run = two_roles();
  const std::vector<CollectiveSummary> summaries = summarize_collectives(run);
  ASSERT_EQ(summaries.size(), 1U);
  const CollectiveSummary& all = summaries[0];
  // One rank of either role: what was simulated.
  EXPECT_EQ(all.axis, "tensor");
  EXPECT_EQ(all.count, 3);
  EXPECT_EQ(all.time, microseconds(5 + 3 + 3));
  EXPECT_EQ(all.bytes, Bytes(3'000'000));
  // Three ranks with 7 us of two overlapping calls and one with 3 us.
  EXPECT_EQ(all.per_rank.ranks, 4);
  EXPECT_DOUBLE_EQ(all.per_rank.calls, 7.0 / 4);
  EXPECT_EQ(all.per_rank.time, microseconds(6));
  EXPECT_EQ(all.per_rank.most_time, microseconds(7));
  EXPECT_EQ(all.per_rank.queued, nanoseconds(1750));
  EXPECT_EQ(all.per_rank.bytes, Bytes(1'750'000));
  EXPECT_DOUBLE_EQ(all.per_rank.bandwidth.value, 0.75 * 7e6 / 24e-6);
  EXPECT_DOUBLE_EQ(all.per_rank.link_share, 14.0 / 24);
}

TEST(Communication, MessagesAreSummedByTheirAxis) {
  const auto run = two_roles();
  const std::vector<MessageSummary> summaries = summarize_messages(run);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].axis, "tensor");
  EXPECT_EQ(summaries[0].count, 2);
  EXPECT_EQ(summaries[0].time, microseconds(210));
  EXPECT_EQ(summaries[0].bytes, Bytes(5'000'000));
  EXPECT_EQ(summaries[0].per_rank.ranks, 4);
  EXPECT_EQ(summaries[0].per_rank.calls, 1);
  EXPECT_NEAR(in_seconds(summaries[0].per_rank.time), (3 * 10e-6 + 200e-6) / 4, 1e-12);
  EXPECT_EQ(summaries[0].per_rank.most_time, microseconds(200));
  // The rail's 25 GB/s bound what goes from rank 3 to rank 0, the switch's 300 GB/s the others.
  EXPECT_NEAR(summaries[0].per_rank.link_share, (3 * 2.5e6 / 300e9 + 2.5e6 / 25e9) / 230e-6, 1e-9);
  EXPECT_EQ(summaries[1].axis, "");
  EXPECT_EQ(summaries[1].per_rank.ranks, 3);
  EXPECT_DOUBLE_EQ(summaries[1].per_rank.bandwidth.value, 0.5e6 / 20e-6);
  EXPECT_DOUBLE_EQ(summaries[1].per_rank.link_share, 1);
}

// Of a call that began 5 us before the iteration did, the next one is under way in its last 5 us.
TEST(Communication, WhatBeganBeforeAnIterationEndsIsUnderWayAtItsEnd) {
  auto run = two_roles();
  run.result.collectives.resize(1);
  run.result.collectives[0].issued = run.result.collectives[0].started = microseconds(-5);
  EXPECT_EQ(summarize_collectives(run)[0].per_rank.time, microseconds(6 + 5));
  // Never longer than the iteration.
  run.result.collectives[0].issued = run.result.collectives[0].started = microseconds(-500);
  EXPECT_EQ(summarize_collectives(run)[0].per_rank.time, run.result.iteration);
  // Of what repeats only what is recorded is left out of the end.
  run.result.collectives[0].issued = run.result.collectives[0].started = microseconds(-5);
  for (RankClass& ranks : run.result.classes) ranks.repeated = {{microseconds(20), microseconds(30), 10}};
  EXPECT_EQ(summarize_collectives(run)[0].per_rank.time, microseconds(6 + 5));
  // A message in two parts is one.
  run = two_roles();
  run.iterations = 4;
  run.result.classes[0].others = {{microseconds(0), microseconds(20), 2},
                                  {microseconds(190), microseconds(200), 2}};
  run.result.classes[1].others.clear();
  const MessageSummary message = summarize_messages(run)[0];
  EXPECT_EQ(message.count, 1);
  EXPECT_EQ(message.per_rank.time, microseconds(30));
}

TEST(Communication, RanksOfARoleThatDifferAreSaidTo) {
  auto run = two_roles();
  EXPECT_FALSE(communication_spread(run));
  RankClass& other = run.result.classes.emplace_back(run.result.classes[0]);
  run.result.classes[0].communication = microseconds(10);
  other.communication = microseconds(12);  // by 1 % of the iteration
  EXPECT_FALSE(communication_spread(run));
  other.communication = microseconds(13);
  const std::optional<CommunicationSpread> spread = communication_spread(run);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->program, 0U);
  EXPECT_EQ(spread->least, microseconds(10));
  EXPECT_EQ(spread->most, microseconds(13));
}

// The call that ends at 6 us is of a round of 4 us, which comes three times more.
TEST(Communication, CollectivesOfRoundsAreListedAsOftenAsTheyHappen) {
  auto run = two_roles();
  run.result.classes[0].repeated = {{microseconds(3), microseconds(7), 3, microseconds(1)}};
  run.result.collectives[0].times = 4;
  const auto ends = [&](std::int64_t most, std::int64_t left_out) {
    const HappenedCollectives listed = collectives_one_by_one(run, most);
    EXPECT_EQ(listed.left_out, left_out);
    std::vector<std::int64_t> found;
    for (const auto& [record, later] : listed.all)
      found.push_back((record->finished + later).value / microseconds(1).value);
    return found;
  };
  EXPECT_EQ(ends(100, 0), (std::vector<std::int64_t>{4, 6, 10, 14, 18, 21}));
  EXPECT_EQ(ends(3, 2), (std::vector<std::int64_t>{4, 6, 10, 14}));
  EXPECT_EQ(ends(4, 1), (std::vector<std::int64_t>{4, 6, 10, 14, 18}));
}

TEST(Communication, ARunWithoutAnyHasNone) {
  auto run = two_roles();
  run.result.collectives.clear();
  for (RankClass& ranks : run.result.classes) ranks.others.clear();
  EXPECT_TRUE(summarize_collectives(run).empty());
  EXPECT_TRUE(summarize_messages(run).empty());
  EXPECT_TRUE(summarize_messages({}).empty());
  EXPECT_FALSE(communication_spread({}));
}

}  // namespace
}  // namespace armilla
