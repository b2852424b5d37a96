#include "sim/memo/message_ways.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/native_run.h"
#include "sim/memo/lone_groups.h"

namespace armilla {
namespace {

// Four devices, two of them at each of two leaves, in groups of two: {0, 1} and {2, 3} by one leaf, {0, 3}
// over both, where that of device 3 is slower.
struct TwoLeaves {
  Graph graph;
  Study study;
  SimulationOptions options;
  LoneGroups lone;  // of the last run

  TwoLeaves() {
    Machine& machine = study.machine;
    const LinkFigures figures = {gigabytes_per_second(1), nanoseconds(100)};
    const LinkFigures slow = {gigabytes_per_second(0.5), nanoseconds(100)};
    machine.dimensions = {{"leaf", DimensionKind::switched, 4, gigabytes_per_second(1), nanoseconds(100)}};
    for (std::uint32_t node = 0; node < 6; ++node) {
      machine.graph.nodes.push_back(
          {node < 4 ? NetworkNodeKind::device : NetworkNodeKind::switched, std::to_string(node)});
    }
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const LinkFigures& own = rank == 3 ? slow : figures;
      machine.graph.cables.push_back({rank, 4 + rank / 2, own, own, 0});
    }
    machine.graph.cables.push_back({4, 5, figures, figures, 0});
    graph.ranks = 4;
    graph.names.add("node");
    graph.program_of.assign(4, 0);
    for (const auto& groups : {std::vector<std::vector<std::int32_t>>{{0, 1}, {2, 3}}, {{0, 3}, {1, 2}}}) {
      GroupFamily& family = graph.families.emplace_back();
      family.groups = groups;
      family.group_of.resize(4);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        for (const std::int32_t rank : groups[g])
          family.group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(g);
      }
    }
    graph.collectives = {{CollectiveKind::all_reduce, Bytes(4000), 0},
                         {CollectiveKind::all_reduce, Bytes(4000), 1}};
    graph.programs.emplace_back().add(NodeKind::collective, Phase::other, 1, -1, 0, {});
  }

  // Calls `look(ways, groups)` with the ways of a run over `network`.
  template <class Look>
  void on(const std::string& network, const Look& look) {
    study.network = parse_component(network, "test");
    CollectivePlanner planner(study.machine, study.collectives, promises_of(study.network));
    const std::vector<Issued> issued = issued_by(graph);
    const RankClasses classes = unfolded(graph);
    const Peers peers(graph);
    const NativePlay play{graph, issued, study, peers, {}, classes, planner, options, 0};
    GroupTable groups(graph, classes, planner);
    lone = find_lone_groups({graph, issued, study, peers}, classes, planner);
    look(*message_ways(play), groups);
  }

  static MessageWays::Links links_of(MessageWays& ways, std::int32_t source, std::int32_t destination) {
    MessageWays::Links links;
    ways.add({.source = source, .destination = destination, .bytes = Bytes(1)}, links);
    std::ranges::sort(links);
    return links;
  }
};

TEST(MessageWays, OverDimensionsEveryRankHasTheSameLinks) {
  TwoLeaves job;
  job.on("analytical", [&](MessageWays& ways, GroupTable& groups) {
    EXPECT_EQ(ways.links(), 8U);
    const auto links = TwoLeaves::links_of(ways, 0, 3);
    ASSERT_EQ(links.size(), 2U);  // up and down
    EXPECT_LT(links.back(), ways.links());
    EXPECT_EQ(TwoLeaves::links_of(ways, 0, 1).front(), links.front());
    EXPECT_NE(TwoLeaves::links_of(ways, 3, 0), links);
    EXPECT_TRUE(ways.description(job.graph.collectives[0], groups.of(0, 0)).empty());
  });
}

TEST(MessageWays, OverAGraphTellApartWhatFaresDifferently) {
  TwoLeaves job;
  job.on("flow", [&](MessageWays& ways, GroupTable& groups) {
    EXPECT_EQ(ways.links(), 10U);
    EXPECT_EQ(TwoLeaves::links_of(ways, 0, 1).size(), 2U);
    EXPECT_EQ(TwoLeaves::links_of(ways, 0, 3).size(), 3U);
    const auto& [same_leaf, both_leaves] = std::pair(job.graph.collectives[0], job.graph.collectives[1]);
    const auto fast = ways.description(same_leaf, groups.of(0, 0));
    EXPECT_FALSE(fast.empty());
    EXPECT_NE(ways.description(same_leaf, groups.of(0, 1)), fast);  // device 3's cable is slower
    EXPECT_NE(ways.description(both_leaves, groups.of(1, 1)), fast);
    EXPECT_EQ(ways.description(same_leaf, groups.of(0, 0)), fast);
    EXPECT_TRUE(ways.tells_who_meets());
    EXPECT_TRUE(job.lone.any_sometimes());
  });
}

// Nothing is looked up where every message is played: nobody has to know who is alone.
TEST(MessageWays, TellNobodyWhoMeetsWhereEveryMessageIsPlayed) {
  TwoLeaves job;
  job.options.every_message = true;
  for (const std::string network : {"analytical", "flow"}) {
    job.on(network, [&](MessageWays& ways, GroupTable&) { EXPECT_FALSE(ways.tells_who_meets()) << network; });
  }
}

}  // namespace
}  // namespace armilla
