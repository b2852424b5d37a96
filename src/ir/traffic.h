// Traffic alone on a network, without a job: what came of it.
//
// Traffic is offered by rate (packets at random times, until the figures stand) or as flows (so many bytes
// from here to there, starting then). `armilla net` runs both and prints one TrafficResult.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace armilla {

// Of traffic by rate. Times are cycles of the routers; averages are over the packets that were measured.
struct RateResult {
  double packet_latency_avg_cycles = 0;      // from the packet's creation to the arrival of its tail
  double network_latency_avg_cycles = 0;     // from its head's entry into the network
  double accepted_flits_per_node_cycle = 0;  // what arrived
  double hops_avg = 0;                       // routers on the way
  bool saturated = false;                    // the latency passed its limit: the averages mean nothing
  std::int64_t flit_hops = 0;                // flits times routers, of the whole run
  std::int64_t cycles = 0;                   // that were simulated
};

struct FlowResult {
  std::int64_t source = 0, destination = 0;  // nodes of the topology
  std::int64_t bytes = 0;
  double start_s = 0;
  double fct_s = 0;  // flow completion time, from the start; of no meaning where not finished
  bool finished = false;
  double least_s{};  // that it takes alone; 0: not known
};

// A directed link over time, per interval of TrafficSamples.
struct LinkSamples {
  std::string from, to;              // names of its ends
  std::vector<double> utilisation;   // of its bandwidth
  std::vector<double> queue_bytes;   // the most that waited for it; of packets
  std::vector<double> paused_share;  // of the time that PFC kept it silent; of packets
};
struct TrafficSamples {
  double interval_s = 0;
  std::vector<LinkSamples> links;  // that carried something, the busiest first
};

// What was counted and not played, of flows that go on alike.
struct FastForwarded {
  std::int64_t stretches = 0, packets = 0;  // of FlowsResult::packets
  double bound = 0;                         // the share of itself that a completion time may be off
  std::string unknown{};                    // why everything is played, whatever flows do; empty: it is not
};

// Of flows.
struct FlowsResult {
  std::vector<FlowResult> flows;  // in the order given
  bool has_pfc = false;           // its switches may pause senders
  std::int64_t pfc_pauses = 0, pfc_resumes = 0;
  std::int64_t packets =
      0;  // sent over links, acknowledgements and PFC frames included: over three links counts three
  std::int64_t events = 0;
  TrafficSamples samples{};                     // where they were asked for
  std::optional<FastForwarded> fast_forward{};  // where it was asked for
};

struct TrafficResult {
  std::string title;                                       // what was run, on one line
  std::vector<std::pair<std::string, std::string>> facts;  // further figures, for the text report
  std::vector<std::string> notes;                          // what the user should know: keys without effect
  std::variant<RateResult, FlowsResult> outcome;
};

}  // namespace armilla
