#include "study/run.h"

#include <gtest/gtest.h>

#include <set>

namespace armilla {
namespace {

// One second a flop.
class FlopSeconds final : public CostModel {
 public:
  Time time(const Work& work) const override { return Time(work.flops.value * 1'000'000'000'000); }
  FlopRate peak(DType) const override { return FlopRate(1); }
};

// Eight ranks on 2 x 4: two programs of four, "tensor" groups of two neighbours, "data" groups across nodes,
// and a pipeline from rank r to r + 4.
Run small_run() {
  Run run;
  run.study.machine.dimensions = {
      {"nvlink", DimensionKind::switched, 4, gigabytes_per_second(100), microseconds(1)},
      {"rail", DimensionKind::switched, 2, gigabytes_per_second(10), microseconds(1)}};
  Graph& graph = run.graph;
  graph.ranks = 8;
  graph.program_of = {0, 0, 0, 0, 1, 1, 1, 1};
  graph.families = {{"tensor", {{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {0, 0, 1, 1, 2, 2, 3, 3}, 0},
                    {"pipeline", {{0, 4}, {1, 5}, {2, 6}, {3, 7}}, {0, 1, 2, 3, 0, 1, 2, 3}, 0}};
  graph.works = {{WorkKind::matrix, DType::bf16, Flops(2), Bytes(1), {{1, 1, 1, 1, true}}},
                 {WorkKind::vector, DType::bf16, Flops(3), Bytes(1), {}}};
  graph.collectives = {{CollectiveKind::all_reduce, Bytes(64), 0}};
  graph.transfers = {{1, 0, Bytes(32), PeerKind::shift, 1}, {-1, 0, Bytes(32), PeerKind::shift, 1}};
  for (const bool first : {true, false}) {
    Program& program = graph.programs.emplace_back();
    const auto add = [&](NodeKind kind, Phase phase, const char* name, std::uint64_t payload) {
      program.add(kind, phase, graph.names.add(name), -1, payload, {});
    };
    for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
      add(NodeKind::compute, Phase::forward, "qkv", 0);
      add(NodeKind::collective, Phase::forward, "reduce", 0);
      add(first ? NodeKind::send : NodeKind::receive, Phase::forward, "message", first ? 0 : 1);
      add(NodeKind::compute, Phase::weight_gradient, "qkv", 0);
    }
    if (!first) add(NodeKind::compute, Phase::forward, "loss", 1);
  }
  CollectiveRecord record;
  record.node = 1;
  record.started = microseconds(1);
  record.finished = microseconds(5);
  run.result.collectives = {record, record};
  run.result.collectives[1].node = 5;
  run.result.collectives[1].finished = microseconds(7);
  run.result.classes.resize(2);
  run.result.classes[0].others = {{microseconds(10), microseconds(12), 2}};
  run.result.classes[1].program = 1;
  return run;
}

TEST(ListEvents, EqualComputationsAreOneEventWhoeverRunsThem) {
  const EventTable table = list_events(small_run(), FlopSeconds());
  ASSERT_EQ(table.computations.size(), 3U);
  // The longest in total first: 8 ranks x 3 micro-batches x 2 s, twice, then 4 x 3 s.
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(table.computations[i].name, "qkv");
    EXPECT_EQ(table.computations[i].count, 24);
    EXPECT_EQ(table.computations[i].time, Time(2'000'000'000'000));
    EXPECT_EQ(table.computations[i].work.gemms.size(), 1U);
  }
  EXPECT_NE(table.computations[0].phase, table.computations[1].phase);
  EXPECT_EQ(table.computations[2].name, "loss");
  EXPECT_EQ(table.computations[2].count, 4);
}

TEST(ListEvents, CommunicationsSayWhereTheyGoAndHowLongTheyTook) {
  const EventTable table = list_events(small_run(), FlopSeconds());
  ASSERT_EQ(table.communications.size(), 2U);
  const JobEvent& reduce = table.communications[0];
  EXPECT_EQ(reduce.name, "all-reduce");
  EXPECT_EQ(reduce.bytes, Bytes(64));
  EXPECT_EQ(reduce.group_size, 2);
  EXPECT_EQ(reduce.spans, "nvlink");
  EXPECT_FALSE(reduce.inter_node);
  EXPECT_EQ(reduce.count, 24);
  EXPECT_EQ(reduce.time, microseconds(5)) << "the mean of 4 and 6";
  const JobEvent& send = table.communications[1];
  EXPECT_EQ(send.name, "send");
  EXPECT_EQ(send.spans, "rail");
  EXPECT_TRUE(send.inter_node);
  EXPECT_EQ(send.count, 12) << "receives are the other end";
  EXPECT_EQ(send.time, microseconds(2));
  EXPECT_EQ(occurrences(table), 24 + 24 + 4 + 24 + 12);
  EXPECT_DOUBLE_EQ(redundancy_factor(table), 88.0 / 5);
}

TEST(ListEvents, GroupsOfOneFamilyThatSpanDifferentDimensionsAreDifferentEvents) {
  auto run = small_run();
  run.graph.families[0].groups = {{0, 1}, {2, 4}, {3, 5}, {6, 7}};
  run.graph.families[0].group_of = {0, 0, 1, 2, 1, 2, 3, 3};
  std::set<std::string> spans;
  for (const JobEvent& event : list_events(run, FlopSeconds()).communications) {
    if (event.kind == NodeKind::collective) spans.insert(event.spans);
  }
  EXPECT_EQ(spans, (std::set<std::string>{"nvlink", "nvlink+rail"}));
}

TEST(ListEvents, OperatorsOfAGraphGoByTheirType) {
  auto run = small_run();
  Operator op;
  op.name = "qkv";
  op.type = "MatMul";
  run.model.operators = {op};
  EXPECT_EQ(list_events(run, FlopSeconds()).computations[0].name, "MatMul");
}

TEST(ListEvents, AnEmptyRunHasNone) {
  const EventTable table = list_events(armilla::Run(), FlopSeconds());
  EXPECT_EQ(occurrences(table), 0);
  EXPECT_EQ(redundancy_factor(table), 0);
}

}  // namespace
}  // namespace armilla
