// Flows as fluids: each moves at a rate, and the rates of all that share links are max-min fair. SimGrid's
// CM02 model (Velho et al., ACM TOMACS 23(4), 2013) without its latency-dependent weights;
// docs/models/flow.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/registry.h"
#include "ir/flow_traffic.h"
#include "ir/traffic.h"
#include "network/network.h"

namespace armilla {

struct FlowSharing {
  double bandwidth_factor = 1;    // of the links' bandwidth that payload gets; SimGrid's LV08: 0.97
  double latency_factor = 1;      // of the links' delays; LV08: 13.01
  double cross_traffic = 0;       // of a flow's rate on its way back, for acknowledgements; SimGrid: 0.05
  bool weigh_by_latency = false;  // shares in inverse proportion to the flows' latencies, as SimGrid's
};

inline constexpr ParameterInfo kBandwidthFactorParameter = {"bandwidth-factor", ParameterType::fraction, "1",
                                                            "of the links' bandwidth that payload gets"};
// Throws Error for none.
double bandwidth_factor_of(const ParameterValues& values);

struct FlowSharingOutcome {
  std::vector<std::int64_t> fct_ps;  // per flow, from its start; -1: not finished when time was over
  std::vector<double> least_ps{};    // per flow, alone on its way
  std::int64_t events = 0;           // starts and completions
  std::int64_t rates = 0;            // that were worked out
  TrafficSamples samples;            // where the job is sampled
};

// A flow waits for the delays of its way, then moves its bytes. Ways are those of the packet network. Throws
// Error where no way leads.
FlowSharingOutcome share_flows(const FlowJob& job, const FlowSharing& sharing = {});

// The same as a report.
TrafficResult flow_traffic(const FlowJob& job, const FlowSharing& sharing = {});

// The network of whole jobs: every message is a flow that waits for the latencies of its way
// (network/routing/ways.h), then moves its bytes.
std::unique_ptr<Network> make_flow_network(const NetworkSetup& setup, const ParameterValues& values);

// What its messages use of its links.
std::unique_ptr<MessageLinks> flow_links(const Machine& machine, const WhatIf& what_if,
                                         const ParameterValues& values);

}  // namespace armilla
