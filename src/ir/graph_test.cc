#include "ir/graph.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace armilla {
namespace {

// Two ranks, one program: a delay of 5 ps, then an all-reduce.
Graph small_graph() {
  Graph graph;
  graph.ranks = 2;
  graph.program_of = {0, 0};
  graph.names.add("work");
  graph.names.add("exchange");
  graph.families = {world_family(2)};
  graph.collectives = {{CollectiveKind::all_reduce, Bytes(100), 0, 0, 0}};
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  const std::uint32_t work = program.add(NodeKind::delay, Phase::other, 1, -1, 5, {});
  program.add(NodeKind::collective, Phase::gradient_exchange, 2, -1, 0, std::span(&work, 1));
  return graph;
}

std::string error_of(const Graph& graph) {
  try {
    validate_graph(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, ProgramsStoreDependencesAsCsr) {
  const Graph graph = small_graph();
  EXPECT_EQ(error_of(graph), "");
  EXPECT_TRUE(graph.programs[0].dependences(0).empty());
  ASSERT_EQ(graph.programs[0].dependences(1).size(), 1U);
  EXPECT_EQ(graph.programs[0].dependences(1)[0], 0U);
}

TEST(Graph, ValidationNamesWhatIsWrong) {
  Graph forward = small_graph();
  forward.programs[0].dependence[0] = 1;
  EXPECT_EQ(error_of(forward), "rank: its nodes wait for each other in a circle: 1 'exchange' waits for 1");
  Graph homeless = small_graph();
  homeless.program_of.pop_back();
  EXPECT_EQ(error_of(homeless), "graph: not every rank has a program");
  Graph twice = small_graph();
  twice.families[0].groups[0] = {0, 0};
  EXPECT_EQ(error_of(twice), "world: rank 0 is in two groups, or twice in one");
  Graph absent = small_graph();
  absent.families[0].groups[0] = {0, 7};
  EXPECT_EQ(error_of(absent), "world: rank 7 does not exist");
  Graph dangling = small_graph();
  dangling.programs[0].payload[1] = 3;
  EXPECT_EQ(error_of(dangling), "rank, node 1: refers to an unknown collective");
  Graph endless = small_graph();
  endless.programs[0].payload[0] = UINT64_MAX;
  EXPECT_EQ(error_of(endless), "rank, node 0: takes absurdly long");
}

TEST(Graph, MembersMustIssueTheSameCollectives) {
  Graph graph = small_graph();
  Program silent;
  silent.role = "silent";
  silent.add(NodeKind::delay, Phase::other, 0, -1, 5, {});
  graph.programs.push_back(silent);
  graph.program_of[1] = 1;
  EXPECT_EQ(error_of(graph), "group family 'world': ranks 0 and 1 issue different collectives");
}

TEST(Graph, DumpIsStable) {
  EXPECT_EQ(dump_graph(small_graph()),
            "graph of 2 ranks, 1 programs\n"
            "program rank\n"
            "  0 other 'work' 5 ps\n"
            "  1 gradient exchange 'exchange' all-reduce 100 bytes in world after 0\n");
}

}  // namespace
}  // namespace armilla
