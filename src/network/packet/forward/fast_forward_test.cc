#include "network/packet/forward/fast_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/cases_testing.h"
#include "network/packet/packet_testing.h"

namespace armilla {
namespace {

struct Both {
  PacketOutcome played, forwarded;

  double error(std::size_t flow) const {
    const auto full = static_cast<double>(played.flows[flow].fct_ns);
    return std::abs(static_cast<double>(forwarded.flows[flow].fct_ns) - full) / full;
  }
  double worst() const {
    double most = 0;
    for (std::size_t i = 0; i < played.flows.size(); ++i) most = std::max(most, error(i));
    return most;
  }
};

Both both_ways(FlowJob job) {
  Both both;
  both.played = simulate_packets(job);
  job.fast_forward = true;
  both.forwarded = simulate_packets(job);
  return both;
}

FlowJob usual_star(std::int64_t hosts, CongestionControl control) {
  FlowJob job;
  job.where = "test";
  job.graph = star_graph(hosts);
  job.settings.congestion_control = control;
  use_usual_settings(job.settings, job.graph);
  return job;
}

// All that was sent has arrived, and as much as packet by packet; what was repeated can differ by the queues
// that packets meet.
void expect_conserved(const Both& both) {
  const PacketOutcome& outcome = both.forwarded;
  for (const PacketBytes& bytes : {outcome.data, outcome.acknowledgements})
    EXPECT_EQ(bytes.sent, bytes.delivered + bytes.dropped + bytes.in_flight);
  for (const PacketFlowOutcome& flow : outcome.flows) EXPECT_GE(flow.fct_ns, 0);
  if (both.played.repeated_packets + outcome.repeated_packets != 0) return;
  EXPECT_EQ(outcome.data.delivered, both.played.data.delivered);
  EXPECT_EQ(outcome.acknowledgements.delivered, both.played.acknowledgements.delivered);
  EXPECT_EQ(outcome.data_packets, both.played.data_packets);
  EXPECT_EQ(outcome.frames - outcome.pauses - outcome.resumes,
            both.played.frames - both.played.pauses - both.played.resumes);
}

// How long flows take, packet by packet, when each begins up to a packet's time later and other
// packets are marked.
struct Range {
  double shortest = 1e300, longest = 0;
};
std::vector<Range> by_chance(FlowJob job, std::mt19937& random) {
  std::vector<Range> ranges(job.flows.size());
  const std::vector<TrafficFlow> flows = job.flows;
  for (int run = 0; run < 100; ++run) {
    job.settings.seed = random() + 1;
    for (std::size_t i = 0; i < flows.size(); ++i)
      job.flows[i].start_ns = flows[i].start_ns + static_cast<std::int64_t>(random() % 1000);
    const PacketOutcome outcome = simulate_packets(job);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const auto took = static_cast<double>(outcome.flows[i].fct_ns);
      ranges[i] = {std::min(ranges[i].shortest, took), std::max(ranges[i].longest, took)};
    }
  }
  return ranges;
}

constexpr std::array kRoce = {CongestionControl::none, CongestionControl::dcqcn, CongestionControl::hpcc,
                              CongestionControl::timely};

// Leaves of hosts, spines; or one switch.
NetworkGraph random_graph(std::mt19937& random, std::int64_t& hosts) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const std::int64_t leaves = between(1, 3), at_leaf = between(2, 4),
                     spines = leaves == 1 ? 0 : between(1, 3);
  hosts = leaves * at_leaf;
  const std::int64_t rate = std::array{25, 100, 400}[random() % 3] * std::int64_t{1'000'000'000};
  NetworkGraph graph;
  graph.is_switch.assign(static_cast<std::size_t>(hosts), false);
  graph.is_switch.resize(static_cast<std::size_t>(hosts + leaves + spines), true);
  for (std::int64_t host = 0; host < hosts; ++host)
    graph.links.push_back({host, hosts + host / at_leaf, rate, between(100, 3000), 0});
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::int64_t spine = 0; spine < spines; ++spine)
      graph.links.push_back(
          {hosts + leaf, hosts + leaves + spine, rate * between(1, 4), between(100, 3000), 0});
  }
  return graph;
}

TEST(FastForward, KeepsToItsBound) {
  std::mt19937 random(5);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  std::int64_t counted = 0, frames = 0;
  int chance = 0;
  for (int round = 0; round < 300; round += kCaseStep) {
    FlowJob job;
    job.where = "test";
    std::int64_t hosts = 0;
    job.graph = random_graph(random, hosts);
    job.settings.congestion_control = kRoce[random() % kRoce.size()];
    use_usual_settings(job.settings, job.graph);
    job.settings.payload = between(1000, 4096);
    job.settings.seed = random() + 1;
    if (random() % 3 == 0) job.settings.recovery = LossRecovery::selective;
    const bool together = random() % 2 == 0;
    for (std::int64_t flows = between(1, 8); flows > 0; --flows) {
      const std::int64_t from = between(0, hosts - 1), to = (from + between(1, hosts - 1)) % hosts;
      job.flows.push_back({from, to, between(100'000, 10'000'000), together ? 0 : between(0, 500'000), 3,
                           static_cast<int>(100 + flows)});
    }
    SCOPED_TRACE(testing::Message() << "round " << round << ", "
                                    << row_of(job.settings.congestion_control).name);
    const Both both = both_ways(job);
    expect_conserved(both);
    if (both.worst() > kForwardBound) {
      // Who wins where flows share a link can hang on a single packet: then it is as far off as
      // chance takes it.
      ++chance;
      const std::vector<Range> ranges = by_chance(job, random);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const auto took = static_cast<double>(both.forwarded.flows[i].fct_ns);
        if (both.error(i) <= kForwardBound) continue;
        EXPECT_GE(took, ranges[i].shortest * (1 - kForwardBound)) << "flow " << i;
        EXPECT_LE(took, ranges[i].longest * (1 + kForwardBound)) << "flow " << i;
      }
    }
    counted += both.forwarded.forwarded->frames;
    frames += both.forwarded.frames;
  }
  EXPECT_GT(counted, frames / 20);
  EXPECT_LE(chance, 3);
}

// Flows that have their links to themselves send a packet every so often, for ever: nothing is left
// to chance.
TEST(FastForward, IsExactWhereNothingChanges) {
  for (const CongestionControl control : kRoce) {
    SCOPED_TRACE(row_of(control).name);
    FlowJob job = usual_star(6, control);
    // Alone; there and back, so that acknowledgements go between the data.
    job.flows = {{0, 1, 40'000'000}, {2, 3, 30'000'000}, {3, 2, 30'000'000}};
    const Both both = both_ways(job);
    expect_conserved(both);
    // HPCC's rate never stands: it goes to and fro about its target.
    const bool stands = control != CongestionControl::hpcc;
    EXPECT_LE(both.worst(), stands ? 1e-4 : 2e-3);
    EXPECT_GT(both.forwarded.forwarded->frames, both.forwarded.frames / (stands ? 10 : 3) * (stands ? 9 : 1));
    EXPECT_LT(both.forwarded.events, both.played.events / (stands ? 8 : 1));
  }
}

// What links carried, with the time that they took for it, is that of all packets, and no link carries more
// than it can.
TEST(FastForward, FillsLinksOverTime) {
  FlowJob job = usual_star(2, CongestionControl::dcqcn);
  job.flows = {{0, 1, 50'000'000}};
  job.sampled = true;
  const Both both = both_ways(job);
  const double packet_s = (4096 + 36) * 8e-11;  // of a packet at 100 Gb/s
  const auto busy_s = [&](const PacketOutcome& outcome) {
    double sum = 0;
    for (const LinkSamples& link : outcome.samples.links) {
      for (std::size_t i = 0; i < link.utilisation.size(); ++i) {
        // The last interval ends with the simulation.
        const double length = outcome.samples.interval_s,
                     here = std::min(length, static_cast<double>(outcome.end_ns) * 1e-9 -
                                                 static_cast<double>(i) * length);
        EXPECT_LE(link.utilisation[i] * here, here + packet_s / 50);
        sum += link.utilisation[i] * here;
      }
    }
    return sum;
  };
  EXPECT_NEAR(busy_s(both.forwarded), busy_s(both.played), packet_s);
}

// A flow that begins while others stand still finds them as they would be.
TEST(FastForward, GoesOnWhenAFlowBegins) {
  FlowJob job = usual_star(4, CongestionControl::dcqcn);
  job.flows = {{0, 1, 40'000'000}, {2, 3, 40'000'000}, {2, 1, 1'000'000, 1'000'000}};
  const Both both = both_ways(job);
  expect_conserved(both);
  EXPECT_LE(both.worst(), kForwardBound);
  EXPECT_GT(both.forwarded.forwarded->stretches, 0);
}

// All ports of a switch share its buffer: whoever stands still there is played when others fill it.
TEST(FastForward, GoesOnWhenTheBufferFills) {
  FlowJob job = usual_star(8, CongestionControl::dcqcn);
  job.settings.buffer = 1'000'000;
  job.flows = {{0, 1, 40'000'000}};
  const std::int64_t undisturbed = both_ways(job).forwarded.forwarded->stretches;
  for (std::int64_t host = 2; host < 7; ++host) job.flows.push_back({host, 7, 300'000, 1'000'000});
  const Both both = both_ways(job);
  expect_conserved(both);
  EXPECT_GT(both.forwarded.pauses, 0);
  EXPECT_LE(both.error(0), 1e-4);
  EXPECT_GT(both.forwarded.forwarded->stretches, undisturbed);
}

// A simulation that stops early has counted up to there.
TEST(FastForward, StopsInTime) {
  FlowJob job = usual_star(2, CongestionControl::dcqcn);
  job.settings.stop_ns = 1'000'000;
  job.flows = {{0, 1, 100'000'000}};
  const Both both = both_ways(job);
  EXPECT_LT(both.forwarded.flows[0].fct_ns, 0);
  EXPECT_NEAR(
      static_cast<double>(both.forwarded.data.delivered) / static_cast<double>(both.played.data.delivered), 1,
      1e-3);
  EXPECT_EQ(both.forwarded.data.sent,
            both.forwarded.data.delivered + both.forwarded.data.dropped + both.forwarded.data.in_flight);
}

TEST(FastForward, SaysWhatItDoesNotKnow) {
  for (const CongestionControl control : {CongestionControl::tcp_cubic, CongestionControl::ndp}) {
    FlowJob job = usual_star(2, control);
    job.flows = {{0, 1, 10'000'000}};
    job.fast_forward = true;
    EXPECT_FALSE(simulate_packets(job).forwarded);
    const TrafficResult result = packet_traffic(job);
    EXPECT_EQ(std::get<FlowsResult>(result.outcome).fast_forward->unknown,
              std::string(row_of(control).title) + " is played packet by packet");
    EXPECT_TRUE(result.notes.empty());
  }
}

}  // namespace
}  // namespace armilla
