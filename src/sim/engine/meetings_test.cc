// Jobs in which it matters who meets whom, and in which order.

#include <gtest/gtest.h>

#include "base/cases_testing.h"
#include "base/error.h"
#include "sim/simulate.h"

namespace armilla {
namespace {

class NoWork : public CostModel {
 public:
  Time time(const Work&) const override { return Time(0); }
  FlopRate peak(DType) const override { return teraflops(1); }
};

// One dimension of 1 GB/s and 100 ns.
Study study_over(DimensionKind kind, std::int64_t size) {
  Study study;
  study.machine.name = "test";
  study.machine.dimensions = {{"d0", kind, size, gigabytes_per_second(1), nanoseconds(100)}};
  study.machine.device.memory_bandwidth = gigabytes_per_second(3);
  study.plan.ranks = size;
  study.collectives.chunks = 1;
  study.collectives.active_chunks = 1;
  return study;
}

// Two programs on overlapping groups in opposite order: each rank waits for the other.
TEST(Meetings, ARunThatCannotFinishSaysWhoWaitsForWhom) {
  Graph graph;
  graph.ranks = 2;
  graph.program_of = {0, 1};
  graph.families = {world_family(2), world_family(2)};
  graph.names.add("first");
  graph.names.add("second");
  graph.collectives = {{CollectiveKind::all_reduce, Bytes(100), 0, 0, 0},
                       {CollectiveKind::all_reduce, Bytes(100), 1, 0, 0}};
  for (const std::uint64_t order : {0, 1}) {
    Program& program = graph.programs.emplace_back();
    program.role = "rank";
    const std::uint32_t a =
        program.add(NodeKind::collective, Phase::other, static_cast<std::uint32_t>(1 + order), -1, order, {});
    program.add(NodeKind::collective, Phase::other, static_cast<std::uint32_t>(2 - order), -1, 1 - order,
                std::span(&a, 1));
  }
  const Study study = study_over(DimensionKind::ring, 2);
  try {
    simulate(graph, study, NoWork(), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "simulation: the run cannot finish: rank 0 waits in 'first' (node 0) for rank 1; rank 1 "
        "waits in 'second' (node 0) for rank 0\n"
        "  hint: the members of a group must issue the same collectives in the same order, and every "
        "receive needs a send of the same tag and size");
  }
}

// Four members compute 5, 0, 20 and 10 us before they meet. Whoever comes last, the collective takes as
// long as among members that come together, all of it behind that: data cannot be moved into a member that
// has not come.
TEST(Meetings, CollectivesBeginWhenTheLastMemberIsThere) {
  class Given : public NoWork {
   public:
    Time time(const Work& work) const override { return microseconds(work.flops.value); }
  };
  const auto run_with = [](const std::vector<std::int64_t>& before, CollectiveKind kind, bool every_message) {
    Graph graph;
    graph.ranks = 4;
    graph.families = {world_family(4)};
    graph.collectives = {{kind, Bytes(40'000), 0, 0, 0}};
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      graph.program_of.push_back(rank);
      Work work;
      work.flops = Flops(before[rank]);
      graph.works.push_back(work);
      Program& program = graph.programs.emplace_back();
      const std::uint32_t a = program.add(NodeKind::compute, Phase::other, 0, -1, rank, {});
      program.add(NodeKind::collective, Phase::other, 0, -1, 0, std::span(&a, 1));
    }
    SimulationOptions options;
    options.every_message = every_message;
    return simulate(graph, study_over(DimensionKind::ring, 4), Given(), options);
  };
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
        CollectiveKind::all_to_all, CollectiveKind::broadcast, CollectiveKind::reduce}) {
    for (const bool every_message : {true, false}) {
      const Time together = run_with({0, 0, 0, 0}, kind, every_message).iteration;
      const Result late = run_with({5, 0, 20, 10}, kind, every_message);
      EXPECT_EQ(late.iteration, microseconds(20) + together) << name_of(kind);
      ASSERT_EQ(late.collectives.size(), 4U);
      for (const CollectiveRecord& record : late.collectives) EXPECT_GE(record.started, microseconds(20));
    }
  }
}

// Custom schedules are not known to be symmetric, and shared memory makes equal ranks wait for each other.
TEST(Meetings, RanksThatMeetAloneAreNotFolded) {
  Graph custom;
  custom.ranks = 2;
  custom.program_of = {0, 0};
  custom.families = {world_family(2)};
  CustomCollective& exchange = custom.custom.emplace_back();
  for (std::int32_t member = 0; member < 2; ++member) {
    CustomProgram& program = exchange.members.emplace_back();
    for (const CustomNode::Kind kind : {CustomNode::Kind::send, CustomNode::Kind::receive}) {
      CustomNode& node = program.nodes.emplace_back();
      node.kind = kind;
      node.peer = 1 - member;
      node.bytes = Bytes(1000);
      program.first_dependence.push_back(0);
    }
  }
  CollectiveCall call;
  call.custom = 0;
  custom.collectives = {call};
  custom.programs.emplace_back().add(NodeKind::collective, Phase::other, 0, -1, 0, {});
  const Study study = study_over(DimensionKind::ring, 2);
  SimulationOptions options;
  const Time folded = simulate(custom, study, NoWork(), options).iteration;
  options.fold = false;
  EXPECT_EQ(folded, simulate(custom, study, NoWork(), options).iteration);

  Graph memory;
  memory.ranks = 2;
  memory.program_of = {0, 0};
  memory.programs.emplace_back().add(NodeKind::memory_load, Phase::other, 0, -1, 1000, {});
  options.remote_memory = {RemoteMemoryKind::pool, 100, 1, 0, 0};
  options.fold = true;
  EXPECT_EQ(simulate(memory, study, NoWork(), options).iteration, nanoseconds(2 * 1100));
}

// Messages that know their receives take as long as those that look for them. Three members send each other
// two pieces, which tags tell apart or not; what is received is worked on before the second piece is sent.
TEST(Meetings, CustomMessagesTakeTheSameTimeHoweverTheyAreMatched) {
  const auto exchange = [](bool distinct) {
    CustomCollective made;
    for (std::int32_t member = 0; member < 3; ++member) {
      CustomProgram& program = made.members.emplace_back();
      const auto add = [&](CustomNode node, std::span<const std::uint32_t> after) {
        program.nodes.push_back(node);
        program.dependence.insert(program.dependence.end(), after.begin(), after.end());
        program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
        return static_cast<std::uint32_t>(program.nodes.size() - 1);
      };
      for (std::int32_t shift = 1; shift < 3; ++shift) {
        const std::int32_t to = (member + shift) % 3, from = (member + 3 - shift) % 3;
        std::vector<std::uint32_t> after;
        for (std::uint32_t piece = 0; piece < 2; ++piece) {
          const std::uint32_t tag = distinct ? piece : 0;
          const auto message = [&](CustomNode::Kind kind, std::int32_t peer) {
            return CustomNode{kind, peer, tag, Bytes(1000 * (member + 1)), {}, 0, 0};
          };
          add(message(CustomNode::Kind::send, to), after);
          CustomNode received = message(CustomNode::Kind::receive, from);
          received.bytes = Bytes(1000 * (from + 1));
          const std::uint32_t here = add(received, after);
          CustomNode work;
          work.duration = nanoseconds(100 * (member + 1));
          after = {add(work, std::span(&here, 1))};
        }
      }
    }
    return made;
  };
  const auto result_of = [&](bool distinct) {
    Graph graph;
    graph.ranks = 3;
    graph.program_of = {0, 0, 0};
    graph.families = {world_family(3)};
    graph.custom = {exchange(distinct)};
    CollectiveCall call;
    call.custom = 0;
    graph.collectives = {call};
    Program& program = graph.programs.emplace_back();
    std::uint32_t last = program.add(NodeKind::collective, Phase::other, 0, -1, 0, {});
    for (int again = 0; again < 3; ++again)
      last = program.add(NodeKind::collective, Phase::other, 0, -1, 0, std::span(&last, 1));
    return simulate(graph, study_over(DimensionKind::ring, 3), NoWork());
  };
  const Result known = result_of(true), searched = result_of(false);
  EXPECT_EQ(known.messages, searched.messages);
  EXPECT_EQ(known.iteration, searched.iteration);
  ASSERT_EQ(known.collectives.size(), searched.collectives.size());
  for (std::size_t i = 0; i < known.collectives.size(); ++i)
    EXPECT_EQ(known.collectives[i].finished, searched.collectives[i].finished) << i;
  ASSERT_EQ(known.links.size(), searched.links.size());
  for (std::size_t i = 0; i < known.links.size(); ++i)
    EXPECT_EQ(known.links[i].bytes, searched.links[i].bytes);
}

// Each has the only slot of its dimension for another collective than some peer, which must not stop either.
TEST(Meetings, RanksMayReachTheirCollectivesInDifferentOrders) {
  Graph graph;
  graph.ranks = 8;
  graph.families = {world_family(8), world_family(8)};
  graph.names.add("first");
  graph.names.add("second");
  graph.collectives = {{CollectiveKind::all_reduce, Bytes(800), 0, 0, 0},
                       {CollectiveKind::all_reduce, Bytes(800), 1, 0, 0}};
  for (const std::uint64_t order : {0, 1}) {
    Program& program = graph.programs.emplace_back();
    program.role = "rank";
    program.add(NodeKind::collective, Phase::other, static_cast<std::uint32_t>(1 + order), -1, order, {});
    program.add(NodeKind::collective, Phase::other, static_cast<std::uint32_t>(2 - order), -1, 1 - order, {});
  }
  Study study = study_over(DimensionKind::switched, 8);
  for (unsigned assignment = 1; assignment < 255; assignment += kCaseStep) {
    graph.program_of.clear();
    for (unsigned rank = 0; rank < 8; ++rank) graph.program_of.push_back(assignment >> rank & 1U);
    for (const char* const algorithm :
         {"double-binary-tree", "halving-doubling", "ring", "direct:window=1"}) {
      study.collectives.algorithms = {algorithm};
      EXPECT_GT(simulate(graph, study, NoWork(), {}).iteration, Time(0)) << assignment << ' ' << algorithm;
    }
  }
}

}  // namespace
}  // namespace armilla
