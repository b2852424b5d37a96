// Hosts that issue nodes, against hosts that are written out as lanes of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "sim/run/simulate_testing.h"

namespace armilla {
namespace {

// A host that issues nodes is a lane of its own in front of them. It begins with a call whose size the device
// counts, and with the first node behind a message that it awaits, once all that the node waits for is done.
Graph with_host_nodes(const Graph& graph, Time issue) {
  Graph explicit_graph = graph;
  for (Program& program : explicit_graph.programs) {
    const Program original = std::exchange(program, {});
    std::vector<std::uint32_t> place, issued;
    std::set<std::uint32_t> awaited;
    std::int64_t behind = 0;
    // Marks the receives that it finds.
    const auto stops_at = [&](std::uint32_t node) {
      bool stops = original.kind[node] == NodeKind::collective &&
                   graph.collectives[original.payload[node]].counted_on_device;
      for (const std::uint32_t before : original.dependences(node)) {
        if (original.kind[before] == NodeKind::receive &&
            graph.transfers[original.payload[before]].stops_host)
          stops = awaited.insert(before).second || stops;
      }
      return stops;
    };
    for (std::uint32_t node = 0; node < original.size(); ++node) {
      std::vector<std::uint32_t> dependences;
      for (const std::uint32_t before : original.dependences(node)) dependences.push_back(place[before]);
      const bool is_issued =
          original.lane[node] == Lane::device || original.lane[node] == Lane::communication;
      // Nothing waits for what the host does behind the last one.
      if (is_issued && behind > 0) {
        issued.assign(1, program.add(NodeKind::delay, Phase::other, 1, -1,
                                     static_cast<std::uint64_t>((behind * issue).value), issued));
        program.lane.back() = Lane::host;
      }
      if (is_issued) behind = 0;
      if (original.has_parts(node)) {
        if (!issued.empty()) dependences.push_back(issued.front());
      } else if (is_issued) {
        std::vector<std::uint32_t> before = issued;
        if (stops_at(node)) before.insert(before.end(), dependences.begin(), dependences.end());
        const Time taken = host_issues_to_begin(graph, original, node) * issue;
        issued.assign(1, program.add(NodeKind::delay, Phase::other, 1, -1,
                                     static_cast<std::uint64_t>(taken.value), before));
        program.lane.back() = Lane::host;
        dependences.push_back(issued.front());
      }
      place.push_back(
          program.add(original.kind[node], Phase::other, 1, -1, original.payload[node], dependences));
      program.lane.back() = original.lane[node];
      if (is_issued && !original.has_parts(node))
        behind = host_issues(graph, original, node) - host_issues_to_begin(graph, original, node);
    }
  }
  return explicit_graph;
}

// Some along with the one before, some for longer than others.
TEST(Host, AnIssueTimeIsAHostThatIssuesNodesInOrder) {
  std::mt19937 random(11);
  const Study study = study_of({dimension(DimensionKind::ring, 4)});
  for (int round = 0; round < 50; ++round) {
    Graph graph = graph_with(4, {{CollectiveKind::all_reduce, Bytes(4000), 0}}, microseconds(1));
    Program& program = graph.programs.front();
    for (int i = 0; i < 12; ++i) {
      std::vector<std::uint32_t> before;
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        if (random() % 4 == 0) before.push_back(node);
      }
      const std::uint64_t duration = random() % 2'000'000;
      const bool is_work = random() % 2 == 0;
      if (is_work) {
        Work& work = graph.works.emplace_back();
        work.measured = Time(static_cast<std::int64_t>(duration));
        work.issues = static_cast<std::int32_t>(1 + random() % 4);
        work.issues_behind = static_cast<std::int32_t>(random() % 3);
      }
      const std::uint32_t node = program.add(is_work ? NodeKind::compute : NodeKind::delay, Phase::other, 1,
                                             -1, is_work ? graph.works.size() - 1 : duration, before);
      if (random() % 6 == 0) {
        program.lane.back() = Lane::none;
      } else if (random() % 3 == 0) {
        graph.parts.resize(1);
        program.set_parts(node, 0);
      }
    }
    const Time issue = nanoseconds(static_cast<std::int64_t>(random() % 1500));
    program.issue_time = issue;
    const Result issued = simulate(graph, study, NoCost(), {});
    const Result played = simulate(with_host_nodes(graph, issue), study, NoCost(), {});
    EXPECT_EQ(issued.iteration, played.iteration);
    ASSERT_EQ(issued.classes.size(), 1U);
    EXPECT_EQ(issued.classes[0].compute, played.classes[0].compute);
  }
}

// Calls of known size and of one that the device counts, some of which take the host longer, computations,
// and nodes that are not issued.
TEST(Host, AHostWaitsForWhatTheDeviceCounts) {
  std::mt19937 random(12);
  const Study study = study_of({dimension(DimensionKind::ring, 4)});
  int later = 0, earlier = 0;
  for (int round = 0; round < 100; ++round) {
    Graph graph = graph_with(4, {{CollectiveKind::all_reduce, Bytes(4000), 0}}, microseconds(1));
    graph.collectives.push_back(graph.collectives.front());
    for (CollectiveCall& call : graph.collectives) call.issues += static_cast<std::int32_t>(random() % 3);
    Program& program = graph.programs.front();
    for (int i = 0; i < 16; ++i) {
      std::vector<std::uint32_t> before;
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        if (random() % 4 == 0) before.push_back(node);
      }
      if (random() % 3 == 0) {
        // Collectives of one communicator follow each other.
        for (std::uint32_t node = 0; node < program.size(); ++node) {
          if (program.kind[node] == NodeKind::collective && std::ranges::find(before, node) == before.end())
            before.push_back(node);
        }
        program.add(NodeKind::collective, Phase::other, 1, -1, random() % 2, before);
        continue;
      }
      program.add(NodeKind::delay, Phase::other, 1, -1, random() % 2'000'000, before);
      if (random() % 6 == 0) program.lane.back() = Lane::none;
    }
    program.issue_time = nanoseconds(static_cast<std::int64_t>(1 + random() % 1500));
    const Time known = simulate(graph, study, NoCost(), {}).iteration;
    EXPECT_EQ(known, simulate(with_host_nodes(graph, program.issue_time), study, NoCost(), {}).iteration);
    graph.collectives.back().counted_on_device = true;
    const Result counted = simulate(graph, study, NoCost(), {});
    const Result played = simulate(with_host_nodes(graph, program.issue_time), study, NoCost(), {});
    EXPECT_EQ(counted.iteration, played.iteration);
    EXPECT_EQ(counted.classes[0].compute, played.classes[0].compute);
    // Seldom earlier: what is issued later lets something go first that more waits for (Graham 1969).
    later += counted.iteration > known ? 1 : 0;
    earlier += counted.iteration < known ? 1 : 0;
  }
  EXPECT_GT(later, 20);
  EXPECT_LT(earlier, 5);
}

// Every rank of a ring sends to the next one, and stops at what depends on what it receives.
TEST(Host, WaitsForMessages) {
  std::mt19937 random(13);
  const Study study = study_of({dimension(DimensionKind::ring, 4)});
  int later = 0;
  for (int round = 0; round < 100; ++round) {
    Graph graph = graph_with(4, {}, microseconds(1));
    Program& program = graph.programs.front();
    const auto some_before = [&] {
      std::vector<std::uint32_t> before;
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        if (random() % 4 == 0) before.push_back(node);
      }
      return before;
    };
    for (int i = 0; i < 16; ++i) {
      if (random() % 4 == 0) {
        const auto tag = static_cast<std::uint32_t>(graph.transfers.size());
        for (const std::int32_t shift : {1, 3})
          graph.transfers.push_back({shift, tag, Bytes(4000), PeerKind::shift, 0});
        program.add(NodeKind::send, Phase::other, 1, -1, tag, some_before());
        program.add(NodeKind::receive, Phase::other, 1, -1, tag + 1, {});
      } else {
        program.add(NodeKind::delay, Phase::other, 1, -1, random() % 2'000'000, some_before());
        if (random() % 6 == 0) program.lane.back() = Lane::none;
      }
    }
    program.issue_time = nanoseconds(static_cast<std::int64_t>(1 + random() % 1500));
    const Time ahead = simulate(graph, study, NoCost(), {}).iteration;
    for (PointToPoint& transfer : graph.transfers) transfer.stops_host = true;
    const Result stopped = simulate(graph, study, NoCost(), {});
    const Result played = simulate(with_host_nodes(graph, program.issue_time), study, NoCost(), {});
    EXPECT_EQ(stopped.iteration, played.iteration);
    EXPECT_EQ(stopped.classes[0].compute, played.classes[0].compute);
    later += stopped.iteration > ahead ? 1 : 0;
  }
  EXPECT_GT(later, 20);
}

// A node for all of them takes as long as one for each: whoever is slower, what follows waits for.
TEST(Host, TheDeviceBeginsWithTheFirstOfSeveralCalls) {
  const auto time_of = [](std::int32_t calls, Time each, bool as_one, Time issue) {
    Graph graph = graph_with(1, {}, microseconds(2));
    Program& program = graph.programs.front();
    program.issue_time = issue;
    for (int i = 0; i < (as_one ? 1 : calls); ++i) {
      Work& work = graph.works.emplace_back();
      work.measured = as_one ? each * calls : each;
      if (as_one) work.issues_behind = calls - 1;
      program.add(NodeKind::compute, Phase::other, 1, -1, graph.works.size() - 1, {});
    }
    const std::uint32_t last = program.size() - 1;
    program.add(NodeKind::delay, Phase::other, 1, -1, 500'000, std::span(&last, 1));
    return simulate(graph, study_of({}), NoCost(), {}).iteration;
  };
  // Behind the graph's own node issued at 6; the fourth at 15, what follows at 18; or computed until 26.
  EXPECT_EQ(time_of(4, microseconds(1), true, microseconds(3)), nanoseconds(18'500));
  EXPECT_EQ(time_of(4, microseconds(5), true, microseconds(3)), nanoseconds(26'500));
  for (std::int64_t each = 1; each < 6; ++each) {
    for (const std::int32_t calls : {1, 2, 7})
      EXPECT_EQ(time_of(calls, microseconds(each), true, microseconds(3)),
                time_of(calls, microseconds(each), false, microseconds(3)));
  }
}

TEST(Host, WaitingForTheHostIsNeitherComputingNorCommunicating) {
  Graph graph = graph_with(1, {}, microseconds(2));
  Program& program = graph.programs.front();
  program.add(NodeKind::delay, Phase::other, 1, -1, 5'000'000, {});
  program.add(NodeKind::delay, Phase::other, 1, -1, 1'000'000, {});
  program.issue_time = microseconds(3);
  // 3-5, 6-11, and 11-12: issued at 9.
  const Result result = simulate(graph, study_of({}), NoCost(), {});
  EXPECT_EQ(result.iteration, microseconds(12));
  EXPECT_EQ(result.classes[0].compute, microseconds(8));
  EXPECT_EQ(result.classes[0].host_waits, microseconds(4));
}

}  // namespace
}  // namespace armilla
