#include "ir/flow_traffic.h"

#include <algorithm>
#include <cmath>

namespace armilla {
namespace {

GraphLink::Back link_figures(const LinkFigures& figures) {
  constexpr double kMost = 1e18;
  return {std::max<std::int64_t>(1, std::llround(std::min(figures.bandwidth.value * 8, kMost))),
          (figures.latency.value + 500) / 1000, figures.loss};
}

}  // namespace

std::string NetworkGraph::called(std::int64_t node, std::string_view kind) const {
  if (!names.empty()) return names[static_cast<std::size_t>(node)];
  return std::string(kind) + (kind.empty() ? "" : " ") + std::to_string(node);
}

NetworkGraph network_graph(const Interconnect& graph) {
  NetworkGraph network;
  for (const InterconnectNode& node : graph.nodes) {
    network.is_switch.push_back(node.kind != NetworkNodeKind::device);
    network.names.push_back(node.name);
    network.numbers.push_back(node.number);
  }
  if (std::ranges::find(network.numbers, -1) != network.numbers.end()) network.numbers.clear();
  for (const Cable& cable : graph.cables) {
    const GraphLink::Back there = link_figures(cable.there), back = link_figures(cable.back);
    network.links.push_back({cable.a, cable.b, there.bits_per_second, there.delay_ns, there.loss, back});
  }
  return network;
}

}  // namespace armilla
