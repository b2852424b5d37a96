#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "network/flit.h"
#include "network/flit/flit_graph.h"
#include "network/network_testing.h"
#include "network/routing/ways.h"

namespace armilla {
namespace {

constexpr std::int64_t kFlit = 100;  // bytes; a cycle is a nanosecond

// Switches with some links between them and devices at them, or devices that forward; links of 1 to 4
// ns per flit.
class RandomMachine {
 public:
  RandomMachine(unsigned seed, bool forwards) : random_(seed) {
    const int devices = from(2, 6), switches = forwards ? 0 : from(1, 5);
    machine.dimensions = {{"net", DimensionKind::switched, devices, gigabytes_per_second(100), Time(0)}};
    Interconnect& graph = machine.graph;
    graph.devices_forward = forwards;
    for (int i = 0; i < devices; ++i)
      graph.nodes.push_back({NetworkNodeKind::device, "d" + std::to_string(i)});
    for (int i = 0; i < switches; ++i)
      graph.nodes.push_back({NetworkNodeKind::switched, "s" + std::to_string(i)});
    const int first = forwards ? 0 : devices, inner = forwards ? devices : switches;
    for (int i = 1; i < inner; ++i) join(first + i, first + from(0, i - 1));
    for (int i = from(0, 3); i > 0 && inner > 2; --i) {
      const int a = from(0, inner - 1);
      join(first + a, first + (a + from(1, inner - 1)) % inner);
    }
    for (int i = 0; i < devices && !forwards; ++i) {
      for (int links = from(1, 2); links > 0; --links) join(i, first + from(0, inner - 1));
    }
  }

  int from(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  Machine machine;

 private:
  LinkFigures figures() { return {gigabytes_per_second(100.0 / from(1, 4)), nanoseconds(from(0, 30)), 0}; }
  void join(int a, int b) {
    const LinkFigures there = figures(), back = figures();
    machine.graph.cables.push_back(
        {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), there, back, 0});
  }

  std::mt19937 random_;
};

struct Router {
  const char* name;
  std::int64_t pipeline;
};

// In cycles, flit after flit and link after link: of BookSim's pipeline only heads wait for more
// than the switch.
std::int64_t by_recurrence(const Router& router, std::int64_t flits, const std::vector<LinkFigures>& way) {
  const bool garnet = std::string(router.name) == "garnet";
  std::vector<std::int64_t> times(static_cast<std::size_t>(flits));  // at a router
  for (std::int64_t i = 0; i < flits; ++i) times[static_cast<std::size_t>(i)] = i + 1;
  for (std::size_t at = 0; at <= way.size(); ++at) {
    const bool last = at == way.size();
    const std::int64_t period = last ? 1 : std::lround(100e9 / way[at].bandwidth.value);
    const std::int64_t latency = last ? 0 : std::lround(in_seconds(way[at].latency) * 1e9) - router.pipeline;
    std::int64_t free = 0;
    for (std::int64_t i = 0; i < flits; ++i) {
      std::int64_t& time = times[static_cast<std::size_t>(i)];
      const std::int64_t sent = std::max(time + (garnet || i == 0 ? router.pipeline : 1), free);
      free = sent + period;
      time = sent + std::max<std::int64_t>(latency, 1) + period - 1;
    }
  }
  return times.back();
}

// T = p + 2 + sum (latency + period - 1) + (P - 1) x longest period, from everywhere to everywhere.
TEST(FlitNetwork, TakesExactlyTheTimeOfTheLawWhereNothingIsInTheWay) {
  for (const Router& router :
       {Router{"pipelined", 2}, Router{"pipelined", 5}, Router{"garnet", 1}, Router{"garnet", 3}}) {
    for (unsigned seed = 0; seed < 40; seed += kCaseStep) {
      RandomMachine random(seed, seed % 2 == 1);
      const Machine& machine = random.machine;
      Ways ways(machine, {}, "ecmp");
      const auto devices = static_cast<std::int32_t>(machine.graph.devices());
      const std::int64_t flits = random.from(1, 20);
      for (std::int32_t from = 0; from < devices; ++from) {
        for (std::int32_t to = 0; to < devices; ++to) {
          if (from == to) continue;
          const Message message = {from, to, Bytes(flits * kFlit - random.from(0, kFlit - 1))};
          double law = static_cast<double>(router.pipeline + 2), slowest = 1;
          std::vector<LinkFigures> way;
          for (const std::uint32_t link : ways.way(message)) {
            const LinkFigures& figures = way.emplace_back(ways.links()[link].figures);
            const double period = std::round(100e9 / figures.bandwidth.value);
            law += std::max(in_seconds(figures.latency) * 1e9, static_cast<double>(router.pipeline + 1)) +
                   period - 1;
            slowest = std::max(slowest, period);
          }
          law += static_cast<double>(flits - 1) * slowest;
          const std::int64_t cycles = by_recurrence(router, flits, way);
          EXPECT_LE(cycles, std::lround(law));
          if (std::string(router.name) == "garnet" || flits == 1) {
            EXPECT_EQ(cycles, std::lround(law));
          }
          const std::string network =
              "flit:flit-width=100B,packet=2000B,clock=1GHz,router=" + std::string(router.name) +
              ",router-latency=" + std::to_string(router.pipeline);
          const Seen seen = play(machine, network, {{message, nanoseconds(7)}});
          EXPECT_EQ(seen.arrivals[0].value, 1000 * (7 + cycles))
              << network << " seed " << seed << ", " << from << " to " << to << ", " << flits << " flits";
        }
      }
    }
  }
}

// As many virtual channels as there are layers, buffers of one flit, long packets from everywhere
// to everywhere.
TEST(FlitNetwork, NeverWaitsInACircleWithTheVirtualChannelsThatWaysTake) {
  for (const char* routing : {"ecmp", "spray", "adaptive", "valiant", "ugal", "up-down"}) {
    for (unsigned seed = 0; seed < 30; seed += kCaseStep) {
      RandomMachine random(seed, seed % 2 == 1);
      const auto devices = static_cast<std::int32_t>(random.machine.graph.devices());
      std::vector<Sent> sent;
      for (int round = 0; round < 4; ++round) {
        for (std::int32_t from = 0; from < devices; ++from) {
          for (std::int32_t to = 0; to < devices; ++to)
            if (from != to) sent.push_back({{from, to, Bytes(20 * kFlit)}, nanoseconds(random.from(0, 50))});
        }
      }
      const Seen seen = play(
          random.machine, "flit:flit-width=100B,packet=1000B,buffer=1,routing=" + std::string(routing), sent);
      EXPECT_GT(*std::ranges::min_element(seen.arrivals), Time(0)) << routing << ' ' << seed;
    }
  }
}

// Climbing and then descending is an order that no way leaves.
TEST(FlitGraph, TakesOneLayerWithUpDown) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const RandomMachine random(seed, seed % 2 == 1);
    Ways ways(random.machine, {}, "up-down");
    EXPECT_EQ(FlitGraph(ways, {1000, 100}).layers(), 1U) << seed;
  }
}

Machine ring_of_eight() {
  Machine machine = machine_with(DimensionKind::ring, 8);
  machine.dimensions[0].latency = nanoseconds(100);
  return machine;
}

std::vector<Sent> three_further(std::int64_t bytes) {
  std::vector<Sent> sent;
  for (std::int32_t rank = 0; rank < 8; ++rank)
    sent.push_back({{rank, (rank + 3) % 8, Bytes(bytes)}, Time(0)});
  return sent;
}

TEST(FlitNetwork, ExplainsADeadlock) {
  for (const char* router : {"pipelined", "garnet"}) {
    const std::string network = std::string("flit:buffer=2,router=") + router;
    EXPECT_NO_THROW(play(ring_of_eight(), network, three_further(100'000)));
    const std::string error =
        error_of([&] { play(ring_of_eight(), network + ",vcs=1", three_further(100'000)); });
    EXPECT_THAT(error, testing::StartsWith("network flit: at "));
    EXPECT_THAT(error, testing::HasSubstr("packets wait for each other for ever (deadlock) since cycle "));
    EXPECT_THAT(error, testing::HasSubstr("rank 1 from rank 0 (VC 0, a packet from rank "));
    EXPECT_THAT(error,
                testing::EndsWith(" again\n  hint: vcs=1 are too few: ways here take 2 to be free of such "
                                  "circles"));
  }
}

// A slow link in the middle takes its bandwidth, whatever its share of a cycle.
TEST(FlitNetwork, LinksOfAnySpeedAreExactOnTheAverage) {
  for (const double bandwidth : {100.0, 99.0, 61.7, 33.3, 7.0}) {
    Machine machine = star_machine(2);
    machine.graph.cables[1].there.bandwidth = machine.graph.cables[1].back.bandwidth =
        gigabytes_per_second(bandwidth);
    machine.graph.cables[0].there.bandwidth = machine.graph.cables[0].back.bandwidth =
        gigabytes_per_second(100);
    const double alone = 5e6 / bandwidth + 2000;  // ns
    const Seen seen = play(machine, "flit:flit-width=100B,packet=2kB", {{{0, 1, Bytes(5'000'000)}, Time(0)}});
    const double took = static_cast<double>(seen.arrivals[0].value) / 1000;
    EXPECT_GT(took, alone);
    EXPECT_LT(took, alone + 100 / bandwidth + 10) << bandwidth;
    ASSERT_FALSE(seen.links.empty());
    EXPECT_NEAR(static_cast<double>(seen.links[0].busy.value) / 1000, 5e6 / bandwidth, 1) << bandwidth;
  }
}

TEST(FlitNetwork, HeadersTakeTheirShare) {
  const std::vector<Sent> sent = {{{0, 1, Bytes(8'000'000)}, Time(0)}};
  const Time whole = play(star_machine(2), "flit", sent).arrivals[0];
  const Time part = play(star_machine(2), "flit:payload=0.8", sent).arrivals[0];
  EXPECT_NEAR(in_microseconds(part) / in_microseconds(whole), 1.25, 0.01);
}

TEST(FlitNetwork, RefusesWhatMakesNoSense) {
  const auto refusal = [](const std::string& network, const Machine& machine = star_machine(2)) {
    return error_of([&] { play(machine, network, {}); });
  };
  EXPECT_EQ(refusal("flit:vcs=5000"), "test: vcs: 5000 is out of range\n  hint: from 1 to 4096");
  EXPECT_EQ(refusal("flit:buffer=40000"), "test: buffer: 40000 is out of range\n  hint: from 1 to 32768");
  EXPECT_EQ(refusal("flit:router-latency=1"),
            "test: router-latency: 1 is out of range\n  hint: from 2 to 1000");
  EXPECT_EQ(refusal("flit:router=torus").substr(0, 5), "test:");
  EXPECT_EQ(refusal("flit:payload=0"),
            "test: payload: no part of a flit is payload\n  hint: more than 0, at most 1");
  EXPECT_EQ(refusal("flit:packet=16MB,flit-width=16B"),
            "test: packet: packets of 1000000 flits\n  hint: at most 65536");
  EXPECT_EQ(refusal("flit:clock=1MHz"),
            "network flit: the link rank 0 -> switch 0 (net) moves 48.83 flits in a cycle of the clock, and "
            "a router "
            "passes one\n  hint: a faster clock, or wider flits");
  EXPECT_EQ(refusal("flit", star_machine(2, 0.1)),
            "network flit: the link rank 0 -> switch 0 (net) loses packets, and flits are never lost\n  "
            "hint: --network "
            "packet repeats what is lost");
}

TEST(FlitNetwork, SaysBeforehandThatARunWouldTakeTooLong) {
  const Machine machine = star_machine(2);
  EventQueue queue;
  const MessageLabels labels;
  NetworkSetup setup{machine, queue, labels};
  setup.foreseen = {1000, 1e13};
  EXPECT_EQ(
      error_of([&] { make_network(parse_component("flit", "test"), setup); }),
      "network flit: the messages are 3.9e+10 flits, which would pass 1.2e+11 routers and take about 4 h (at "
      "most "
      "2e+10 are simulated)\n  hint: --network flow takes a time that does not depend on the bytes; a larger "
      "flit-width makes fewer flits");
}

// Flows alone are messages, each of a sender of its own.
TEST(FlitFlows, AreMessages) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::int64_t>(random() % bound); };
  int crowded = 0;
  for (int runs = 0; runs < 40; ++runs) {
    const std::int64_t hosts = 2 + below(6);
    const Machine machine = runs % 2 == 0 ? star_machine(hosts) : machine_with(DimensionKind::ring, hosts);
    FlowJob job;
    std::vector<Sent> sent;
    std::int64_t packets = 0;
    for (std::int64_t flow = 0; flow < 1 + runs % 8; ++flow) {
      const std::int64_t from = below(static_cast<std::uint32_t>(hosts)),
                         to = (from + 1 + below(static_cast<std::uint32_t>(hosts - 1))) % hosts;
      job.flows.push_back({from, to, 1 + below(100'000), below(3) * 1000});
      Message message;
      message.source = static_cast<std::int32_t>(from);
      message.destination = static_cast<std::int32_t>(to);
      message.bytes = Bytes(job.flows.back().bytes);
      message.sender = static_cast<std::uint16_t>(flow);
      sent.push_back({message, Time(job.flows.back().start_ns * 1000)});
      const std::int64_t around = (to - from + hosts) % hosts;
      packets += (message.bytes.value + 4095) / 4096 * (runs % 2 == 0 ? 2 : std::min(around, hosts - around));
    }
    job.graph = network_graph(links_of(machine));
    const ParameterValues values("flit", kFlitParameters, {});
    const TrafficResult result = flit_traffic(job, machine, {}, values);
    const auto& flows = std::get<FlowsResult>(result.outcome);
    const Seen seen = play(machine, "flit", sent);
    EXPECT_EQ(flows.packets, packets);
    ASSERT_EQ(flows.flows.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const FlowResult& flow = flows.flows[i];
      EXPECT_TRUE(flow.finished);
      EXPECT_NEAR(flow.fct_s, in_seconds(seen.arrivals[i] - sent[i].at), 1e-15);
      // Alone it takes the least, to a cycle in which it may begin.
      const double cycle_s = 256 / 12.5e9;
      EXPECT_GE(flow.fct_s, flow.least_s - 1e-12);
      if (sent.size() == 1) {
        EXPECT_LT(flow.fct_s, flow.least_s + 1.01 * cycle_s);
      }
      crowded += flow.fct_s > flow.least_s + 1.01 * cycle_s ? 1 : 0;
    }
  }
  EXPECT_GT(crowded, 10);
}

// Flows 0 and 65,536 of all are two of different hosts, and those of one host take turns.
TEST(FlitFlows, AreSendersOfTheirHost) {
  Machine machine;
  machine.dimensions = {{"s", DimensionKind::switched, 3, gigabytes_per_second(100), nanoseconds(100)}};
  FlowJob job;
  job.where = "test";
  job.graph = network_graph(links_of(machine));
  job.flows.push_back({0, 1, 1 << 20});
  for (int i = 1; i < 1 << 16; ++i) job.flows.push_back({2, 1, 1, 1'000'000'000});
  job.flows.push_back({0, 1, 1 << 20});
  const TrafficResult result = flit_traffic(job, machine, {}, ParameterValues("flit", kFlitParameters, {}));
  const std::vector<FlowResult>& flows = std::get<FlowsResult>(result.outcome).flows;
  EXPECT_LT(flows.back().fct_s, 1.01 * flows.front().fct_s);
}

TEST(FlitFlows, RefuseWhatTheyDoNotPlay) {
  const Machine machine = star_machine(4);
  const auto refusal = [&](auto change) {
    FlowJob job;
    job.graph = network_graph(links_of(machine));
    job.flows = {{0, 1, 1000}};
    change(job);
    return error_of([&] { flit_traffic(job, machine, {}, ParameterValues("flit", kFlitParameters, {})); });
  };
  EXPECT_EQ(refusal([](FlowJob& job) { job.sampled = true; }),
            "network flit: keeps no figures of links over time\n  hint: --network packet and flow do; omit "
            "--over-time, --links-csv, --svg and --trace");
  EXPECT_EQ(
      refusal([](FlowJob& job) { job.flows[0].bytes = 10'000'000'000'000; }),
      "network flit: the messages are 3.9e+10 flits, which would pass 1.2e+11 routers and take about 4 h "
      "(at most 2e+10 are simulated)\n  hint: --network flow takes a time that does not depend on the "
      "bytes; a larger flit-width makes fewer flits");
}

}  // namespace
}  // namespace armilla
