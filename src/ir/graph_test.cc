#include "ir/graph.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/graph_testing.h"

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

std::string graph_error(const Graph& graph) {
  try {
    validate_graph(graph);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Graph, ProgramsStoreDependencesAsCsr) {
  const Graph graph = small_graph();
  EXPECT_EQ(graph_error(graph), "");
  EXPECT_TRUE(graph.programs[0].dependences(0).empty());
  ASSERT_EQ(graph.programs[0].dependences(1).size(), 1U);
  EXPECT_EQ(graph.programs[0].dependences(1)[0], 0U);
}

TEST(Graph, ValidationNamesWhatIsWrong) {
  Graph forward = small_graph();
  forward.programs[0].dependence[0] = 1;
  EXPECT_EQ(graph_error(forward),
            "rank: its nodes wait for each other in a circle: 1 'exchange' waits for 1");
  Graph homeless = small_graph();
  homeless.program_of.pop_back();
  EXPECT_EQ(graph_error(homeless), "graph: not every rank has a program");
  Graph twice = small_graph();
  twice.families[0].groups[0] = {0, 0};
  EXPECT_EQ(graph_error(twice), "world: rank 0 is in two groups, or twice in one");
  Graph absent = small_graph();
  absent.families[0].groups[0] = {0, 7};
  EXPECT_EQ(graph_error(absent), "world: rank 7 does not exist");
  Graph dangling = small_graph();
  dangling.programs[0].payload[1] = 3;
  EXPECT_EQ(graph_error(dangling), "rank, node 1: refers to an unknown collective");
  Graph endless = small_graph();
  endless.programs[0].payload[0] = UINT64_MAX;
  EXPECT_EQ(graph_error(endless), "rank, node 0: takes absurdly long");
}

TEST(Graph, MembersMustIssueTheSameCollectives) {
  Graph graph = small_graph();
  Program silent;
  silent.role = "silent";
  silent.add(NodeKind::delay, Phase::other, 0, -1, 5, {});
  graph.programs.push_back(silent);
  graph.program_of[1] = 1;
  EXPECT_EQ(graph_error(graph), "group family 'world': ranks 0 and 1 issue different collectives");
}

TEST(Graph, DumpIsStable) {
  EXPECT_EQ(dump_graph(small_graph()),
            "graph of 2 ranks, 1 programs\n"
            "program rank\n"
            "  0 other 'work' 5 ps\n"
            "  1 gradient exchange 'exchange' all-reduce 100 bytes in world after 0\n");
}

TEST(Graph, RootsMustBeMembers) {
  Graph graph = small_graph();
  graph.collectives[0].kind = CollectiveKind::broadcast;
  graph.collectives[0].root = 2;
  EXPECT_EQ(graph_error(graph),
            "group family 'world': a broadcast among 2 ranks has no member 2 to be its root");
}

TEST(Graph, WhoIsInNoGroupIssuesNoCollective) {
  Graph graph = small_graph();
  graph.families[0].groups[0] = {0};
  graph.families[0].group_of[1] = -1;
  EXPECT_EQ(graph_error(graph),
            "group family 'world': rank 1 issues a collective and is in none of its groups");
}

// Six ranks in two pipelines of three; the same program for all.
Graph pipelines(const PointToPoint& transfer) {
  Graph graph;
  graph.ranks = 6;
  graph.program_of.assign(6, 0);
  graph.names.add("message");
  graph.families = {grid_family({2, 3}, 2)};
  graph.transfers = {transfer};
  Program& program = graph.programs.emplace_back();
  program.role = "rank";
  program.add(NodeKind::send, Phase::other, 1, -1, 0, {});
  return graph;
}

TEST(Graph, PeersAreFoundFromWhereARankStands) {
  const auto peers_with = [](PeerKind kind, std::int32_t peer) {
    const Graph graph = pipelines({peer, 0, Bytes(1), kind, 0});
    const Peers peers(graph);
    std::vector<std::int32_t> found;
    for (std::int32_t rank = 0; rank < 6; ++rank) found.push_back(peers.of(rank, graph.transfers[0]));
    return found;
  };
  EXPECT_EQ(peers_with(PeerKind::rank, 4), (std::vector<std::int32_t>(6, 4)));
  EXPECT_EQ(peers_with(PeerKind::position, 2), (std::vector<std::int32_t>{4, 5, 4, 5, 4, 5}));
  EXPECT_EQ(peers_with(PeerKind::shift, 1), (std::vector<std::int32_t>{2, 3, 4, 5, 0, 1}));
  EXPECT_EQ(peers_with(PeerKind::shift, -1), (std::vector<std::int32_t>{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(peers_with(PeerKind::shift, -4), (std::vector<std::int32_t>{4, 5, 0, 1, 2, 3}));
}

TEST(Graph, PeersThatAreNoneAreRefused) {
  EXPECT_EQ(graph_error(pipelines({1, 0, Bytes(1), PeerKind::shift, 0})), "");
  EXPECT_EQ(graph_error(pipelines({3, 0, Bytes(1), PeerKind::shift, 0})),
            "rank 0: sends a message to itself");
  EXPECT_EQ(graph_error(pipelines({3, 0, Bytes(1), PeerKind::position, 0})),
            "rank 0: has no peer at position 3 of its 3 ranks in 'dimensions 1'");
  EXPECT_EQ(graph_error(pipelines({6, 0, Bytes(1), PeerKind::rank, 0})),
            "rank 0: has the peer 6, which does not exist");
  EXPECT_EQ(graph_error(pipelines({1, 0, Bytes(1), PeerKind::shift, 4})),
            "graph: group family 4 does not exist");
  Graph outside = pipelines({1, 0, Bytes(1), PeerKind::shift, 0});
  outside.families[0].groups = {{0, 2, 4}};
  outside.families[0].group_of = {0, -1, 0, -1, 0, -1};
  EXPECT_EQ(graph_error(outside), "rank 1: sends or receives in 'dimensions 1' and is in none of its groups");
}

TEST(Graph, DumpNamesRelativePeers) {
  EXPECT_EQ(dump_graph(pipelines({-1, 7, Bytes(9), PeerKind::shift, 0})),
            "graph of 6 ranks, 1 programs\nprogram rank\n"
            "  0 other 'message' send 9 bytes to -1 in dimensions 1, tag 7\n");
}

}  // namespace
}  // namespace armilla
