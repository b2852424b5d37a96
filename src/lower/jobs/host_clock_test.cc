#include "lower/host_clock.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

Graph two_kernels_and_a_collective() {
  Graph graph;
  graph.ranks = 1;
  graph.program_of = {0};
  graph.works.resize(1);
  graph.collectives.resize(1);
  Program& program = graph.programs.emplace_back();
  const std::uint32_t name = graph.names.add("kernel");
  const std::uint32_t first = program.add(NodeKind::compute, Phase::forward, name, -1, 0, {});
  const std::uint32_t pause = program.add(NodeKind::receive, Phase::other, name, -1, 0, {});
  program.add(NodeKind::collective, Phase::other, name, -1, 0, std::vector<std::uint32_t>{first});
  program.add(NodeKind::compute, Phase::forward, name, -1, 0, std::vector<std::uint32_t>{first, pause});
  return graph;
}

TEST(HostClock, EveryKernelAndCollectiveWaitsForItsIssue) {
  Graph graph = two_kernels_and_a_collective();
  Plan plan;
  plan.host = Host::eager;
  std::vector<RoleMemory> roles(1);
  roles[0].over_time = {{0, false, {}, {}}, {3, true, {}, {}}};
  add_host_clock(plan, graph, roles);
  const Program& program = graph.programs[0];
  // issue, compute, receive, issue, collective, issue, compute.
  ASSERT_EQ(program.size(), 7u);
  for (const std::uint32_t host : {0u, 3u, 5u}) {
    EXPECT_EQ(program.kind[host], NodeKind::delay);
    EXPECT_EQ(program.lane[host], Lane::host);
    EXPECT_EQ(program.payload[host], static_cast<std::uint64_t>(plan.issue_time.value));
  }
  EXPECT_EQ(program.kind[1], NodeKind::compute);
  EXPECT_EQ(program.kind[2], NodeKind::receive);
  const auto last = program.dependences(6);
  EXPECT_EQ(std::vector<std::uint32_t>(last.begin(), last.end()), (std::vector<std::uint32_t>{1, 2, 5}));
  EXPECT_EQ(roles[0].over_time[0].node, 1u);
  EXPECT_EQ(roles[0].over_time[1].node, 6u);
}

TEST(HostClock, AHostThatIsAheadChangesNothing) {
  Graph graph = two_kernels_and_a_collective();
  std::vector<RoleMemory> roles;
  add_host_clock(Plan(), graph, roles);
  EXPECT_EQ(graph.programs[0].size(), 4u);
}

}  // namespace
}  // namespace armilla
