// The networks that flows can be run on alone (armilla net): one row each.
#pragma once

#include <span>
#include <string_view>

#include "base/registry.h"
#include "ir/flow_traffic.h"
#include "ir/traffic.h"

namespace armilla {

struct FlowNetwork {
  std::string_view name, help;
  std::span<const ParameterInfo> parameters;
  // Settings that were given as parameters go before the job's own.
  TrafficResult (*run)(FlowJob job, const ParameterValues& values);
};

std::span<const FlowNetwork> flow_networks();  // the first one is the default

// Throws Error for unknown names and parameters, and what the network does (network/packet.h, network/flow.h).
TrafficResult run_flows(const ComponentChoice& network, FlowJob job);

}  // namespace armilla
