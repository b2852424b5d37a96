// Flows on a network of hosts and switches: who sends how much to whom and when, over which links, and how
// the hosts and switches behave. What HPCC's and ns-3's config.txt, topology.txt and flow.txt say, as data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "ir/interconnect.h"

namespace armilla {

// Both directions alike, but where the way back is said to differ. Nodes count from 0.
struct GraphLink {
  std::int64_t a = 0, b = 0;
  std::int64_t bits_per_second = 0;  // > 0
  std::int64_t delay_ns = 0;         // >= 0
  double loss = 0;                   // of packets, 0 <= loss < 1

  struct Back {
    std::int64_t bits_per_second = 0;
    std::int64_t delay_ns = 0;
    double loss = 0;
  };
  std::optional<Back> back{};  // from b to a, where that differs
};

struct NetworkGraph {
  std::vector<bool> is_switch;  // per node; the others are hosts
  std::vector<GraphLink> links;
  std::vector<std::string> names{};  // per node; empty: they have none
  // Per node, in the file that they are from (InterconnectNode::number): what its flows call it, and
  // ns-3 hashes.
  std::vector<std::int64_t> numbers{};  // empty: their places here

  std::int64_t number_of(std::int64_t node) const {
    return numbers.empty() ? node : numbers[static_cast<std::size_t>(node)];
  }
  // "leaf0"; "switch 3" of one without a name, with `kind` in front, unless that is empty.
  std::string called(std::int64_t node, std::string_view kind) const;
  std::int64_t nodes() const { return static_cast<std::int64_t>(is_switch.size()); }
};

// A machine's links, as the packet network takes them: times in whole nanoseconds, rates in bits per second.
// Network interfaces are switches there.
NetworkGraph network_graph(const Interconnect& graph);

struct TrafficFlow {
  std::int64_t source = 0, destination = 0;  // hosts, different
  std::int64_t bytes = 0;                    // > 0
  std::int64_t start_ns = 0;
  int priority = 3;  // 1 to 7: its queue on every link, and its class of PFC
  int port = 100;    // of the destination: a part of what ECMP hashes
};

// What hosts speak: a family of algorithms that share their packets, their recovery from losses and what they
// expect of switches (network/packet/transport/transport.h).
enum class TransportFamily : std::uint8_t { roce, tcp, ndp, eqds };

enum class CongestionControl : std::uint8_t {
  none,
  dcqcn,
  hpcc,
  timely,
  dctcp,
  swift,
  tcp_newreno,
  tcp_cubic,
  tcp_dctcp,
  ndp,
  eqds
};

struct CongestionControlRow {
  CongestionControl control;
  TransportFamily family;
  std::string_view name, title;  // as users write it, and in reports
  std::string_view mode;         // ns-3's CC_MODE, where it has one
};

// In the order of the enumeration.
inline constexpr std::array kCongestionControls = {
    CongestionControlRow{CongestionControl::none, TransportFamily::roce, "none", "no congestion control",
                         "12"},
    CongestionControlRow{CongestionControl::dcqcn, TransportFamily::roce, "dcqcn", "DCQCN", "1"},
    CongestionControlRow{CongestionControl::hpcc, TransportFamily::roce, "hpcc", "HPCC", "3"},
    CongestionControlRow{CongestionControl::timely, TransportFamily::roce, "timely", "TIMELY", "7"},
    CongestionControlRow{CongestionControl::dctcp, TransportFamily::roce, "dctcp", "DCTCP", "8"},
    CongestionControlRow{CongestionControl::swift, TransportFamily::roce, "swift", "Swift", {}},
    CongestionControlRow{CongestionControl::tcp_newreno, TransportFamily::tcp, "tcp-newreno", "NewReno", {}},
    CongestionControlRow{CongestionControl::tcp_cubic, TransportFamily::tcp, "tcp-cubic", "CUBIC", {}},
    CongestionControlRow{CongestionControl::tcp_dctcp, TransportFamily::tcp, "tcp-dctcp", "DCTCP", {}},
    CongestionControlRow{CongestionControl::ndp, TransportFamily::ndp, "ndp", "NDP", {}},
    CongestionControlRow{CongestionControl::eqds, TransportFamily::eqds, "eqds", "EQDS", {}},
};

inline constexpr const CongestionControlRow& row_of(CongestionControl control) {
  return kCongestionControls[static_cast<std::size_t>(control)];
}
inline constexpr TransportFamily family_of(CongestionControl control) {
  return row_of(control).family;
}
// Whether receivers pull what they are sent, over switches that cut packets they have no room for, and
// over all ways.
inline constexpr bool is_pulled(CongestionControl control) {
  return family_of(control) >= TransportFamily::ndp;
}

enum class LossRecovery : std::uint8_t { go_back_n, go_back_0, selective };

// When switches mark packets of a link of this speed: never below `minimum` bytes queued, always above
// `maximum`, with a probability that grows to `probability` between them.
struct EcnThresholds {
  std::int64_t minimum = 0, maximum = 0;  // bytes
  double probability = 0;
};

// What hosts and switches of the packet network do, whatever hosts speak; the names in the comments are the
// keys of ns-3's config.txt.
struct PacketSettings {
  CongestionControl congestion_control = CongestionControl::none;  // CC_MODE
  std::int64_t payload = 1000;                                     // PACKET_PAYLOAD_SIZE, bytes
  std::int64_t stop_ns = INT64_MAX;                                // SIMULATOR_STOP_TIME

  // Windows: HAS_WIN, GLOBAL_T (the longest round trip of all pairs counts for all), VAR_WIN (with the rate)
  bool window = false, global_window = true, window_follows_rate = false;
  bool pace = true;         // RATE_BOUND
  bool acks_first = false;  // ACK_HIGH_PRIO
  double min_rate = 1e8;    // MIN_RATE, bits per second
  double rate_step = 5e6;   // RATE_AI
  double rate_leap = 5e7;   // RATE_HAI
  double gain = 1.0 / 16;   // EWMA_GAIN, of DCQCN and DCTCP

  // DCQCN: ALPHA_RESUME_INTERVAL, RATE_DECREASE_INTERVAL, RP_TIMER, FAST_RECOVERY_TIMES, CLAMP_TARGET_RATE
  std::int64_t alpha_interval_us = 55, decrease_interval_us = 4, increase_interval_us = 1500;
  std::int64_t fast_recoveries = 5;
  bool clamp_target = false;

  // HPCC: U_TARGET, MI_THRESH, FAST_REACT, MULTI_RATE, SAMPLE_FEEDBACK, INT_MULTI
  double target_utilisation = 0.95;
  std::int64_t increase_stages = 5;
  bool fast_react = true, rate_per_hop = true, sample_feedback = false;
  std::int64_t telemetry_unit = 1;
  bool hpcc_as_htsim = false;  // HtsimHpccState (network/packet/transport/congestion.h)

  double dctcp_step = 1e9;  // DCTCP_RATE_AI

  // TIMELY as in the ns-3 fork, whose packets carry no time stamp: every round trip seems as long as
  // the simulation.
  bool timely_without_timestamps = false;

  // Losses: L2_BACK_TO_ZERO, L2_CHUNK_SIZE, L2_ACK_INTERVAL
  LossRecovery recovery = LossRecovery::go_back_n;
  std::int64_t chunk = 4000, ack_interval = 1;
  // Without progress for so long after a loss a host sends again from the first byte not acknowledged. 4.096
  // us x 2^14, InfiniBand's local ACK timeout with the exponent that NCCL used; 0: never, as ns-3.
  std::int64_t retransmit_timeout_ns = 67'108'864;

  // TCP: segments sent before the first acknowledgement (RFC 6928), and how long a receiver waits for a
  // second one before it acknowledges the first (Linux: 40 ms; ns-3: 200 ms; 0: it never waits); segments at
  // which slow start ends where nothing was lost before (0: any number)
  std::int64_t initial_window = 10, delayed_ack_ns = 40'000'000, first_threshold = 0;
  // Full packets that a port of a switch holds at most, and the last of these, in whose room a tenth is
  // dropped by chance (htsim's RandomQueue). 0: as many as there is room in `buffer`.
  std::int64_t port_queue = 0, port_queue_random = 3;
  bool acks_take_no_time = false;  // they reach the sender over no link (TCP as ASTRA-sim sets up htsim's)

  // NDP and EQDS: names of paths that a flow's packets take in turn, which switches hash; packets that a
  // sender sends before it is pulled, and is ahead of its pulls at most (0: a quarter more than its host's
  // link takes in a round trip); packets of data that a port holds until switches cut what comes
  std::int64_t paths = 256, pull_window = 0, trim_queue = 50;

  // Switches
  bool ecn = true;                                    // ENABLE_QCN
  std::map<std::int64_t, EcnThresholds> ecn_of_rate;  // KMIN_MAP, KMAX_MAP, PMAX_MAP: by bits per second
  std::int64_t buffer = 16 << 20;                     // BUFFER_SIZE, bytes
  bool buffer_is_shared = false;  // `buffer` lies beyond the reserves and the headroom of ports
  // Bytes of one input that have its link paused, whatever room there is, and let go on; 0: by what is left
  // of the buffer.
  std::int64_t xoff = 0, xon = 0;
  bool whole_ns =
      true;         // a frame takes whole nanoseconds on a link, as in ns-3; else they are so on the average
  double loss = 0;  // ERROR_RATE_PER_LINK, of links without a loss of their own
  std::int64_t nic_pauses = 0;  // NIC_TOTAL_PAUSE_TIME: so many pauses of 10 us by every NIC
  std::uint64_t seed = 1;

  // LINK_DOWN: the link between two nodes fails at this time; 0: never
  std::int64_t link_down_ns = 0, link_down_a = 0, link_down_b = 0;
};

// What a flow does with several ways.
enum class WayChoice : std::uint8_t {
  first,        // the first one
  spread,       // a packet each, in turn; a fluid takes all at once
  adaptive,     // for each packet, or each fluid, the one that is least in demand for its length
  progressive,  // the same, and a packet on the first one once more at every later switch
};
inline constexpr bool is_adaptive(WayChoice choice) {
  return choice >= WayChoice::adaptive;
}

// Ways from a host to a host, each the ports by which packets leave (network/routing/routes.h).
using FlowWays = std::vector<std::vector<std::uint32_t>>;

// The ways from a host to a host, at least one; valid until the next call. Nobody keeps those of all pairs.
using FindFlowWays =
    std::function<std::span<const FlowWays::value_type>(std::int64_t source, std::int64_t destination)>;

struct FlowJob {
  std::string where;  // the file, for messages
  NetworkGraph graph;
  std::vector<TrafficFlow> flows;
  PacketSettings settings;
  // Those that suit the graph and the congestion control (network/packet.h) go before, and each port draws
  // for itself whom it marks, each link what it loses; else they draw as ns-3 does.
  bool usual_settings = false;
  FindFlowWays ways{};  // empty: one of the shortest for each flow, which ns-3's ECMP hashes
  WayChoice choice = WayChoice::first;
  bool sampled = false;     // keep what links do over time (ir/traffic.h)
  bool flows_come = false;  // from any host to any, one by one while time goes on
  // Packets of flows that go on alike are counted, not played (network/packet/forward/).
  bool fast_forward = false;
  Progress* progress = &no_progress();  // told how far the traffic is
};

}  // namespace armilla
