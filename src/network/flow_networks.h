// The networks that flows can be run on alone (armilla net): one row each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "base/units.h"
#include "ir/flow_traffic.h"
#include "ir/machine.h"
#include "ir/traffic.h"

namespace armilla {

// The links of a machine, some of them damaged.
struct FlowsOver {
  const Machine& machine;
  std::span<const DamagedLink> damage;
};

struct FlowNetwork {
  std::string_view name, help;
  std::span<const ParameterInfo> parameters;
  // Of ns-3, so that it can run over a job's graph.
  bool has_hosts;
  // Whether flows take all ways where no routing is given.
  bool (*sprays)(const ParameterValues& values);
  // Settings that were given as parameters go before the job's own. Over the job's graph, of those
  // with hosts.
  TrafficResult (*run)(FlowJob job, const ParameterValues& values);
  TrafficResult (*run_over)(FlowJob job, const FlowsOver& over, const ParameterValues& values);
  // Roughly what memory a flow takes while all run, as measured: bytes, and more for each link that one of
  // its ways crosses.
  double bytes_of_flow = 0, bytes_of_link = 0;
};

std::span<const FlowNetwork> flow_networks();  // the first one is the default

// Throws Error for unknown names and parameters, and what the network does (network/packet.h,
// network/flow.h). Over the job's graph, by ns-3's ECMP.
TrafficResult run_flows(const ComponentChoice& network, FlowJob job);

// Over the links of a machine, some of them damaged, by the network's parameter `routing`
// (network/routing/ways.h). Without one: by ns-3's ECMP, on flit by its own, and where devices forward in
// dimension order. On packet and flow a device that forwards does so packet by packet, through a router of
// its own that is joined with it by a link as wide as all others of the device together, and without
// congestion control unless the network's parameters name one. `job` has the devices' flows.
TrafficResult run_flows(const ComponentChoice& network, const Machine& machine,
                        std::span<const DamagedLink> damage, FlowJob job);

// Throws Error where so many flows between devices, named `where`, would take more memory than is left. A
// flow takes `bytes_after` once all are over.
void check_memory(const ComponentChoice& network, const Machine& machine, std::span<const DamagedLink> damage,
                  const std::string& where, std::int64_t flows, std::int64_t bytes_after, Bytes left);

}  // namespace armilla
