// Flows over Ethernet with RoCE v2, TCP, NDP or EQDS, packet by packet: hosts that pace, window, pull and
// repeat as their congestion control says; switches with shared buffers, priority flow control (IEEE
// 802.1Qbb) and ECN marking, or that drop, or that cut packets to their headers. RoCE is that of the HPCC
// authors' ns-3 (Li et al., SIGCOMM 2019) to the nanosecond, TCP near ns-3's, NDP and EQDS near htsim's;
// docs/models/packet.md has the equations.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "ir/flow_traffic.h"
#include "ir/traffic.h"
#include "network/network.h"

namespace armilla {

struct PacketFlowOutcome {
  std::int64_t fct_ns = -1;   // from its start to the last acknowledgement at the source; -1: not finished
  std::int64_t alone_ns = 0;  // the same of a flow alone at line speed, as the peers reckon it
  // And the least that it takes: headers count on the slowest link, acknowledgements only the delays. For
  // slow-downs.
  std::int64_t least_ns = 0;
};

// Every byte that a host sent, with its headers, was delivered, dropped (or cut off), or is still on its way.
struct PacketBytes {
  std::int64_t sent = 0, delivered = 0, dropped = 0, in_flight = 0;
};

// By how much of itself a completion time may be off under fast-forward (docs/models/fast_forward.md).
inline constexpr double kForwardBound = 0.01;
// What fast-forward (FlowJob::fast_forward) did not play.
struct PacketForward {
  std::int64_t stretches = 0;  // of some flows each
  std::int64_t patterns = 0;   // that came again, of some connections each
  std::int64_t frames = 0;     // sent over links in both
};

struct PacketOutcome {
  std::vector<PacketFlowOutcome> flows;  // in the job's order
  std::int64_t pauses = 0, resumes = 0;  // PFC frames that arrived
  std::int64_t frames = 0;               // sent over links, acknowledgements and PFC frames included
  std::int64_t data_packets = 0;         // sent by hosts, repetitions included
  std::int64_t repeated_packets = 0;
  std::int64_t dropped_packets = 0;  // by full buffers
  std::int64_t lost_packets = 0;     // on links: errors, a failed link
  std::int64_t trimmed_packets = 0;  // cut to their headers by full queues
  std::int64_t marked_packets = 0;   // by ECN
  std::int64_t timeouts = 0;
  std::int64_t given_up = 0;       // flows whose senders gave up after timeouts in a row
  std::int64_t longest_queue = 0;  // bytes at one port of a switch
  std::int64_t paused_ns = 0;      // of all ports, summed
  // The link that was told to be silent for longest, from the node that had to be, and among those
  // between switches.
  struct Pause {
    std::int64_t ns = 0, from = 0, to = 0;
  };
  Pause longest_pause, longest_pause_between_switches;
  std::int64_t end_ns = 0;  // of the traffic; timers may run for longer
  bool stopped = false;     // at PacketSettings::stop_ns, with something still to come
  std::int64_t events = 0;
  std::int64_t longest_round_trip_ns = 0, window_bytes = 0;  // on the idle network, of all pairs
  PacketBytes data, acknowledgements;
  TrafficSamples samples;                  // where the job is sampled
  std::optional<PacketForward> forwarded;  // where it was asked for
};

// A link between switches was silent for more than half of the time.
inline bool is_storm(const PacketOutcome& outcome) {
  const std::int64_t silent_ns = outcome.longest_pause_between_switches.ns;
  return silent_ns > 0 && silent_ns > outcome.end_ns / 2;
}

// Throws Error for networks and settings that make no sense, flows that have no way, more packets than anyone
// would wait for (the estimate is in the message), and when priority flow control comes to a deadlock (its
// cycle is named), which what was stopped is in, too, where a storm ends in a cycle.
PacketOutcome simulate_packets(const FlowJob& job);

// The same as a report.
TrafficResult packet_traffic(const FlowJob& job);

inline constexpr std::string_view kCongestionControlNames =
    "none|dcqcn|hpcc|timely|dctcp|swift|tcp-newreno|tcp-cubic|tcp-dctcp|ndp|eqds";
// What hosts and switches do, for `set_transport`, of jobs and of flows alone. Where files of ns-3 say it,
// what is not given is theirs.
inline constexpr std::array kTransportParameters = {
    ParameterInfo{"cc", ParameterType::choice, "",
                  "congestion control of the hosts; else that of ns-3's file, or dcqcn",
                  kCongestionControlNames},
    ParameterInfo{
        "recovery", ParameterType::choice, "",
        "what hosts send again after a loss; else what ns-3's file says, or go-back-n, and selective "
        "where packets of a message take several ways",
        "go-back-n|go-back-0|selective"},
    ParameterInfo{
        "timeout", ParameterType::time, "",
        "without progress after a loss until a host sends again; else that of ns-3's file, or 67 ms, "
        "with TCP 200 ms, with ndp and eqds 1 ms"},
    ParameterInfo{"timely-timestamps", ParameterType::boolean, "",
                  "false: TIMELY as ASTRA-sim's ns-3 has it, whose packets carry no time"},
    ParameterInfo{"hpcc", ParameterType::choice, "",
                  "HPCC as published and in ns-3, or as htsim has it, whose windows follow averages of the "
                  "whole flow; else published",
                  "published|htsim"},
    ParameterInfo{
        "paths", ParameterType::count, "",
        "with ndp and eqds: names of paths that packets of a flow take in turn, which switches hash; "
        "else 256"},
    ParameterInfo{
        "window", ParameterType::count, "",
        "with ndp and eqds: packets that a sender sends before it is pulled; else a quarter more than "
        "its link takes in a round trip"},
    ParameterInfo{"trim-queue", ParameterType::count, "",
                  "with ndp and eqds: packets of data that a port holds until it cuts what comes to its "
                  "headers; else 50"},
    ParameterInfo{"fast-forward", ParameterType::boolean, "false",
                  "count the packets of flows that go on alike instead of playing them "
                  "(docs/models/fast_forward.md)"},
    ParameterInfo{"payload", ParameterType::bytes, "",
                  "of a packet; else that of ns-3's file, or 4096B, with TCP 1448B"},
    ParameterInfo{"buffer", ParameterType::bytes, "",
                  "of a switch, that its ports share, beyond what each has for itself; else 32MiB"},
    ParameterInfo{
        "xoff", ParameterType::bytes, "",
        "with RoCE: bytes of an input from which a switch pauses its link (PFC), whatever room there "
        "is; else by what is left of its buffer"},
    ParameterInfo{"xon", ParameterType::bytes, "",
                  "with xoff: bytes at which it lets the link go on; else 3072B below xoff"},
};

// The same and others.
template <std::size_t N>
constexpr auto with_transport(const ParameterInfo (&others)[N]) {
  std::array<ParameterInfo, kTransportParameters.size() + N> all{};
  const auto next = std::ranges::copy(kTransportParameters, all.begin()).out;
  std::ranges::copy(others, next);
  return all;
}

// Packets that take several ways come in any order: selective, and no other, where `recovery` is not given.
// The job's usual settings, where it asks for them, go before what it has, and what is given before those.
void set_transport(FlowJob& job, const ParameterValues& values);
// Whether the parameter `cc` chooses a transport that takes all ways unless told otherwise.
bool sprays(const ParameterValues& values);

// The settings that the authors of HPCC evaluated each algorithm with (Li et al., SIGCOMM 2019, and run.py
// of their simulator), which grow with the speed of links: what a host adds to its rate goes by the slowest
// link of a host. Packets of 4096 bytes, 32 MiB shared by the ports of a switch. For the congestion control
// in `settings`.
void use_usual_settings(PacketSettings& settings, const NetworkGraph& graph);

// The network of whole jobs: a queue pair for each two devices that exchange messages, over the ways of
// network/routing/ways.h. A message goes over its way from device to device; a device in between takes it as
// a whole before it passes it on. NICs of the graph forward as switches do. A message has arrived when its
// receiver has all of it.
std::unique_ptr<Network> make_packet_network(const NetworkSetup& setup, const ParameterValues& values);

}  // namespace armilla
