// Flows between the hosts of a graph: patterns by name, and the files of other simulators.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "ir/flow_traffic.h"

namespace armilla {

struct TrafficPattern {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  // Between hosts 0 to hosts - 1; at least 2. `foreseen` is told how many flows there will be, before they
  // are made, by patterns that may have many more than there are hosts.
  std::vector<TrafficFlow> (*make)(const ParameterValues& values, std::int64_t hosts,
                                   const std::function<void(std::int64_t flows)>& foreseen);
};
std::span<const TrafficPattern> traffic_patterns();

// A flow.txt of HPCC's ns-3, or a connection matrix of htsim ("Nodes 16", "Connections 2", "0->1 id 1 start 0
// size 1000"), whose times are in picoseconds and which holds as many flows as it announces. Hosts of `graph`
// come before its switches. `notes`: what does not fit the graph, and need not. Throws Error with file:line.
std::vector<TrafficFlow> read_flow_file(const std::string& path, const NetworkGraph& graph,
                                        std::vector<std::string>* notes = nullptr);

// "incast:senders=16,bytes=1MB"; a number in front, as in "incast:16" or "incast:16,bytes=2MB", is the
// pattern's first parameter. Or the path of such a file. `foreseen` may refuse so many flows. Throws Error.
std::vector<TrafficFlow> read_traffic_flows(
    const std::string& text, const std::string& where, const NetworkGraph& graph,
    std::vector<std::string>* notes = nullptr,
    const std::function<void(std::int64_t flows)>& foreseen = [](std::int64_t) {});

}  // namespace armilla
