// The networks beside each other: equal where nothing is in the way, and beside the simulations of
// flows alone.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "base/error_testing.h"
#include "network/flow.h"
#include "network/network.h"
#include "network/network_testing.h"
#include "network/packet.h"
#include "network/packet/packet_testing.h"

namespace armilla {
namespace {

// Headers of 36 bytes for every 4096, and a packet more for each link but the first.
double packets_alone_ns(std::int64_t bytes, std::int64_t hops, double latency_ns) {
  const std::int64_t full = (std::max<std::int64_t>(bytes, 1) - 1) / 4096;
  const double last = static_cast<double>(std::max<std::int64_t>(bytes, 1) - 4096 * full + 36);
  const double largest = full > 0 ? 4132 : last;
  return latency_ns * static_cast<double>(hops) +
         (static_cast<double>(full) * 4132 + last + static_cast<double>(hops - 1) * largest) / 12.5;
}

TEST(NetworksAgree, OnALoneMessage) {
  for (const DimensionKind kind :
       {DimensionKind::ring, DimensionKind::switched, DimensionKind::fully_connected}) {
    const Machine machine = machine_with(kind, 4);
    const std::int64_t hops = kind == DimensionKind::switched ? 2 : 1;
    for (const std::int64_t bytes : {0, 1, 4096, 5000, 1'000'000}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(bytes));
      const std::vector<Sent> sent = {{{1, 2, Bytes(bytes)}, nanoseconds(50)}};
      const Time alone = play(machine, "analytical", sent).arrivals[0];
      EXPECT_EQ(play(machine, "analytical-unshared", sent).arrivals[0], alone);
      EXPECT_EQ(play(machine, "flow", sent).arrivals[0], alone);
      // Flits are whole, latencies whole cycles of 20.48 ns, and there are two routers and interfaces more.
      const Time flits = play(machine, "flit", sent).arrivals[0];
      EXPECT_GT(flits, alone);
      EXPECT_LT(flits, alone + nanoseconds(7 * 21));
      const double packets = static_cast<double>(play(machine, "packet", sent).arrivals[0].value) / 1000 - 50;
      const double expected = packets_alone_ns(bytes, hops, 700);
      EXPECT_NEAR(packets, expected, 2);
      EXPECT_NEAR(packets / (static_cast<double>(alone.value) / 1000 - 50), 1, bytes < 100'000 ? 0.4 : 0.02);
    }
  }
}

// Every device to the next, at once: no two share a link.
TEST(NetworksAgree, OnAStepOfARing) {
  for (const DimensionKind kind : {DimensionKind::ring, DimensionKind::switched}) {
    const Machine machine = machine_with(kind, 8);
    std::vector<Sent> sent;
    for (std::int32_t rank = 0; rank < 8; ++rank)
      sent.push_back({{rank, (rank + 1) % 8, Bytes(1'000'000)}, Time(0)});
    const Seen analytical = play(machine, "analytical", sent), flow = play(machine, "flow", sent),
               packet = play(machine, "packet", sent);
    EXPECT_EQ(flow.arrivals, analytical.arrivals);
    EXPECT_EQ(sum_of_bytes(flow.links), sum_of_bytes(analytical.links));
    for (const char* router : {"pipelined", "garnet"}) {
      const std::string network = std::string("flit:router=") + router;
      const Seen flit = play(machine, network, sent);
      EXPECT_EQ(flit.arrivals, std::vector<Time>(8, play(machine, network, {sent.front()}).arrivals[0]));
      EXPECT_EQ(sum_of_bytes(flit.links), sum_of_bytes(analytical.links));
    }
    for (const Time arrival : packet.arrivals) {
      // At a switch the acknowledgements, 48 bytes for every 4132 of data, share the links with what
      // others send.
      const bool is_switch = kind == DimensionKind::switched;
      const double alone = packets_alone_ns(1'000'000, is_switch ? 2 : 1, 700);
      EXPECT_NEAR(static_cast<double>(arrival.value) / 1000, is_switch ? alone * (1 + 48.0 / 4132) : alone,
                  is_switch ? 100 : 2);
    }
  }
}

// Everything of every message goes over every link of its way, with headers and acknowledgements.
TEST(NetworksAgree, NoByteIsLostOrMadeUp) {
  const Machine machine = machine_with(DimensionKind::switched, 6);
  std::mt19937 random(3);
  const auto below = [&](std::int32_t end) {
    return std::uniform_int_distribution<std::int32_t>(0, end - 1)(random);
  };
  std::vector<Sent> sent;
  std::int64_t bytes = 0, packets = 0;
  for (int i = 0; i < 60; ++i) {
    const std::int32_t from = below(6), to = (from + 1 + below(5)) % 6;
    const Bytes size(below(200'000));
    sent.push_back({{from, to, size}, nanoseconds(below(100'000))});
    bytes += size.value;
    packets += (std::max<std::int64_t>(size.value, 1) + 4095) / 4096;
  }
  const std::int64_t zero =
      std::ranges::count(sent, Bytes(0), [](const Sent& one) { return one.message.bytes; });
  EXPECT_EQ(sum_of_bytes(play(machine, "analytical", sent).links), 2 * bytes);
  EXPECT_EQ(sum_of_bytes(play(machine, "flow", sent).links), 2 * bytes);
  EXPECT_EQ(sum_of_bytes(play(machine, "flit", sent).links), 2 * bytes);
  // A run ends when the last message is there, and the last acknowledgements are still under way.
  const std::int64_t sum = sum_of_bytes(play(machine, "packet:cc=none,buffer=1GB", sent).links);
  const std::int64_t all = 2 * (bytes + zero + packets * (36 + 48));
  EXPECT_LE(sum, all);
  EXPECT_GE(sum, all - 12 * 48);
}

// Messages at random on a star, no two alike: what the simulation of flows alone says.
TEST(NetworksAgree, OnFlowsAlone) {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 20; ++round) {
    const bool bipartite = round % 2 == 1;
    FlowJob job = star_job(6);
    job.settings.ecn = false;
    std::vector<Sent> sent;
    for (std::int64_t from = 0; from < 6; ++from) {
      for (std::int64_t to = 0; to < 6; ++to) {
        if (from == to || (bipartite && (from > 2 || to < 3)) || below(bipartite ? 3 : 2) == 0) continue;
        job.flows.push_back({from, to, 1 + below(1'000'000), below(50'000)});
        const TrafficFlow& flow = job.flows.back();
        sent.push_back({{static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), Bytes(flow.bytes)},
                        nanoseconds(flow.start_ns)});
      }
    }
    const FlowSharingOutcome flows = share_flows(job);
    const Seen flow = play(star_machine(6), "flow", sent);
    for (std::size_t i = 0; i < sent.size(); ++i)
      EXPECT_NEAR(static_cast<double>((flow.arrivals[i] - sent[i].at).value),
                  static_cast<double>(flows.fct_ps[i]), 20)
          << i;
    // A flow is done with its last acknowledgement, which takes two links more, and meets data unless hosts
    // only send or only receive.
    if (!bipartite) continue;
    const PacketOutcome packets = simulate_packets(job);
    const Seen packet = play(star_machine(6), "packet:cc=none,payload=1000B,buffer=32MiB", sent);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const double alone = static_cast<double>(packets.flows[i].fct_ns);
      const double here = static_cast<double>((packet.arrivals[i] - sent[i].at).value) / 1000 + 2008;
      EXPECT_NEAR(here / alone, 1, 0.01) << i;
    }
  }
}

// Four to one: the last arrives when the one link has carried all.
TEST(NetworksAgree, OnWhatAnIncastTakesAtLeast) {
  const Machine machine = star_machine(5);
  std::vector<Sent> sent;
  for (std::int32_t from = 1; from < 5; ++from) sent.push_back({{from, 0, Bytes(2'000'000)}, Time(0)});
  const double least_us = 4 * 2e6 / 12.5e9 * 1e6 + 2;
  const auto last_us = [&](const std::string& network) {
    const Seen seen = play(machine, network, sent);
    return in_microseconds(*std::ranges::max_element(seen.arrivals));
  };
  EXPECT_NEAR(last_us("analytical"), least_us, 0.01);
  EXPECT_NEAR(last_us("flow"), least_us, 0.01);
  // Garnet's packets hold a virtual channel for a round trip after their last flit.
  EXPECT_GT(last_us("flit"), least_us);
  EXPECT_LT(last_us("flit"), 1.001 * least_us);
  EXPECT_GT(last_us("flit:router=garnet"), least_us);
  EXPECT_LT(last_us("flit:router=garnet"), 1.15 * least_us);
  for (const char* control : {"none", "dcqcn", "hpcc", "timely", "dctcp", "swift", "tcp-newreno", "tcp-cubic",
                              "tcp-dctcp", "ndp", "eqds"}) {
    const double packet = last_us(std::string("packet:cc=") + control);
    EXPECT_GT(packet, least_us) << control;
    EXPECT_LT(packet, least_us * (std::string_view(control) == "timely" ? 4 : 2)) << control;
  }
}

// The same settings for flows alone: to the nanosecond, with what the last acknowledgement takes.
TEST(NetworksAgree, OnAnIncastUnderCongestionControl) {
  struct Control {
    const char* name;
    CongestionControl control;
    double step, leap;
  };
  for (const Control& one : {Control{"none", CongestionControl::none, 20e6, 200e6},
                             Control{"dcqcn", CongestionControl::dcqcn, 20e6, 200e6},
                             Control{"hpcc", CongestionControl::hpcc, 40e6, 5e7},
                             Control{"timely", CongestionControl::timely, 100e6, 500e6},
                             Control{"dctcp", CongestionControl::dctcp, 20e6, 200e6},
                             Control{"swift", CongestionControl::swift, 100e6, 500e6}}) {
    FlowJob job = star_job(9);
    job.usual_settings = true;
    PacketSettings& settings = job.settings;
    settings.congestion_control = one.control;
    settings.payload = 4096;
    settings.window = settings.window_follows_rate =
        one.control == CongestionControl::hpcc || one.control == CongestionControl::dctcp;
    settings.global_window = false;
    settings.alpha_interval_us = 1;
    settings.increase_interval_us = 300;
    settings.gain = one.control == CongestionControl::dctcp ? 1.0 / 16 : 1.0 / 256;
    settings.dctcp_step = 615e6;
    settings.increase_stages = 0;
    settings.telemetry_unit = 4;
    settings.rate_step = one.step;
    settings.rate_leap = one.leap;
    settings.buffer_is_shared = true;
    settings.whole_ns = false;
    if (one.control == CongestionControl::dctcp)
      settings.ecn_of_rate[100'000'000'000] = {300'000, 300'000, 1};
    std::vector<Sent> sent;
    for (std::int32_t from = 1; from < 9; ++from) {
      job.flows.push_back({from, 0, 1'000'000, 100 * from});
      sent.push_back({{from, 0, Bytes(1'000'000)}, nanoseconds(100 * from)});
    }
    const PacketOutcome alone = simulate_packets(job);
    const Seen seen = play(star_machine(9), std::string("packet:buffer=32MiB,cc=") + one.name, sent);
    const bool has_telemetry = one.control == CongestionControl::hpcc;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const double back = 2000 + 2 * (has_telemetry ? 76 : 56) / 12.5;
      EXPECT_NEAR(static_cast<double>((seen.arrivals[i] - sent[i].at).value) / 1000 + back,
                  static_cast<double>(alone.flows[i].fct_ns), 3)
          << one.name << ' ' << i;
    }
  }
}

TEST(NetworksAgree, ThatAConnectionKeepsItsOrder) {
  for (const char* network : {"analytical", "flow", "packet", "packet:recovery=selective",
                              "packet:cc=tcp-cubic", "packet:cc=ndp", "packet:cc=eqds", "flit"}) {
    std::vector<Sent> sent;
    for (std::int64_t i = 0; i < 20; ++i)
      sent.push_back({{0, 1, Bytes(100'000 - 4999 * i)}, nanoseconds(100 * i)});
    const Seen seen = play(star_machine(3), network, sent);
    EXPECT_TRUE(std::ranges::is_sorted(seen.arrivals)) << network;
    EXPECT_GT(seen.arrivals.front(), Time(0));
  }
}

Message from(std::uint16_t sender, std::int64_t bytes) {
  Message message{0, 1, Bytes(bytes)};
  message.sender = sender;
  return message;
}

// A small message of another communicator shares the links with a large one between the same two devices.
TEST(NetworksAgree, ThatSendersDoNotWaitForEachOther) {
  for (const char* network :
       {"flow", "packet:cc=none", "packet:cc=none,recovery=selective", "packet", "packet:cc=tcp-cubic",
        "packet:cc=ndp", "packet:cc=eqds", "flit", "flit:router=garnet"}) {
    SCOPED_TRACE(network);
    const auto second = [&](std::uint16_t sender) {
      const Seen seen = play(star_machine(3), network,
                             {{from(1, 4'000'000), Time(0)}, {from(sender, 100'000), microseconds(100)}});
      return in_microseconds(seen.arrivals[1]);
    };
    // 320 us and 8 us alone, besides headers, latencies and windows.
    EXPECT_GT(second(1), 320);
    EXPECT_LT(second(2), 200);
  }
  const std::vector<Sent> shared = {{from(1, 4'000'000), Time(0)}, {from(2, 100'000), microseconds(100)}};
  // Half of 12.5 GB/s, and 2 us of latency.
  EXPECT_EQ(play(star_machine(3), "flow", shared).arrivals,
            (std::vector{microseconds(330), microseconds(118)}));
}

TEST(NetworksAgree, ThatEachSendersMessagesKeepTheirOrder) {
  for (const char* network : {"flow", "packet", "packet:cc=tcp-cubic", "packet:cc=eqds", "flit"}) {
    std::vector<Sent> sent;
    for (std::int64_t i = 0; i < 30; ++i)
      sent.push_back({from(static_cast<std::uint16_t>(i % 3), 100'000 - 2999 * i), nanoseconds(100 * i)});
    const Seen seen = play(star_machine(3), network, sent);
    for (std::size_t i = 3; i < sent.size(); ++i)
      EXPECT_GT(seen.arrivals[i], seen.arrivals[i - 3]) << network;
  }
}

// Losses cost time, and everything arrives.
TEST(PacketNetwork, RepeatsWhatIsLost) {
  std::vector<Sent> sent;
  for (std::int32_t from = 0; from < 4; ++from) {
    for (std::int64_t i = 0; i < 5; ++i)
      sent.push_back({{from, (from + 1) % 4, Bytes(300'000)}, microseconds(20 * i)});
  }
  for (const char* recovery :
       {"cc=none,recovery=go-back-n", "cc=none,recovery=go-back-0", "cc=none,recovery=selective",
        "cc=tcp-newreno", "cc=tcp-cubic", "cc=tcp-dctcp", "cc=ndp", "cc=eqds"}) {
    const std::string network = std::string("packet:timeout=100us,") + recovery;
    const Seen without = play(star_machine(4), network, sent),
               with = play(star_machine(4, 0.005), network, sent);
    EXPECT_GT(*std::ranges::min_element(with.arrivals), Time(0)) << recovery;
    EXPECT_GT(*std::ranges::max_element(with.arrivals), *std::ranges::max_element(without.arrivals))
        << recovery;
  }
}

TEST(PacketNetwork, SaysThatAHostGaveUp) {
  Machine machine = star_machine(2, 0.999999);
  EXPECT_EQ(error_of([&] {
              play(machine, "packet:timeout=1us", {{{0, 1, Bytes(1000)}, Time(0)}});
            }).substr(0, 15),
            "network packet:");
}

TEST(PacketNetwork, RefusesParametersThatMakeNoSense) {
  const auto refusal = [](const std::string& network) {
    return error_of([&] { play(star_machine(2), network, {}); });
  };
  EXPECT_EQ(refusal("packet:payload=70KB"), "test: payload: 70000 is out of range\n  hint: from 64 to 65000");
  EXPECT_EQ(refusal("packet:cc=fast").substr(0, 5), "test:");
  EXPECT_EQ(refusal("packet:paths=4"),
            "test: paths: has a meaning with ndp and eqds only\n  hint: omit it, or choose one of them as cc "
            "instead "
            "of dcqcn");
  EXPECT_EQ(refusal("packet:cc=ndp,trim-queue=0"), "test: trim-queue: '0' must be at least 1");
  EXPECT_EQ(refusal("packet:cc=eqds,recovery=selective"),
            "test: recovery: EQDS has a recovery of its own\n  hint: omit recovery");
  EXPECT_EQ(refusal("flow:routing=somehow").substr(0, 5), "test:");
}

}  // namespace
}  // namespace armilla
