#include "sim/fold/link_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "network/network.h"
#include "sim/fold/rank_colours.h"
#include "sim/plan/rank_classes.h"

namespace armilla {
namespace {

// Nodes of four devices behind a switch, and rails: device g of every node under leaf g; two spines. All
// devices reduce together; the first program's also in their node.
struct RailJob {
  Graph graph;
  Study study;

  explicit RailJob(const std::string& network = "flow") {
    constexpr std::uint32_t kNodes = 4, kDevices = 4, kRanks = 16;
    Machine& machine = study.machine;
    const LinkFigures figures = {gigabytes_per_second(1), nanoseconds(100)};
    machine.dimensions = {
        {"node", DimensionKind::switched, kDevices, gigabytes_per_second(1), nanoseconds(100)},
        {"rail", DimensionKind::switched, kNodes, gigabytes_per_second(1), nanoseconds(100)}};
    Interconnect& links = machine.graph;
    const auto add = [&](std::uint32_t count, NetworkNodeKind kind) {
      for (std::uint32_t i = 0; i < count; ++i)
        links.nodes.push_back({kind, std::to_string(links.nodes.size())});
    };
    add(kRanks, NetworkNodeKind::device);
    add(kNodes + kDevices + 2, NetworkNodeKind::switched);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      links.cables.push_back({rank, kRanks + rank / kDevices, figures, figures, 0});
      links.cables.push_back({rank, kRanks + kNodes + rank % kDevices, figures, figures, 1});
    }
    for (std::uint32_t leaf = 0; leaf < kDevices; ++leaf) {
      for (std::uint32_t spine = 0; spine < 2; ++spine)
        links.cables.push_back(
            {kRanks + kNodes + leaf, kRanks + kNodes + kDevices + spine, figures, figures, 1});
    }
    study.network = parse_component(network, "test");
    graph.ranks = kRanks;
    graph.names.add("node");
    graph.program_of.assign(kRanks, 0);
    graph.families = {world_family(kRanks), grid_family(std::vector<std::int64_t>{4, 4}, 1)};
    graph.collectives = {{CollectiveKind::all_reduce, Bytes(64000), 0},
                         {CollectiveKind::all_reduce, Bytes(3000), 1}};
    graph.programs.resize(2);
    for (Program& program : graph.programs) program.add(NodeKind::collective, Phase::other, 1, -1, 0, {});
    graph.programs[1].add(NodeKind::collective, Phase::other, 1, -1, 1, {});
  }

  RankClasses fold() const {
    CollectivePlanner planner(study.machine, study.collectives, {});
    return fold_ranks({graph, issued_by(graph), study, Peers(graph)}, planner);
  }

  // As fold_ranks checks them.
  bool is_equitable_by(const std::vector<std::uint32_t>& colours) const {
    CollectivePlanner planner(study.machine, study.collectives, {});
    const std::vector<Issued> issued = issued_by(graph);
    const Peers peers(graph);
    const auto links = message_links(study.network, study.machine, study.what_if);
    const StudyJob input{graph, issued, study, peers};
    const RankMessages messages = find_messages_on(*links, input, planner);
    return is_equitable(input, messages, *links, colours);
  }
};

// One for all ranks, and one for all links of a kind: by what they do.
std::vector<std::uint32_t> colours_of(const RankClasses& classes) {
  std::map<std::uint32_t, std::uint32_t> known;
  std::vector<std::uint32_t> colours;
  for (const std::int32_t rank : classes.simulated_of) colours.push_back(static_cast<std::uint32_t>(rank));
  const auto ranks = static_cast<std::uint32_t>(classes.simulated());
  for (const std::uint32_t link : classes.links.stands_for)
    colours.push_back(ranks + known.try_emplace(link, known.size()).first->second);
  return colours;
}

TEST(LinkClasses, RailsAreAlike) {
  const RankClasses classes = RailJob().fold();
  EXPECT_EQ(classes.simulated(), 1);
  EXPECT_TRUE(classes.why_whole.empty());
  // Those of nodes' switches, of leaves, and of the spines, which nobody uses: up and down alike, for a
  // device hears as much from its class as it sends.
  EXPECT_EQ(std::ranges::count_if(classes.links.sizes, [](std::int64_t size) { return size > 0; }), 3);
  EXPECT_EQ(classes.links.sizes[0], 32);
}

TEST(LinkClasses, ADeratedCableSplits) {
  RailJob job;
  job.study.machine.graph.cables[1].there.bandwidth = gigabytes_per_second(0.5);
  const RankClasses classes = job.fold();
  EXPECT_GT(classes.simulated(), 1);
  EXPECT_EQ(classes.sizes.front(), 1);                                                // its device
  job.study.machine.graph.cables.back().there.bandwidth = gigabytes_per_second(0.5);  // nobody uses it
  EXPECT_EQ(job.fold().simulated(), classes.simulated());
}

TEST(LinkClasses, OtherProgramsSplit) {
  RailJob job;
  for (std::size_t rank = 4; rank < 8; ++rank) job.graph.program_of[rank] = 1;
  const RankClasses classes = job.fold();
  EXPECT_GT(classes.simulated(), 1);
  EXPECT_LT(classes.simulated(), 16);
}

TEST(LinkClasses, SaysWhatForbidsThem) {
  for (const char* routing : {"adaptive", "ugal", "progressive"}) {
    const RankClasses adaptive = RailJob(std::string("flow:routing=") + routing).fold();
    EXPECT_EQ(adaptive.simulated(), 16) << routing;
    EXPECT_FALSE(adaptive.why_whole.empty()) << routing;
  }
  // Over the spines: as many flows as hashes have it.
  const auto on_leaves = [](const std::string& network) {
    RailJob job(network);
    std::erase_if(job.study.machine.graph.cables, [](const Cable& cable) { return cable.dimension == 0; });
    return job.fold();
  };
  EXPECT_EQ(on_leaves("flow:routing=spray").simulated(), 1);
  const RankClasses hashed = on_leaves("flow:routing=ecmp");
  EXPECT_GT(hashed.simulated(), 8);
  EXPECT_FALSE(hashed.why_whole.empty());
  const RankClasses detours = on_leaves("flow:routing=valiant");
  EXPECT_GT(detours.simulated(), 8);
  EXPECT_FALSE(detours.why_whole.empty());
  EXPECT_EQ(on_leaves("flow:routing=up-down").simulated(), 1);  // over the root alone
  // Two cables from each leaf to each spine.
  RailJob doubled("flow:routing=up-down");
  std::vector<Cable>& cables = doubled.study.machine.graph.cables;
  std::erase_if(cables, [](const Cable& cable) { return cable.dimension == 0; });
  for (std::size_t i = 0, count = cables.size(); i < count; ++i) {
    if (cables[i].a >= 16) cables.push_back(Cable(cables[i]));
  }
  const RankClasses up_down = doubled.fold();
  EXPECT_GT(up_down.simulated(), 8);
  EXPECT_FALSE(up_down.why_whole.empty());
  EXPECT_TRUE(RailJob("packet").fold().why_whole.empty());  // its page says so
}

// Hashes that met by chance would show: what is not alike is not taken for it.
TEST(LinkClasses, AreChecked) {
  RailJob job;
  const std::vector<std::uint32_t> right = colours_of(job.fold());
  EXPECT_TRUE(job.is_equitable_by(right));
  std::vector<std::uint32_t> single(right.size());
  for (std::uint32_t i = 0; i < single.size(); ++i) single[i] = i;
  EXPECT_TRUE(job.is_equitable_by(single));
  // Links of one kind that carry something, and that do not.
  std::vector<std::uint32_t> wrong = right;
  std::ranges::replace(wrong, right.back(), right[16 + 2]);
  EXPECT_FALSE(job.is_equitable_by(wrong));
  // Links of two kinds.
  wrong = right;
  std::ranges::replace(wrong, right[16], right[16 + 2]);
  EXPECT_FALSE(job.is_equitable_by(wrong));
  // Ranks of two programs, that do otherwise the same.
  job.graph.programs[1] = job.graph.programs[0];
  for (std::size_t rank = 4; rank < 8; ++rank) job.graph.program_of[rank] = 1;
  EXPECT_FALSE(job.is_equitable_by(right));
  // Ranks that are slow.
  RailJob slow;
  slow.study.what_if.ranks = {{{0, 3}, 2.0}};
  EXPECT_FALSE(slow.is_equitable_by(right));
  // Those that hear from them.
  wrong = right;
  for (std::size_t rank = 0; rank < 4; ++rank) wrong[rank] = *std::ranges::max_element(right) + 1;
  EXPECT_FALSE(slow.is_equitable_by(wrong));
  EXPECT_LT(slow.fold().simulated(), 16);
  EXPECT_TRUE(slow.is_equitable_by(colours_of(slow.fold())));
}

}  // namespace
}  // namespace armilla
