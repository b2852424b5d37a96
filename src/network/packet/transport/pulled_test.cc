#include <gtest/gtest.h>

#include <algorithm>

#include "network/packet.h"
#include "network/packet/packet_testing.h"

namespace armilla {
namespace {

constexpr CongestionControl kPulledControls[] = {CongestionControl::ndp, CongestionControl::eqds};

FlowJob pulled_job(CongestionControl control, std::int64_t hosts) {
  FlowJob job = star_job(hosts);
  job.settings.congestion_control = control;
  job.settings.ecn = false;
  job.settings.global_window = false;
  job.settings.whole_ns = false;
  job.settings.retransmit_timeout_ns = 1'000'000;
  return job;
}

std::int64_t longest_of(const PacketOutcome& outcome) {
  return std::ranges::max_element(outcome.flows, {}, &PacketFlowOutcome::fct_ns)->fct_ns;
}

// Twice the buffer's worth comes at once: what has no room loses its payload, nothing else is lost or sent
// twice, and the receiver's link is never idle for long.
TEST(Pulled, SendsAgainOnlyWhatWasCut) {
  for (const CongestionControl control : kPulledControls) {
    SCOPED_TRACE(row_of(control).name);
    FlowJob job = pulled_job(control, 33);
    for (std::int64_t host = 1; host <= 32; ++host) job.flows.push_back({host, 0, 300'000});
    const PacketOutcome outcome = simulate_packets(job);
    EXPECT_GT(outcome.trimmed_packets, 100);
    EXPECT_EQ(outcome.repeated_packets, outcome.trimmed_packets);
    EXPECT_EQ(outcome.dropped_packets, 0);
    EXPECT_EQ(outcome.timeouts, 0);
    EXPECT_EQ(outcome.pauses, 0);
    const double least_ns = 32 * 300.0 * 1064 * 8 / 100;
    EXPECT_GT(static_cast<double>(longest_of(outcome)), least_ns);
    EXPECT_LT(static_cast<double>(longest_of(outcome)), 1.15 * least_ns);
    // Room for so much data and as many headers again, twice.
    EXPECT_LE(outcome.longest_queue, 3 * job.settings.trim_queue * (job.settings.payload + 64));
  }
}

// Headers that find no room are dropped, and links lose some of everything: timeouts make that good.
TEST(Pulled, GoesOnAfterHeadersAreLost) {
  for (const CongestionControl control : kPulledControls) {
    SCOPED_TRACE(row_of(control).name);
    FlowJob job = pulled_job(control, 41);
    job.settings.trim_queue = 1;
    for (GraphLink& link : job.graph.links) link.loss = 0.01;
    for (std::int64_t host = 1; host <= 40; ++host) job.flows.push_back({host, 0, 30'000});
    const PacketOutcome outcome = simulate_packets(job);
    EXPECT_GT(outcome.dropped_packets, 0);
    EXPECT_GT(outcome.lost_packets, 0);
    EXPECT_GT(outcome.timeouts, 0);
    for (const PacketFlowOutcome& flow : outcome.flows) EXPECT_GE(flow.fct_ns, 0);
  }
}

// Packets hardly larger than their headers: cut ones need as much room as there is, most are dropped, and
// many timeouts in a row bring nothing. Still every flow gets there.
TEST(Pulled, FinishesTinyPackets) {
  for (const CongestionControl control : kPulledControls) {
    SCOPED_TRACE(row_of(control).name);
    FlowJob job = pulled_job(control, 65);
    job.settings.payload = 64;
    job.settings.trim_queue = 1;
    for (std::int64_t host = 1; host <= 64; ++host) job.flows.push_back({host, 0, 20'000});
    const PacketOutcome outcome = simulate_packets(job);
    EXPECT_GT(outcome.dropped_packets, outcome.data_packets / 4);
    for (const PacketFlowOutcome& flow : outcome.flows) EXPECT_GE(flow.fct_ns, 0);
  }
}

// Links that lose nearly everything: senders give up, and the simulation ends.
TEST(Pulled, GivesUpWhereLinksLoseAll) {
  for (const CongestionControl control : kPulledControls) {
    SCOPED_TRACE(row_of(control).name);
    FlowJob job = pulled_job(control, 2);
    for (GraphLink& link : job.graph.links) link.loss = 0.9999;
    job.flows.push_back({0, 1, 20'000});
    const PacketOutcome outcome = simulate_packets(job);
    EXPECT_LT(outcome.flows.front().fct_ns, 0);
    EXPECT_GT(outcome.timeouts, 5);
  }
}

// Two hosts behind each of two switches, which eight others join by links half as fast as the hosts'. On one
// path a flow takes twice as long as on many, where there is room for both.
TEST(Pulled, TakesAllWays) {
  for (const CongestionControl control : kPulledControls) {
    SCOPED_TRACE(row_of(control).name);
    FlowJob job = pulled_job(control, 2);
    job.graph = {};
    job.graph.is_switch.assign(4, false);
    job.graph.is_switch.resize(14, true);
    const auto join = [&](std::int64_t a, std::int64_t b, std::int64_t gigabits) {
      job.graph.links.push_back({a, b, gigabits * 1'000'000'000, 1000, 0});
    };
    for (std::int64_t host = 0; host < 4; ++host) join(host, 4 + host / 2, 100);
    for (std::int64_t middle = 6; middle < 14; ++middle) {
      join(4, middle, 50);
      join(middle, 5, 50);
    }
    job.flows = {{0, 2, 5'000'000}, {1, 3, 5'000'000}};
    const PacketOutcome all = simulate_packets(job);
    job.settings.paths = 1;
    const PacketOutcome one = simulate_packets(job);
    EXPECT_LT(longest_of(all), 1.15 * 5'000 * 1064 * 8 / 100 + 20'000);
    EXPECT_GT(longest_of(one), 1.9 * 5'000 * 1064 * 8 / 100);
  }
}

TEST(Pulled, IsReproducibleBySeed) {
  for (const CongestionControl control : kPulledControls) {
    FlowJob job = pulled_job(control, 9);
    job.settings.trim_queue = 8;
    for (std::int64_t host = 1; host <= 8; ++host) job.flows.push_back({host, 0, 200'000});
    EXPECT_EQ(completions_ns(job, 1), completions_ns(job, 1));
    EXPECT_NE(completions_ns(job, 1), completions_ns(job, 2)) << row_of(control).name;
  }
}

}  // namespace
}  // namespace armilla
