// Routings: which ways there are, and what networks make of several.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <ranges>
#include <set>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "network/flow_networks.h"
#include "network/network_testing.h"
#include "network/packet.h"
#include "network/routing/switch_trees.h"
#include "network/routing/ways.h"
#include "network/routings.h"

namespace armilla {
namespace {

const LinkFigures kOne = {gigabytes_per_second(1), nanoseconds(100), 0};

Machine routed_machine(std::int64_t devices, std::int64_t switches) {
  Machine machine;
  machine.dimensions = {
      {"fabric", DimensionKind::switched, devices, gigabytes_per_second(1), nanoseconds(100)}};
  for (std::int64_t i = 0; i < devices; ++i)
    machine.graph.nodes.push_back({NetworkNodeKind::device, "d" + std::to_string(i)});
  for (std::int64_t i = 0; i < switches; ++i)
    machine.graph.nodes.push_back({NetworkNodeKind::switched, "s" + std::to_string(i)});
  return machine;
}

void join(Machine& machine, std::uint32_t a, std::uint32_t b, std::uint32_t dimension = 0) {
  machine.graph.cables.push_back({a, b, kOne, kOne, dimension});
}

// Four devices on each of `leaves` switches, below `spines`.
Machine leaf_spine_graph(std::uint32_t leaves, std::uint32_t spines) {
  Machine machine = routed_machine(4 * leaves, leaves + spines);
  for (std::uint32_t device = 0; device < 4 * leaves; ++device)
    join(machine, device, 4 * leaves + device / 4);
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < spines; ++spine)
      join(machine, 4 * leaves + leaf, 5 * leaves + spine);
  }
  return machine;
}

// Switches in a circle with a device each, and a few links across it.
Machine random_circle(std::mt19937& random) {
  const auto below = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most); };
  const std::uint32_t size = 4 + below(12);
  Machine machine = routed_machine(size, size);
  for (std::uint32_t i = 0; i < size; ++i) {
    join(machine, i, size + i);
    join(machine, size + i, size + (i + 1) % size);
  }
  for (std::uint32_t i = 0; i < size / 4; ++i) {
    const std::uint32_t a = below(size), b = below(size);
    if (a != b) join(machine, size + a, size + b);
  }
  return machine;
}

Message message_between(std::uint32_t source, std::uint32_t destination) {
  return {static_cast<std::int32_t>(source), static_cast<std::int32_t>(destination), Bytes(1)};
}

// From end to end, link after link, no node twice, over nothing that does not forward.
void expect_way(const Ways& ways, const Ways::Way& way, std::uint32_t source, std::uint32_t destination) {
  std::set<std::uint32_t> seen = {source};
  std::uint32_t node = source;
  for (const std::uint32_t link : way) {
    EXPECT_EQ(ways.links()[link].from, node);
    EXPECT_TRUE(node == source || ways.graph().devices_forward || !ways.is_device(node));
    node = ways.links()[link].to;
    EXPECT_TRUE(seen.insert(node).second) << "twice over " << ways.graph().nodes[node].name;
  }
  EXPECT_EQ(node, destination);
}

// Whether packets that hold a buffer and wait for the next one can wait in a circle.
bool may_deadlock(const std::set<std::pair<std::uint32_t, std::uint32_t>>& waits) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> next;
  std::map<std::uint32_t, int> before;
  for (const auto& [from, to] : waits) {
    next[from].push_back(to);
    before[from];
    ++before[to];
  }
  std::vector<std::uint32_t> free;
  for (const auto& [link, count] : before) {
    if (count == 0) free.push_back(link);
  }
  std::size_t taken = 0;
  for (; taken < free.size(); ++taken) {
    for (const std::uint32_t link : next[free[taken]]) {
      if (--before[link] == 0) free.push_back(link);
    }
  }
  return taken < before.size();
}

TEST(Routings, AreThoseOfTheParameter) {
  std::string names;
  for (const Ways::Routing& routing : Ways::kRoutingTable)
    names += (names.empty() ? "" : "|") + std::string(routing.name);
  EXPECT_EQ(names, kRoutings);
}

TEST(Routings, LeadFromEndToEnd) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; round += kCaseStep) {
    const Machine machine = random_circle(random);
    const auto devices = static_cast<std::uint32_t>(machine.graph.devices());
    Ways shortest(machine, {}, "first");
    for (const Ways::Routing& routing : Ways::kRoutingTable) {
      Ways ways(machine, {}, routing.name);
      for (std::uint32_t from = 0; from < devices; ++from) {
        for (std::uint32_t to = 0; to < devices; ++to) {
          if (from == to) continue;
          const std::size_t least = shortest.way(message_between(from, to)).size();
          const std::span<const Ways::Way> found = ways.ways(message_between(from, to));
          ASSERT_FALSE(found.empty());
          ASSERT_LE(found.size(), Ways::kMostWays);
          for (const Ways::Way& way : found) {
            expect_way(ways, way, from, to);
            ASSERT_GE(way.size(), least);
          }
          if (is_adaptive(routing.choice) || routing.choice == WayChoice::first) {
            EXPECT_TRUE(found.front().size() == least || routing.name == "up-down") << routing.name;
          }
        }
      }
    }
  }
}

TEST(Routings, UpAndDownNeverWaitsInACircle) {
  std::mt19937 random(11);
  int circles = 0;
  for (int round = 0; round < 20; ++round) {
    const Machine machine = random_circle(random);
    for (const std::string_view routing : {"up-down", "ecmp"}) {
      Ways ways(machine, {}, routing);
      std::set<std::pair<std::uint32_t, std::uint32_t>> waits;
      for (std::int64_t from = 0; from < machine.graph.devices(); ++from) {
        for (std::int64_t to = 0; to < machine.graph.devices(); ++to) {
          if (from == to) continue;
          const auto way =
              ways.way(message_between(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)));
          for (std::size_t i = 1; i < way.size(); ++i) waits.emplace(way[i - 1], way[i]);
        }
      }
      if (routing == "up-down") {
        EXPECT_FALSE(may_deadlock(waits));
      } else {
        circles += may_deadlock(waits) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(circles, 10);  // what the others do
}

// A mesh of 3 x 4 devices that forward: first along x, then along y.
TEST(Routings, DimensionOrderCrossesOneAfterTheOther) {
  Machine machine = routed_machine(12, 0);
  machine.dimensions = {{"x", DimensionKind::ring, 3, gigabytes_per_second(1), nanoseconds(100)},
                        {"y", DimensionKind::ring, 4, gigabytes_per_second(1), nanoseconds(100)}};
  machine.graph.devices_forward = true;
  for (std::uint32_t device = 0; device < 12; ++device) {
    if (device % 3 < 2) join(machine, device, device + 1, 0);
    if (device < 9) join(machine, device, device + 3, 1);
  }
  Ways ways(machine, {}, "dimension-order");
  for (std::uint32_t from = 0; from < 12; ++from) {
    for (std::uint32_t to = 0; to < 12; ++to) {
      if (from == to) continue;
      const auto way = ways.way(message_between(from, to));
      const auto distance = [](std::uint32_t a, std::uint32_t b) { return a > b ? a - b : b - a; };
      EXPECT_EQ(way.size(), distance(from % 3, to % 3) + distance(from / 3, to / 3));
      EXPECT_TRUE(
          std::ranges::is_sorted(way, {}, [&](std::uint32_t link) { return ways.links()[link].dimension; }));
    }
  }
  machine.graph.devices_forward = false;
  Ways cut(machine, {}, "dimension-order");
  EXPECT_EQ(
      error_of([&] { cut.way(message_between(0, 4)); }),
      "network: no way leads from 'd0' to 'd4'\n  hint: in dimension order it leads over devices, which "
      "do not forward here");
}

TEST(Routings, SprayTakesAllShortestWays) {
  Ways ways(leaf_spine_graph(3, 5), {}, "spray");
  EXPECT_EQ(ways.ways(message_between(0, 1)).size(), 1U);
  std::set<std::uint32_t> spines;
  for (const Ways::Way& way : ways.ways(message_between(0, 4))) {
    EXPECT_EQ(way.size(), 4U);
    spines.insert(ways.links()[way[1]].to);
  }
  EXPECT_EQ(spines.size(), 5U);
  Ways many(leaf_spine_graph(2, 40), {}, "spray");
  EXPECT_EQ(many.ways(message_between(0, 4)).size(), Ways::kMostWays);
}

TEST(Routings, DetoursLeadOverMany) {
  Ways ways(leaf_spine_graph(8, 2), {}, "ugal");
  std::set<std::uint32_t> leaves;
  for (const Ways::Way& way : ways.ways(message_between(0, 4))) {
    for (const std::uint32_t link : way) leaves.insert(ways.links()[link].to);
  }
  EXPECT_GE(leaves.size(), 8U);
}

TEST(DamagedLinks, AreGoneAroundOrSaidToBeMissing) {
  const Machine machine = leaf_spine_graph(2, 2);
  const std::vector<DamagedLink> one = {{"s0-s2", 0, "test"}};
  Ways ways(machine, {}, "ecmp", one);
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 4; to < 8; ++to)
      EXPECT_EQ(ways.links()[ways.way(message_between(from, to))[1]].to, 11U);
  }
  const std::vector<DamagedLink> half = {{"s2-s0", 0.5, "test"}};
  Ways slow(machine, {}, "spray", half);
  EXPECT_EQ(slow.ways(message_between(0, 4)).size(), 2U);  // routers do not know that one is slow

  const std::vector<DamagedLink> both = {{"s0-s2", 0, "test"}, {"s0-s3", 0, "test"}};
  EXPECT_EQ(error_of([&] { Ways(machine, {}, "ecmp", both); }),
            "test: no way leads from 'd0' to 'd4' any more\n  hint: the failed links cut the machine apart");
  const std::vector<DamagedLink> wrong = {{"s0-s9", 0, "test"}};
  EXPECT_EQ(error_of([&] { Ways(machine, {}, "ecmp", wrong); }),
            "test: there is no node 's9'\n  hint: did you mean 's0'?");
  const std::vector<DamagedLink> twice = {{"s0-s2", 0, "test"}, {"s2-s0", 0.5, "test"}};
  EXPECT_EQ(
      error_of([&] { Ways(machine, {}, "ecmp", twice); }),
      "test: the link 's2-s0' is given twice, as failed and with a share of its bandwidth\n  hint: give it "
      "once");
  const std::vector<DamagedLink> shares = {{"s0-s2", 0.5, "test"}, {"s2-s0", 0.5, "test"}};
  EXPECT_EQ(error_of([&] { Ways(machine, {}, "ecmp", shares); }),
            "test: the link 's2-s0' is given twice, with two shares of its bandwidth\n  hint: give it once");
  const std::vector<DamagedLink> apart = {{"s0-s1", 0, "test"}};
  EXPECT_EQ(error_of([&] { Ways(machine, {}, "ecmp", apart); }), "test: no link joins the nodes of 's0-s1'");
  const std::vector<DamagedLink> nothing = {{"s0", 0, "test"}};
  EXPECT_EQ(error_of([&] { Ways(machine, {}, "ecmp", nothing); }),
            "test: 's0' does not name two nodes\n  hint: such as leaf0-spine1");
}

// Rings of a hierarchy: a failed link leaves the way around, over devices.
TEST(DamagedLinks, OfARingLeaveTheOtherWay) {
  Machine machine;
  machine.dimensions = {{"ring", DimensionKind::ring, 6, gigabytes_per_second(1), nanoseconds(1)}};
  Ways whole(machine, {}, "ecmp");
  EXPECT_EQ(whole.way(message_between(0, 1)).size(), 1U);
  const std::vector<DamagedLink> one = {{"rank 0-rank 1", 0, "test"}};
  Ways ways(machine, {}, "ecmp", one);
  EXPECT_EQ(ways.way(message_between(0, 1)).size(), 5U);
  const std::vector<DamagedLink> half = {{"rank 0-rank 1", 0.5, "test"}};
  Ways slow(machine, {}, "ecmp", half);
  EXPECT_EQ(slow.links()[slow.way(message_between(0, 1)).front()].figures.bandwidth,
            gigabytes_per_second(0.5));
}

FlowsResult run(const Machine& machine, const std::string& network, std::vector<TrafficFlow> flows,
                bool sampled = false) {
  FlowJob job;
  job.where = "test";
  job.flows = std::move(flows);
  job.usual_settings = true;
  job.sampled = sampled;
  job.settings.congestion_control = CongestionControl::dcqcn;
  return std::get<FlowsResult>(
      run_flows(parse_component(network, "test"), machine, {}, std::move(job)).outcome);
}

double last_of(const FlowsResult& result) {
  double last = 0;
  for (const FlowResult& flow : result.flows) {
    EXPECT_TRUE(flow.finished);
    last = std::max(last, flow.fct_s);
  }
  return last;
}

// Four devices of a leaf send to those of another over two spines: what the spines carry is 2 GB/s, whatever
// the hash says.
TEST(Routings, SpreadFluidsAndPacketsEvenly) {
  const Machine machine = leaf_spine_graph(2, 2);
  std::vector<TrafficFlow> flows;
  for (std::int64_t i = 0; i < 4; ++i) flows.push_back({i, 4 + i, 4'000'000});
  const double bound = 16e6 / 2e9;
  for (const std::string routing : {"spray", "adaptive"}) {
    EXPECT_NEAR(last_of(run(machine, "flow:routing=" + routing, flows)), bound, 1e-6) << routing;
    EXPECT_NEAR(last_of(run(machine, "packet:cc=none,routing=" + routing, flows)) / bound, 1.02, 0.02)
        << routing;
  }
  EXPECT_NEAR(last_of(run(machine, "flow:routing=first", flows)), 2 * bound, 1e-6);
  EXPECT_NEAR(last_of(run(machine, "packet:cc=none,routing=first", flows)) / (2 * bound), 1.02, 0.02);
}

// Small buffers of switches pause senders, and are the parameter's, whatever suits the graph; who is paused
// is said by name.
TEST(Routings, BuffersOfSwitchesAreAParameter) {
  const Machine machine = leaf_spine_graph(2, 2);
  const std::vector<TrafficFlow> flows = {{4, 0, 4'000'000}, {5, 0, 4'000'000}, {6, 0, 4'000'000}};
  EXPECT_EQ(run(machine, "packet:cc=none,buffer=400MiB", flows).pfc_pauses, 0);
  EXPECT_GT(run(machine, "packet:cc=none,buffer=1MiB", flows).pfc_pauses,
            run(machine, "packet:cc=none", flows).pfc_pauses);
  EXPECT_EQ(error_of([&] { run(machine, "packet:buffer=1kB", flows); }),
            "test: buffer: 1000 is out of range\n  hint: from 16384 to 4194304000");
  FlowJob job;
  job.flows = flows;
  job.usual_settings = true;
  const TrafficResult told =
      run_flows(parse_component("packet:cc=none,buffer=1MiB", "test"), machine, {}, std::move(job));
  const auto paused =
      std::ranges::find(told.facts, "longest paused", &std::pair<std::string, std::string>::first);
  ASSERT_NE(paused, told.facts.end());
  EXPECT_EQ(paused->second.find("node"), std::string::npos) << paused->second;
}

// A file that numbers its switches first, or among its hosts: its flows are hashed by its own numbers, as
// where the file is played as it is, and reported by them.
TEST(Routings, FlowsOfAFileGoByItsNumbers) {
  Machine machine = leaf_spine_graph(2, 4);
  const auto nodes = static_cast<std::int64_t>(machine.graph.nodes.size());
  for (const std::int64_t factor : {1, 5, 9}) {
    ASSERT_EQ(std::gcd(factor, nodes), 1);
    // The same graph by the file's numbers.
    NetworkGraph file;
    file.is_switch.resize(machine.graph.nodes.size());
    for (std::int64_t place = 0; place < nodes; ++place)
      machine.graph.nodes[static_cast<std::size_t>(place)].number = place * factor % nodes;
    const NetworkGraph graph = network_graph(machine.graph);
    for (std::int64_t place = 0; place < nodes; ++place)
      file.is_switch[static_cast<std::size_t>(graph.number_of(place))] =
          graph.is_switch[static_cast<std::size_t>(place)];
    for (GraphLink link : graph.links) {
      link.a = graph.number_of(link.a);
      link.b = graph.number_of(link.b);
      file.links.push_back(link);
    }
    std::vector<TrafficFlow> flows;
    FlowJob job;
    job.graph = std::move(file);
    for (std::int64_t i = 0; i < 8; ++i) {
      flows.push_back({i, (i + 4) % 8, 1'000'000 + 1000 * i});
      job.flows.push_back({graph.number_of(i), graph.number_of((i + 4) % 8), 1'000'000 + 1000 * i});
    }
    const FlowsResult seen = run(machine, "flow", flows);
    const auto expected =
        std::get<FlowsResult>(run_flows(parse_component("flow", "test"), std::move(job)).outcome);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      EXPECT_EQ(seen.flows[i].source, expected.flows[i].source);
      EXPECT_EQ(seen.flows[i].destination, expected.flows[i].destination);
      EXPECT_EQ(seen.flows[i].fct_s, expected.flows[i].fct_s) << factor << ' ' << i;
    }
  }
}

// A spine's link at half of its bandwidth carries half of what is sprayed, in twice the time.
TEST(Routings, DeratedLinksCostWhatTheyLack) {
  Machine machine = leaf_spine_graph(2, 2);
  std::vector<TrafficFlow> flows;
  for (std::int64_t i = 0; i < 4; ++i) flows.push_back({i, 4 + i, 4'000'000});
  Cable& thin = machine.graph.cables[8];  // s0 - s2
  ASSERT_EQ(thin.a, 8U);
  for (const double share : {0.99, 0.5}) {
    thin.there = thin.back = kOne;
    thin.there.derate(share);
    thin.back.derate(share);
    const double bound = 8e6 / (share * 1e9);
    EXPECT_NEAR(last_of(run(machine, "flow:routing=spray", flows)), bound, 1e-5);
    EXPECT_NEAR(last_of(run(machine, "packet:cc=none,routing=spray", flows)) / bound, 1.02, 0.03);
  }
}

// All to all at once: the links of the devices are the busiest on every way, and tell none apart.
TEST(Routings, AdaptiveMessagesSpreadBeyondTheirOwnLinks) {
  const Machine machine = leaf_spine_graph(4, 4);
  std::vector<Sent> sent;
  for (std::int32_t from = 0; from < 16; ++from) {
    for (std::int32_t to = 0; to < 16; ++to) {
      if (from != to) sent.push_back({{from, to, Bytes(1'000'000)}, Time(0)});
    }
  }
  const auto last = [&](const std::string& routing) {
    return in_seconds(std::ranges::max(play(machine, "flow:routing=" + routing, sent).arrivals));
  };
  const double spread = last("spray");
  EXPECT_GT(last("first"), 2 * spread);
  EXPECT_LT(last("adaptive"), 1.25 * spread);
}

// Messages that begin at one moment choose in the order of who they are, not of their events: a state that
// comes again goes on as before.
TEST(Routings, AdaptiveMessagesOfOneMomentChooseInAnyOrder) {
  const Machine machine = leaf_spine_graph(3, 4);
  std::vector<Sent> sent;
  for (std::int32_t from = 0; from < 12; ++from)
    sent.push_back({{from, (5 * from + 4) % 12, Bytes(100'000 * (1 + from))}, Time(0)});
  for (const std::string routing : {"adaptive", "ugal", "progressive"}) {
    const Seen forward = play(machine, "flow:routing=" + routing, sent);
    std::vector<Sent> turned(sent.rbegin(), sent.rend());
    const Seen backward = play(machine, "flow:routing=" + routing, turned);
    EXPECT_TRUE(std::ranges::equal(forward.arrivals, std::views::reverse(backward.arrivals))) << routing;
    EXPECT_TRUE(std::ranges::equal(forward.links, backward.links, {}, &LinkUse::bytes, &LinkUse::bytes))
        << routing;
  }
}

// All devices of a leaf send to the next leaf of a circle of switches: half of it goes the long way
// with UGAL.
TEST(Routings, UgalTakesDetoursWhereTheyPay) {
  Machine machine = routed_machine(16, 4);
  for (std::uint32_t device = 0; device < 16; ++device) join(machine, device, 16 + device / 4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (std::uint32_t k = i + 1; k < 4; ++k) join(machine, 16 + i, 16 + k);
  }
  std::vector<TrafficFlow> flows;
  for (std::int64_t i = 0; i < 4; ++i) flows.push_back({i, 4 + i, 4'000'000});
  const double straight = last_of(run(machine, "flow:routing=ecmp", flows));
  EXPECT_NEAR(straight, 16e6 / 1e9, 1e-6);
  EXPECT_LT(last_of(run(machine, "flow:routing=ugal", flows)), 0.6 * straight);
  const double packets = last_of(run(machine, "packet:cc=none,routing=ecmp", flows));
  EXPECT_LT(last_of(run(machine, "packet:cc=none,routing=ugal", flows)), 0.6 * packets);
  // Where nothing is in the way it costs nothing.
  EXPECT_EQ(last_of(run(machine, "flow:routing=ugal", {{0, 4, 4'000'000}})),
            last_of(run(machine, "flow:routing=ecmp", {{0, 4, 4'000'000}})));
}

// Detours over slow links, whose delays a fluid that chose them late has not waited for.
TEST(Routings, NoFlowIsQuickerThanAlone) {
  Machine machine = routed_machine(12, 3);
  for (std::uint32_t device = 0; device < 12; ++device) join(machine, device, 12 + device / 4);
  for (std::uint32_t i = 0; i < 3; ++i) {
    for (std::uint32_t k = i + 1; k < 3; ++k) join(machine, 12 + i, 12 + k);
  }
  for (std::size_t link = 12; link < machine.graph.cables.size(); ++link)
    machine.graph.cables[link].there.latency = machine.graph.cables[link].back.latency = nanoseconds(5000);
  std::vector<TrafficFlow> flows;
  for (std::int64_t from = 0; from < 12; ++from) {
    for (std::int64_t to = 0; to < 12; ++to) {
      if (from != to) flows.push_back({from, to, 1000});
    }
  }
  for (const char* routing : {"ecmp", "ecmp-ns3", "spray", "adaptive", "ugal", "progressive", "valiant"}) {
    for (const FlowResult& flow : run(machine, std::string("flow:routing=") + routing, flows).flows) {
      EXPECT_GT(flow.least_s, 0) << routing;
      EXPECT_GE(flow.fct_s, flow.least_s * (1 - 1e-9)) << routing;
    }
  }
}

// Four devices of a switch that has one link on, to another whose link to the destinations is slow: only
// there it shows that it is crowded, and another way leads around it.
TEST(Routings, ProgressiveTakesDetoursFromTheSecondSwitchOn) {
  Machine machine = routed_machine(8, 4);  // switches 8 and 9 in a row, 11 the last, 10 beside
  for (std::uint32_t device = 0; device < 8; ++device) join(machine, device, device < 4 ? 8 : 11);
  for (int parallel = 0; parallel < 4; ++parallel) join(machine, 8, 9);
  join(machine, 9, 11);
  join(machine, 9, 10);
  join(machine, 10, 11);
  std::vector<TrafficFlow> flows;
  for (std::int64_t i = 0; i < 4; ++i) flows.push_back({i, 4 + i, 4'000'000});
  const double ugal = last_of(run(machine, "packet:cc=none,routing=ugal", flows));
  EXPECT_NEAR(ugal / (16e6 / 1e9), 1.02, 0.02);
  const double progressive = last_of(run(machine, "packet:cc=none,routing=progressive", flows));
  EXPECT_LT(progressive, 0.6 * ugal);
  EXPECT_GT(progressive, 16e6 / 2e9);  // both links together
  // Where nothing is in the way it costs nothing.
  EXPECT_EQ(last_of(run(machine, "packet:cc=none,routing=progressive", {{0, 4, 40'000}})),
            last_of(run(machine, "packet:cc=none,routing=first", {{0, 4, 40'000}})));
}

TEST(Routings, ForwardingDevicesHaveRouters) {
  Machine torus;
  torus.dimensions = {{"x", DimensionKind::ring, 4, gigabytes_per_second(1), nanoseconds(100)},
                      {"y", DimensionKind::ring, 4, gigabytes_per_second(1), nanoseconds(100)}};
  // Two hops, and through routers without delay.
  EXPECT_NEAR(last_of(run(torus, "flow", {{0, 5, 1'000'000}})), 1e-3 + 2e-7, 1e-9);
  EXPECT_NEAR(last_of(run(torus, "packet", {{0, 5, 1'000'000}})), 1e-3, 0.03e-3);
  // A ring of a dimension carries a shift by two with every link full in one direction.
  std::vector<TrafficFlow> shift;
  for (std::int64_t i = 0; i < 16; ++i) shift.push_back({i, i / 4 * 4 + (i + 2) % 4, 1'000'000});
  EXPECT_NEAR(last_of(run(torus, "flow", shift)), 2e-3, 1e-6);
}

TEST(Routings, SeveralWaysNeedSelectiveRepeat) {
  EXPECT_EQ(error_of([&] {
              run(leaf_spine_graph(2, 2), "packet:routing=spray,recovery=go-back-n", {{0, 4, 1'000'000}});
            }),
            "test: recovery: 'go-back-n' repeats what comes in another order, as packets on several ways do\n"
            "  hint: selective, or a routing with one way");
}

// Samples hold all that links carried, and no link carries more than it can.
TEST(LinkSamples, AddUpToWhatWasCarried) {
  const Machine machine = leaf_spine_graph(2, 2);
  std::vector<TrafficFlow> flows;
  for (std::int64_t i = 1; i < 8; ++i) flows.push_back({i, 0, 2'000'000, 1000 * i});
  for (const std::string network : {"flow", "packet"}) {
    const FlowsResult result = run(machine, network, flows, true);
    ASSERT_FALSE(result.samples.links.empty());
    const LinkSamples& busiest = result.samples.links.front();
    EXPECT_EQ(busiest.from + " " + busiest.to, "s0 d0");
    double bytes = 0, queue = 0;
    for (std::size_t i = 0; i < busiest.utilisation.size(); ++i) {
      bytes += busiest.utilisation[i] * result.samples.interval_s * 1e9;
      queue = std::max(queue, busiest.queue_bytes[i]);
    }
    EXPECT_LE(busiest.utilisation.size(), 256U);
    EXPECT_GE(busiest.utilisation.size(), 64U);
    // Headers of packets; the last interval is cut short.
    EXPECT_NEAR(bytes / 14e6, network == "flow" ? 1 : 1.01, 0.012) << network;
    EXPECT_EQ(queue > 1e5, network == "packet");
    for (const LinkSamples& link : result.samples.links) {
      for (const double share : link.utilisation) EXPECT_LE(share, 1.01) << link.from;
    }
  }
}

// By link, how often members load it, in shares.
std::map<std::uint32_t, double> loads_of(const SwitchTrees& trees, std::uint32_t tree, Leg leg,
                                         const std::vector<std::int32_t>& members, std::int32_t source) {
  std::map<std::uint32_t, double> loads;
  for (const std::int32_t member : members) {
    if (leg == Leg::from_switch && member == source) continue;
    const SwitchTrees::Branch branch = trees.branch(tree, leg, leg == Leg::to_switch ? member : source,
                                                    leg == Leg::to_switch ? source : member);
    for (const LinkShare& use : branch.links) loads[use.link] += use.share;
  }
  return loads;
}
double sum_of(const std::map<std::uint32_t, double>& loads) {
  double sum = 0;
  for (const auto& [link, load] : loads) sum += load;
  return sum;
}

std::vector<std::int32_t> first_members(std::int32_t count) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(count));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

// Three leaves of four and two spines: twelve links to the leaves, each of which carries the sum once, and
// three to each spine, which carry half of it.
TEST(SwitchTrees, CarryASumOnceOverEveryLink) {
  Ways ways(leaf_spine_graph(3, 2), {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = first_members(12);
  const std::uint32_t tree = trees.find(members, CollectiveKind::all_reduce);
  EXPECT_EQ(trees.find(members, CollectiveKind::all_reduce), tree);
  EXPECT_NE(trees.find(members, CollectiveKind::reduce), tree);
  const std::map<std::uint32_t, double> up = loads_of(trees, tree, Leg::to_switch, members, 0);
  EXPECT_EQ(up.size(), 12U + 6);
  for (const auto& [link, load] : up) EXPECT_EQ(load, ways.is_device(ways.links()[link].from) ? 1 : 0.5);
  // The first member's copy is asked for by the second.
  std::map<std::uint32_t, double> down = loads_of(trees, tree, Leg::from_switch, members, 0);
  for (const LinkShare& use : trees.branch(tree, Leg::from_switch, 1, 0).links) down[use.link] += use.share;
  EXPECT_EQ(down.size(), up.size());
  for (const auto& [link, load] : down) EXPECT_EQ(load, up.at(link ^ 1));
  EXPECT_EQ(trees.branch(tree, Leg::to_switch, 7, 0).latency, nanoseconds(200));
  EXPECT_EQ(trees.branch(tree, Leg::from_switch, 0, 7).latency, nanoseconds(200));
}

// One that has lost half of a link carries half as much as the other, on all of its links.
TEST(SwitchTrees, CarryWhatTheirNarrowestLinkCan) {
  Machine machine = leaf_spine_graph(3, 2);
  Cable& cable = *std::ranges::find_if(machine.graph.cables, [&](const Cable& one) {
    return machine.graph.nodes[one.a].kind == NetworkNodeKind::switched;
  });
  cable.back.bandwidth.value /= 2;
  const std::uint32_t spine = cable.b;
  Ways ways(machine, {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = first_members(12);
  const std::uint32_t tree = trees.find(members, CollectiveKind::all_reduce);
  for (const auto& [link, load] : loads_of(trees, tree, Leg::to_switch, members, 0)) {
    const double expected = ways.is_device(ways.links()[link].from) ? 1.0
                            : ways.links()[link].to == spine        ? 1.0 / 3
                                                                    : 2.0 / 3;
    EXPECT_NEAR(load, expected, 1e-8);
  }
}

// Two leaves of four, each joined to each spine by so many links.
Machine with_parallel_links(const std::vector<std::pair<int, int>>& to_spines) {
  const auto spines = static_cast<std::uint32_t>(to_spines.size());
  Machine machine = routed_machine(8, 2 + spines);
  for (std::uint32_t device = 0; device < 8; ++device) join(machine, device, 8 + device / 4);
  for (std::uint32_t spine = 0; spine < spines; ++spine) {
    for (int i = 0; i < to_spines[spine].first; ++i) join(machine, 8, 10 + spine);
    for (int i = 0; i < to_spines[spine].second; ++i) join(machine, 9, 10 + spine);
  }
  return machine;
}

// Each leaf's links carry as much as the others to the same spine, and a spine as much as the fewest links of
// a leaf to it can: one link more never makes another one carry more.
TEST(SwitchTrees, TakeParallelLinksHoweverMany) {
  const std::vector<std::int32_t> members = first_members(8);
  using Links = std::vector<std::pair<int, int>>;
  for (const Links& links : {Links{{2, 2}}, Links{{2, 3}}, Links{{5, 3}}, Links{{2, 1}, {2, 2}},
                             Links{{2, 2}, {2, 2}}, Links{{1, 4}, {3, 2}, {7, 1}}, Links(40, {2, 2}),
                             Links(64, {2, 2}), Links(80, {1, 1}), Links(128, {3, 2})}) {
    Ways ways(with_parallel_links(links), {}, "ecmp");
    SwitchTrees trees(ways.link_graph());
    const std::uint32_t tree = trees.find(members, CollectiveKind::all_reduce);
    double all = 0;
    for (const auto& [first, second] : links) all += std::min(first, second);
    const std::map<std::uint32_t, double> up = loads_of(trees, tree, Leg::to_switch, members, 0);
    std::map<std::uint32_t, double> down = loads_of(trees, tree, Leg::from_switch, members, 0);
    for (const LinkShare& use : trees.branch(tree, Leg::from_switch, 1, 0).links) down[use.link] += use.share;
    std::size_t expected_links = 8;
    for (const auto& [first, second] : links) expected_links += static_cast<std::size_t>(first + second);
    EXPECT_EQ(up.size(), expected_links);
    EXPECT_EQ(down.size(), expected_links);
    for (const auto& [link, load] : up) {
      const DirectedLink& here = ways.links()[link];
      double expected = 1;
      if (!ways.is_device(here.from)) {
        const auto& [first, second] = links[here.to - 10];
        expected = std::min(first, second) / all / (here.from == 8 ? first : second);
      }
      EXPECT_NEAR(load, expected, 1e-8);
      EXPECT_NEAR(down.at(link ^ 1), expected, 1e-8);
    }
    double sum = 0;  // of a leaf's links, exactly
    for (const auto& [link, load] : up) sum += ways.links()[link].from == 8 ? load : 0;
    EXPECT_EQ(sum, 1);
  }
}

// A damaged one of three parallel links carries as much less as it can.
TEST(SwitchTrees, LoadParallelLinksByTheirBandwidths) {
  Machine machine = with_parallel_links({{3, 3}});
  Cable& cable = machine.graph.cables[8];
  cable.there.derate(0.5);
  cable.back.derate(0.5);
  Ways ways(machine, {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = first_members(8);
  const auto up =
      loads_of(trees, trees.find(members, CollectiveKind::all_reduce), Leg::to_switch, members, 0);
  EXPECT_NEAR(up.at(16), 0.2, 1e-8);
  EXPECT_NEAR(up.at(18), 0.4, 1e-8);
  EXPECT_NEAR(up.at(20), 0.4, 1e-8);
}

// Two devices on each side of a spine with a link to each of two leaves, which are joined to two switches
// above each, and these to the spine: half of a sum on each link of the devices and of the spine, a quarter
// on each between leaves and the switches above.
TEST(SwitchTrees, TakeAllWaysWhereWaysPartTwice) {
  Machine machine = routed_machine(4, 9);  // leaves 4, 5, above 6, 7; leaves 8, 9, above 10, 11; the spine 12
  for (const std::uint32_t side : {0U, 1U}) {
    const std::uint32_t leaf = 4 + 4 * side;
    for (const std::uint32_t here : {leaf, leaf + 1}) {
      join(machine, 2 * side, here), join(machine, 2 * side + 1, here);
      join(machine, here, leaf + 2), join(machine, here, leaf + 3);
    }
    join(machine, leaf + 2, 12), join(machine, leaf + 3, 12);
  }
  Ways ways(machine, {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = first_members(4);
  const std::map<std::uint32_t, double> up =
      loads_of(trees, trees.find(members, CollectiveKind::all_reduce), Leg::to_switch, members, 0);
  EXPECT_EQ(up.size(), machine.graph.cables.size());
  for (const auto& [link, load] : up) {
    const DirectedLink& here = ways.links()[link];
    EXPECT_EQ(load, ways.is_device(here.from) || here.to == 12 ? 0.5 : 0.25) << here.from << ' ' << here.to;
  }
}

// Of three roots the two behind one link get a quarter each, and the third one half.
TEST(SwitchTrees, OfOneLinkShareIt) {
  // Leaves 4, 5; above them 6, 7 of the one, 8, 9 of the other; roots 10 to 12.
  Machine machine = routed_machine(4, 9);
  for (std::uint32_t device = 0; device < 4; ++device) join(machine, device, 4 + device / 2);
  join(machine, 4, 6), join(machine, 4, 7), join(machine, 5, 8), join(machine, 5, 9);
  for (std::uint32_t root = 10; root < 13; ++root) {
    join(machine, root < 12 ? 6 : 7, root);
    join(machine, root < 12 ? 8 : 9, root);
  }
  Ways ways(machine, {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = first_members(4);
  for (const auto& [link, load] :
       loads_of(trees, trees.find(members, CollectiveKind::all_reduce), Leg::to_switch, members, 0)) {
    const DirectedLink& here = ways.links()[link];
    const double expected = ways.is_device(here.from) ? 1 : here.to == 10 || here.to == 11 ? 0.25 : 0.5;
    EXPECT_NEAR(load, expected, 1e-8) << here.from << ' ' << here.to;
  }
}

// Of a broadcast from the sixth, the links that lead away from it: to eleven others, up to the spines and
// down to the two other leaves.
TEST(SwitchTrees, CopiesGoWhereTheyAreNotYet) {
  Ways ways(leaf_spine_graph(3, 2), {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = first_members(12);
  const std::uint32_t tree = trees.find(members, CollectiveKind::broadcast);
  EXPECT_EQ(trees.branch(tree, Leg::to_switch, 5, 6).links.size(), 3U);
  EXPECT_EQ(sum_of(loads_of(trees, tree, Leg::from_switch, members, 5)), 13);
  // What is for one alone takes all of its way.
  const std::uint32_t reduce = trees.find(members, CollectiveKind::reduce);
  EXPECT_EQ(trees.branch(reduce, Leg::from_switch, 6, 5).links.size(), 3U);
}

TEST(SwitchTrees, StayBelowTheLowestCommonSwitch) {
  Ways ways(leaf_spine_graph(3, 2), {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  const std::vector<std::int32_t> members = {4, 5, 7};
  const std::uint32_t tree = trees.find(members, CollectiveKind::all_reduce);
  for (const std::int32_t member : members) {
    const SwitchTrees::Branch branch = trees.branch(tree, Leg::to_switch, member, 4);
    EXPECT_EQ(branch.latency, nanoseconds(100));
    ASSERT_EQ(branch.links.size(), 1U);
    EXPECT_EQ(ways.graph().nodes[ways.links()[branch.links[0].link].to].name, "s1");
  }
}

TEST(SwitchTrees, SayWhereNoSwitchLeadsToAll) {
  Machine machine = routed_machine(4, 2);
  join(machine, 0, 4), join(machine, 1, 4), join(machine, 2, 5), join(machine, 3, 5), join(machine, 1, 5);
  machine.graph.devices_forward = false;
  Ways ways(machine, {}, "ecmp");
  SwitchTrees trees(ways.link_graph());
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(error_of([&] { trees.find(first_members(4), CollectiveKind::all_reduce); }).substr(0, 49),
              "network: no switch leads to all 4 members of a gr");
  }
}

// In any circle of switches each member's part ends at the same roots, in the same shares; a sum crosses each
// link once, with all that any member sends over it.
TEST(SwitchTrees, AreTreesInAnyGraph) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const Machine machine = random_circle(random);
    Ways ways(machine, {}, "ecmp");
    SwitchTrees trees(ways.link_graph());
    std::vector<std::int32_t> members;
    for (std::int32_t i = 0; i < rank_count(machine); ++i) {
      if (random() % 3 != 0) members.push_back(i);
    }
    if (members.size() < 2) continue;
    const std::uint32_t sums = trees.find(members, CollectiveKind::all_reduce),
                        parts = trees.find(members, CollectiveKind::all_gather);
    const std::map<std::uint32_t, double> loads = loads_of(trees, sums, Leg::to_switch, members, 0);
    std::map<std::uint32_t, double> left;  // by node
    for (const auto& [link, load] : loads) {
      EXPECT_LE(load, 1);
      left[ways.links()[link].from] += load;
    }
    for (const auto& [node, load] : left) EXPECT_LE(load, 1 + 1e-6);
    std::map<std::uint32_t, double> roots;
    for (const std::int32_t member : members) {
      std::map<std::uint32_t, double> ends;
      for (const LinkShare& use : trees.branch(parts, Leg::to_switch, member, members.front()).links) {
        EXPECT_LE(use.share, loads.at(use.link) + 1e-6);
        ends[ways.links()[use.link].to] += use.share;
        ends[ways.links()[use.link].from] -= use.share;
      }
      EXPECT_NEAR(ends[static_cast<std::uint32_t>(member)], -1, 1e-6);
      ends.erase(static_cast<std::uint32_t>(member));
      std::erase_if(ends, [](const auto& end) { return std::abs(end.second) < 1e-6; });
      if (roots.empty()) roots = ends;
      ASSERT_EQ(ends.size(), roots.size());
      EXPECT_NEAR(sum_of(ends), 1, 1e-6);
      for (const auto& [node, load] : ends) EXPECT_NEAR(load, roots.at(node), 1e-6);
    }
  }
}

}  // namespace
}  // namespace armilla
