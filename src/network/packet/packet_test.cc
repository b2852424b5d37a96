#include "network/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "network/packet/packet_testing.h"
#include "network/packet/simulation.h"

namespace armilla {
namespace {

// Every flow of every row to the nanosecond, every count of PFC frames and packets.
TEST(Packet, AnswersAsNs3) {
  for (const Oracle& oracle : oracles("network/ns3.csv")) {
    int seen = 0;
    for (const OracleRow& row : read_oracle(oracle.path)) {
      if (seen++ % kCaseStep != 0) continue;
      SCOPED_TRACE(row.at("case") + " " + row.at("cc"));
      const FlowJob job = ns3_job(row);
      const PacketOutcome outcome = simulate_packets(job);
      std::int64_t last = 0, shortest = INT64_MAX, sum = 0;
      for (const PacketFlowOutcome& flow : outcome.flows) {
        last = std::max(last, flow.fct_ns);
        shortest = std::min(shortest, flow.fct_ns);
        sum += flow.fct_ns;
      }
      EXPECT_EQ(last, std::stoll(row.at("fct_max_ns")));
      EXPECT_EQ(shortest, std::stoll(row.at("fct_min_ns")));
      EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(job.flows.size()),
                  std::stod(row.at("fct_mean_ns")), 1e-3);
      EXPECT_EQ(outcome.pauses, std::stoll(row.at("pfc_pause_rx")));
      EXPECT_EQ(outcome.resumes, std::stoll(row.at("pfc_resume_rx")));
      EXPECT_EQ(outcome.frames, std::stoll(row.at("tx_packets")));
      EXPECT_EQ(outcome.longest_round_trip_ns, std::stoll(row.at("maxRtt_ns")));
      EXPECT_EQ(outcome.window_bytes, std::stoll(row.at("maxBdp_bytes")));
      if (row.at("n_flows") == "1") {
        EXPECT_EQ(outcome.flows[0].alone_ns, std::stoll(row.at("ideal_standalone_fct_ns")));
      }
      if (const auto times = row.find("fcts_ns"); times != row.end() && !times->second.empty()) {
        std::map<std::string, std::string> expected;
        for (const std::string& one : split(times->second, ';')) {
          expected[one.substr(0, one.find(':'))] = one.substr(one.find(':') + 1);
        }
        ASSERT_EQ(expected.size(), job.flows.size());
        for (std::size_t i = 0; i < job.flows.size(); ++i) {
          const std::string pair =
              std::to_string(job.flows[i].source) + ">" + std::to_string(job.flows[i].destination);
          EXPECT_EQ(std::to_string(outcome.flows[i].fct_ns), expected[pair]) << pair;
        }
      }
    }
  }
}

// The time of a lone flow by the formula of the peers' specification.
TEST(Packet, TakesTheFormulasTimeForALoneFlow) {
  FlowJob job = star_job(2);
  job.flows = {{0, 1, 1'000'000}};
  EXPECT_EQ(simulate_packets(job).flows[0].fct_ns, 1000 * 83 + 83 + 4000 + 2 * 4);
}

// Packets one after the other over first-in first-out queues, worked out by sorting: hosts that send at line
// rate and only send or only receive, so that data and acknowledgements never share a queue.
std::vector<std::int64_t> obvious_completions(const FlowJob& job) {
  struct Sent {
    std::int64_t at = 0;  // the switch, or the host that it goes to
    std::size_t flow = 0;
    std::int64_t bytes = 0;
  };
  const std::int64_t center = job.graph.nodes() - 1;
  const auto link = [&](std::int64_t host) { return job.graph.links[static_cast<std::size_t>(host)]; };
  const auto time = [](std::int64_t bytes, const GraphLink& over) {
    return (bytes * 16'000'000'000 + over.bits_per_second - 1) / (2 * over.bits_per_second);
  };
  // What leaves the switch towards each host, given what arrives there.
  const auto through_switch = [&](std::vector<Sent> arriving, bool back) {
    std::stable_sort(arriving.begin(), arriving.end(),
                     [](const Sent& a, const Sent& b) { return a.at < b.at; });
    std::vector<std::int64_t> idle_at(static_cast<std::size_t>(center));
    for (Sent& packet : arriving) {
      const TrafficFlow& flow = job.flows[packet.flow];
      const std::int64_t host = back ? flow.source : flow.destination;
      std::int64_t& idle = idle_at[static_cast<std::size_t>(host)];
      idle = std::max(idle, packet.at) + time(packet.bytes, link(host));
      packet.at = idle + link(host).delay_ns;
    }
    return arriving;
  };
  std::vector<Sent> data;
  for (std::size_t i = 0; i < job.flows.size(); ++i) {
    const TrafficFlow& flow = job.flows[i];
    std::int64_t now = flow.start_ns;
    for (std::int64_t left = flow.bytes; left > 0; left -= job.settings.payload) {
      const std::int64_t bytes = std::min(left, job.settings.payload) + 36;
      now += time(bytes, link(flow.source));
      data.push_back({now + link(flow.source).delay_ns, i, bytes});
    }
  }
  std::vector<Sent> answers = through_switch(data, false);
  std::stable_sort(answers.begin(), answers.end(), [](const Sent& a, const Sent& b) { return a.at < b.at; });
  std::vector<std::int64_t> idle_at(static_cast<std::size_t>(center));
  for (Sent& packet : answers) {
    const GraphLink over = link(job.flows[packet.flow].destination);
    std::int64_t& idle = idle_at[static_cast<std::size_t>(job.flows[packet.flow].destination)];
    packet.bytes = 48;
    idle = std::max(idle, packet.at) + time(48, over);
    packet.at = idle + over.delay_ns;
  }
  std::vector<std::int64_t> completions(job.flows.size());
  for (const Sent& packet : through_switch(answers, true)) {
    completions[packet.flow] =
        std::max(completions[packet.flow], packet.at - job.flows[packet.flow].start_ns);
  }
  return completions;
}

TEST(Packet, AgreesWithAnObviousModelOfQueues) {
  std::mt19937 random(7);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 50; ++round) {
    FlowJob job = star_job(8);
    job.settings.ecn = false;
    job.settings.buffer = std::int64_t{1} << 31;
    job.settings.payload = between(200, 4000);
    for (GraphLink& link : job.graph.links) {
      // Odd rates and delays, so that few packets arrive at one moment.
      link.bits_per_second = between(10, 100) * 997'000'003;
      link.delay_ns = between(1, 5000);
    }
    for (std::int64_t source = 0; source < 4; ++source) {
      job.flows.push_back({source, between(4, 7), between(1, 300'000), between(0, 20'000)});
    }
    const std::vector<std::int64_t> expected = obvious_completions(job);
    const PacketOutcome outcome = simulate_packets(job);
    for (std::size_t i = 0; i < job.flows.size(); ++i) {
      EXPECT_EQ(outcome.flows[i].fct_ns, expected[i]) << "round " << round << " flow " << i;
    }
  }
}

FlowJob random_job(std::mt19937& random) {
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  FlowJob job;
  job.where = "random";
  const std::int64_t hosts = between(2, 8), switches = between(1, 4);
  job.graph.is_switch.assign(static_cast<std::size_t>(hosts), false);
  job.graph.is_switch.resize(static_cast<std::size_t>(hosts + switches), true);
  const auto join = [&](std::int64_t a, std::int64_t b) {
    job.graph.links.push_back(
        {a, b, between(1, 4) * 25'000'000'000, between(0, 3000), between(0, 2) == 0 ? 0.02 : 0});
  };
  // A tree of switches: no cycle for pauses to lock up in.
  for (std::int64_t i = 1; i < switches; ++i) join(hosts + between(0, i - 1), hosts + i);
  for (std::int64_t host = 0; host < hosts; ++host) join(host, hosts + between(0, switches - 1));
  for (std::int64_t i = between(1, 10); i > 0; --i) {
    const std::int64_t source = between(0, hosts - 1);
    const std::int64_t destination = (source + between(1, hosts - 1)) % hosts;
    job.flows.push_back(
        {source, destination, between(1, 200'000), between(0, 50'000), static_cast<int>(between(1, 7))});
  }
  PacketSettings& settings = job.settings;
  settings.congestion_control = static_cast<CongestionControl>(between(0, 10));
  settings.recovery = static_cast<LossRecovery>(between(0, 2));
  settings.window = settings.congestion_control == CongestionControl::hpcc || between(0, 1) == 0;
  settings.window_follows_rate = between(0, 1) == 0;
  settings.rate_per_hop = between(0, 1) == 0;
  settings.acks_first = between(0, 1) == 0;
  settings.min_rate = 1e8;
  settings.buffer = 1 << 20;
  settings.hpcc_as_htsim = between(0, 1) == 0;
  settings.xoff = between(0, 1) * between(8'000, 100'000);
  settings.xon = settings.xoff / 2;
  settings.paths = between(1, 20);
  settings.pull_window = between(0, 30);
  settings.trim_queue = between(1, 20);
  for (std::int64_t rate = 1; rate <= 4; ++rate)
    settings.ecn_of_rate[rate * 25'000'000'000] = {20'000, 200'000, 0.2};
  return job;
}

// Every byte sent is delivered, dropped and counted, or on its way, whenever one looks; the three are
// counted apart.
TEST(Packet, ConservesBytes) {
  std::mt19937 random(1);
  std::int64_t lost = 0, in_flight = 0, trimmed = 0;
  for (int round = 0; round < 300; ++round) {
    FlowJob job = random_job(random);
    if (round % 2 == 1)
      job.settings.stop_ns = std::uniform_int_distribution<std::int64_t>(0, 100'000)(random);
    const PacketOutcome outcome = simulate_packets(job);
    for (const PacketBytes& bytes : {outcome.data, outcome.acknowledgements}) {
      ASSERT_EQ(bytes.sent, bytes.delivered + bytes.dropped + bytes.in_flight) << "round " << round;
      in_flight += bytes.in_flight;
    }
    lost += outcome.lost_packets;
    trimmed += outcome.trimmed_packets;
    if (round % 2 == 1) continue;
    EXPECT_EQ(outcome.data.in_flight, 0);
    for (const PacketFlowOutcome& flow : outcome.flows) {
      EXPECT_GE(flow.fct_ns, 0) << "round " << round
                                << ": losses are made good, by timeouts if by nothing else";
    }
  }
  EXPECT_GT(lost, 100);
  EXPECT_GT(trimmed, 100);
  EXPECT_GT(in_flight, 0);
}

// Whether all flows are known beforehand or come one by one.
TEST(Packet, FlowsThatComeFareAsThoseKnownBeforehand) {
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    FlowJob job = random_job(random);
    std::ranges::sort(job.flows, {}, &TrafficFlow::start_ns);
    for (std::size_t i = 0; i < job.flows.size(); ++i) job.flows[i].start_ns += static_cast<std::int64_t>(i);
    const PacketOutcome known = simulate_packets(job);

    const std::vector<TrafficFlow> flows = std::exchange(job.flows, {});
    job.flows_come = true;
    packets::Simulation simulation(job);
    std::vector<std::int64_t> finished(flows.size());
    const auto play_until = [&](std::int64_t end_ns) {
      while (simulation.play_until(end_ns)) {
        for (const std::uint64_t flow : simulation.take_arrived()) finished[flow] = simulation.now_ns();
      }
    };
    for (std::size_t i = 0; i < flows.size(); ++i) {
      play_until(flows[i].start_ns - 1);
      simulation.begin(flows[i], i, flows[i].start_ns);
    }
    play_until(INT64_MAX);
    for (std::size_t i = 0; i < flows.size(); ++i)
      EXPECT_EQ(finished[i] - flows[i].start_ns, known.flows[i].fct_ns) << "round " << round << " flow " << i;
  }
}

// Of ten thousand flows one after the other, there and back, next to nothing is remembered, and every one
// takes as long.
TEST(Packet, ForgetsFlowsThatAreOver) {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective}) {
    FlowJob job = star_job(3);
    job.settings.congestion_control = CongestionControl::dcqcn;
    job.settings.recovery = recovery;
    job.flows_come = true;
    packets::Simulation simulation(job);
    std::int64_t first_ns = 0;
    for (std::uint64_t flow = 0; flow < 10'000; ++flow) {
      const std::int64_t start_ns = simulation.now_ns() + 50;
      const auto from = static_cast<std::int64_t>(flow % 3);
      simulation.begin({from, (from + 1) % 3, 5000}, flow, start_ns);
      ASSERT_TRUE(simulation.play_until(INT64_MAX));
      ASSERT_EQ(simulation.take_arrived(), std::vector<std::uint64_t>{flow});
      const std::int64_t took_ns = simulation.now_ns() - start_ns;
      if (flow == 0) first_ns = took_ns;
      ASSERT_NEAR(static_cast<double>(took_ns), static_cast<double>(first_ns), 3) << flow;
      ASSERT_LE(simulation.flows(), 6U);
    }
  }
}

TEST(Packet, LosesNothingUnderPriorityFlowControl) {
  FlowJob job = star_job(17);
  job.settings.buffer = 1 << 20;
  for (std::int64_t host = 1; host <= 16; ++host) job.flows.push_back({host, 0, 200'000});
  const PacketOutcome outcome = simulate_packets(job);
  EXPECT_GT(outcome.pauses, 0);
  EXPECT_EQ(outcome.pauses, outcome.resumes);
  EXPECT_EQ(outcome.dropped_packets, 0);
  EXPECT_EQ(outcome.repeated_packets, 0);
  EXPECT_LE(outcome.longest_queue, job.settings.buffer);
}

TEST(Packet, IsReproducibleBySeed) {
  FlowJob job = star_job(5);
  job.settings.congestion_control = CongestionControl::dcqcn;
  for (std::int64_t host = 1; host <= 4; ++host) job.flows.push_back({host, 0, 1'000'000});
  EXPECT_EQ(completions_ns(job, 1), completions_ns(job, 1));
  EXPECT_EQ(completions_ns(job, 2), completions_ns(job, 2));
  EXPECT_NE(completions_ns(job, 1), completions_ns(job, 2));
}

// IRN's point: without PFC's help, selective repeat sends again only what was lost.
TEST(Packet, RepeatsOnlyWhatWasLost) {
  FlowJob job = star_job(2);
  for (GraphLink& link : job.graph.links) link.loss = 0.001;
  job.flows = {{0, 1, 10'000'000}};
  const PacketOutcome back = simulate_packets(job);
  job.settings.recovery = LossRecovery::selective;
  const PacketOutcome selective = simulate_packets(job);
  EXPECT_GT(selective.lost_packets, 10);
  EXPECT_GE(selective.flows[0].fct_ns, 0);
  EXPECT_LE(selective.repeated_packets, 3 * selective.lost_packets);
  EXPECT_GT(back.repeated_packets, 10 * selective.repeated_packets);
}

// Two flows over links that are alike lose the same packets only where all is to be as in ns-3.
TEST(Packet, DrawsTheLossesOfEachLinkApart) {
  FlowJob job = star_job(4);
  for (GraphLink& link : job.graph.links) link.loss = 0.01;
  job.flows = {{0, 2, 2'000'000}, {1, 3, 2'000'000}};
  const std::vector<std::int64_t> as_ns3 = completions_ns(job, 1);
  EXPECT_EQ(as_ns3[0], as_ns3[1]);
  job.usual_settings = true;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const std::vector<std::int64_t> times = completions_ns(job, seed);
    EXPECT_NE(times[0], times[1]) << seed;
    EXPECT_EQ(completions_ns(job, seed), times);
  }
}

TEST(Packet, TimesOutWhereNs3Hangs) {
  FlowJob job = star_job(2);
  job.graph.links[0].loss = 0.3;
  job.flows = {{0, 1, 2500}};
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    job.settings.seed = seed;
    job.settings.retransmit_timeout_ns = 100'000;
    EXPECT_GE(simulate_packets(job).flows[0].fct_ns, 0) << seed;
  }
}

TEST(Packet, GoesAroundAFailedLink) {
  FlowJob job;
  job.where = "test";
  job.graph.is_switch = {false, false, true, true, true, true};
  for (const auto& [a, b] : {std::pair(0, 2), {1, 3}, {2, 4}, {2, 5}, {3, 4}, {3, 5}}) {
    job.graph.links.push_back({a, b, 100'000'000'000, 1000, 0});
  }
  job.settings.ecn = false;
  job.settings.link_down_ns = 50'000;
  job.settings.link_down_a = 2;
  job.settings.link_down_b = 4;
  for (int flow = 0; flow < 8; ++flow) job.flows.push_back({0, 1, 200'000});
  const PacketOutcome outcome = simulate_packets(job);
  for (const PacketFlowOutcome& flow : outcome.flows) EXPECT_GE(flow.fct_ns, 0);
  EXPECT_GT(outcome.lost_packets, 0);
  EXPECT_EQ(outcome.data.sent, outcome.data.delivered + outcome.data.dropped + outcome.data.in_flight);
  job.settings.link_down_a = 0;
  job.settings.link_down_b = 2;
  EXPECT_NE(
      error_of([&] { simulate_packets(job); }).find("no way leads from host 0 to host 1 after the link"),
      std::string::npos);
}

TEST(Packet, SharesALinkFairlyUnderSwift) {
  FlowJob job = star_job(5);
  job.settings.congestion_control = CongestionControl::swift;
  job.settings.rate_step = 1e9;
  for (std::int64_t host = 1; host <= 4; ++host) job.flows.push_back({host, 0, 5'000'000});
  const PacketOutcome outcome = simulate_packets(job);
  const auto [least, most] = std::minmax_element(outcome.flows.begin(), outcome.flows.end(),
                                                 [](auto& a, auto& b) { return a.fct_ns < b.fct_ns; });
  EXPECT_LT(static_cast<double>(most->fct_ns), 1.3 * 20'000'000 * 8 / 100 * 1.044);
  EXPECT_LT(static_cast<double>(most->fct_ns), 1.5 * static_cast<double>(least->fct_ns));
  EXPECT_LT(outcome.longest_queue, 1'000'000);
  EXPECT_EQ(outcome.pauses, 0);
}

TEST(Packet, ExplainsWhatItRefuses) {
  const auto refusal = [](auto change) {
    FlowJob job = star_job(3);
    job.flows = {{0, 1, 1000}};
    change(job);
    return error_of([&] { simulate_packets(job); });
  };
  EXPECT_EQ(
      refusal([](FlowJob& job) { job.graph.links.pop_back(), job.flows[0].destination = 2; }),
      "test: no way leads from host 0 to host 2\n  hint: hosts do not forward: every way goes over switches");
  EXPECT_EQ(
      refusal([](FlowJob& job) { job.settings.buffer = 100'000; }),
      "test: switch 3 needs 124788 bytes for the reserve and the headroom of its 3 ports, and its buffer has "
      "100000\n  hint: give the switches larger buffers (BUFFER_SIZE in MB, or packet:buffer=)");
  EXPECT_EQ(refusal([](FlowJob& job) { job.flows[0].bytes = 5'000'000'000'000; }),
            "test: the flows are 5e+09 packets, which would take about 93 min (fewer than 1e+09 are "
            "simulated)\n  hint: "
            "--network flow takes a time that does not depend on the bytes; a larger PACKET_PAYLOAD_SIZE "
            "makes fewer "
            "packets");
}

// When messages arrive does not depend on how many are posted ahead, though what has arrived is forgotten.
TEST(Packet, TellsOfMessagesPostedAhead) {
  constexpr std::uint64_t kMessages = 200;
  const auto begin_ns = [](std::uint64_t message) { return static_cast<std::int64_t>(message) * 4000; };
  const auto arrivals = [&](std::uint64_t ahead, std::uint64_t seed) {
    FlowJob job = star_job(2);
    job.graph = star_graph(2, 100'000'000'000, 1000, 0.005);
    job.settings.seed = seed;
    packets::Simulation simulation(job);
    const std::vector<std::uint32_t> way = {0, 3};
    const std::uint32_t connection = simulation.connect({&way, 1});
    std::vector<std::pair<std::uint64_t, std::int64_t>> arrived;
    std::uint64_t posted = 0;
    while (arrived.size() < kMessages) {
      const std::int64_t until =
          posted < kMessages ? begin_ns(posted - std::min(posted, ahead)) : INT64_MAX - 1;
      if (simulation.play_until(until)) {
        for (const std::uint64_t message : simulation.take_arrived())
          arrived.emplace_back(message, simulation.now_ns());
      } else if (posted < kMessages) {
        const auto bytes = static_cast<std::int64_t>(1 + posted * 977 % 5000);
        simulation.post(connection, bytes, posted, begin_ns(posted));
        ++posted;
      } else {
        ADD_FAILURE() << "messages have not arrived";
        break;
      }
    }
    return arrived;
  };
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto expected = arrivals(0, seed);
    for (const std::uint64_t ahead : {1U, 7U, 50U, 200U}) EXPECT_EQ(arrivals(ahead, seed), expected) << ahead;
  }
}

// A ring of switches whose flows all go two links clockwise: every switch waits for the next.
TEST(Packet, NamesTheCycleOfADeadlock) {
  FlowJob job;
  job.where = "ring";
  job.graph.is_switch = {false, false, false, false, false, true, true, true, true, true};
  for (std::int64_t i = 0; i < 5; ++i) {
    job.graph.links.push_back({i, 5 + i, 100'000'000'000, 1000, 0});
    job.flows.push_back({i, (i + 2) % 5, 20'000'000});
  }
  for (std::int64_t i = 0; i < 5; ++i)
    job.graph.links.push_back({5 + i, 5 + (i + 1) % 5, 100'000'000'000, 1000, 0});
  job.settings.buffer = 1 << 20;
  EXPECT_NE(error_of([&] { simulate_packets(job); }).find("in the cycle 5 -> 6 -> 7 -> 8 -> 9 -> 5"),
            std::string::npos);
}

// The same beside a flow that never ends: the run is stopped while something moves.
TEST(Packet, NamesTheCycleOfADeadlockInARunThatWasStopped) {
  FlowJob job;
  job.where = "ring";
  job.graph.is_switch = {false, false, false, false, false, true, true, true, true, true};
  for (std::int64_t i = 0; i < 5; ++i) {
    job.graph.links.push_back({i, 5 + i, 100'000'000'000, 1000, 0});
    job.flows.push_back({i, (i + 2) % 5, 20'000'000});
  }
  for (std::int64_t i = 0; i < 5; ++i)
    job.graph.links.push_back({5 + i, 5 + (i + 1) % 5, 100'000'000'000, 1000, 0});
  job.graph.is_switch.insert(job.graph.is_switch.end(), {false, false});
  job.graph.links.push_back({10, 11, 1'000'000'000, 1000, 0});
  job.flows.push_back({10, 11, 100'000'000});
  job.settings.buffer = 1 << 20;
  job.settings.stop_ns = 100'000'000;
  EXPECT_NE(error_of([&] { simulate_packets(job); }).find("in the cycle 5 -> 6 -> 7 -> 8 -> 9 -> 5"),
            std::string::npos);
}

TEST(Packet, SaysWhyFlowsHaveNotFinished) {
  FlowJob job = star_job(2);
  job.flows = {{0, 1, 5000}};
  job.graph.links[0].loss = 0.99;
  EXPECT_EQ(packet_traffic(job).notes,
            std::vector<std::string>{"1 of 1 flow never finished: senders gave up after 7 timeouts in a row; "
                                     "40 packets were lost on links, 0 in full buffers"});
  job.settings.retransmit_timeout_ns = 0;
  EXPECT_EQ(packet_traffic(job).notes,
            std::vector<std::string>{"1 of 1 flow never finished: what they wait for was lost, or does not "
                                     "come, and RETRANSMIT_TIMEOUT is 0"});
  job.graph.links[0].loss = 0;
  job.settings.stop_ns = 1000;
  EXPECT_EQ(packet_traffic(job).notes,
            std::vector<std::string>{"1 of 1 flow had not finished when the run was stopped, at 1.000 us "
                                     "(SIMULATOR_STOP_TIME)"});
}

// What slow-downs are shares of: nothing is faster, and what RoCE sends alone hardly slower.
TEST(Packet, TakesNoLessAloneThanTheLeast) {
  for (const CongestionControl control :
       {CongestionControl::dcqcn, CongestionControl::timely, CongestionControl::hpcc,
        CongestionControl::swift, CongestionControl::tcp_newreno, CongestionControl::ndp,
        CongestionControl::eqds}) {
    for (const std::int64_t bytes : {1, 100, 1000, 1001, 20'000, 1'000'000}) {
      FlowJob job = star_job(3);
      job.settings.congestion_control = control;
      job.flows.push_back({0, 1, bytes, 0});
      const PacketFlowOutcome flow = simulate_packets(job).flows[0];
      SCOPED_TRACE(std::to_string(bytes) + " " + std::to_string(static_cast<int>(control)));
      EXPECT_GE(flow.fct_ns, flow.least_ns);
      if (control == CongestionControl::dcqcn) {
        EXPECT_LT(static_cast<double>(flow.fct_ns), 1.12 * static_cast<double>(flow.least_ns));
      }
    }
  }
}

}  // namespace
}  // namespace armilla
