#include "ir/interconnect.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace armilla {
namespace {

void validate_figures(const LinkFigures& figures, const std::string& place) {
  if (!(figures.bandwidth.value > 0)) throw Error(place, "has no bandwidth");
  if (figures.latency < Time(0)) throw Error(place, "has a negative latency");
  if (!(figures.loss >= 0 && figures.loss < 1))
    throw Error(place, fmt::format("loses {} of its packets", figures.loss), "from 0 to below 1");
}

// What can be reached from device 0 without passing devices that do not forward.
std::vector<bool> reached_from_first(const Interconnect& graph) {
  std::vector<std::vector<std::uint32_t>> near(graph.nodes.size());
  for (const Cable& cable : graph.cables) {
    near[cable.a].push_back(cable.b);
    near[cable.b].push_back(cable.a);
  }
  std::vector<bool> reached(graph.nodes.size());
  std::vector<std::uint32_t> waiting = {0};
  reached[0] = true;
  while (!waiting.empty()) {
    const std::uint32_t here = waiting.back();
    waiting.pop_back();
    if (here != 0 && graph.nodes[here].kind == NetworkNodeKind::device && !graph.devices_forward) continue;
    for (const std::uint32_t next : near[here]) {
      if (!reached[next]) waiting.push_back(next);
      reached[next] = true;
    }
  }
  return reached;
}

}  // namespace

std::string_view name_of(NetworkNodeKind kind) {
  switch (kind) {
    case NetworkNodeKind::device:
      return "device";
    case NetworkNodeKind::nic:
      return "nic";
    case NetworkNodeKind::switched:
      return "switch";
  }
  return "?";
}

std::int64_t Interconnect::devices() const {
  return std::ranges::count(nodes, NetworkNodeKind::device, &InterconnectNode::kind);
}

void validate_interconnect(const Interconnect& graph, const std::string& where) {
  const std::int64_t devices = graph.devices();
  if (devices < 1) throw Error(where, "its links join no device");
  for (std::size_t node = 0; node < static_cast<std::size_t>(devices); ++node) {
    if (graph.nodes[node].kind != NetworkNodeKind::device)
      throw Error(where, fmt::format("node '{}' stands before devices", graph.nodes[node].name));
  }
  for (const Cable& cable : graph.cables) {
    if (std::max(cable.a, cable.b) >= graph.nodes.size())
      throw Error(where, fmt::format("a link leads to node {}, and there are {}", std::max(cable.a, cable.b),
                                     graph.nodes.size()));
    const std::string place =
        fmt::format("{}, link {} - {}", where, graph.nodes[cable.a].name, graph.nodes[cable.b].name);
    if (cable.a == cable.b) throw Error(place, "joins a node with itself");
    validate_figures(cable.there, place);
    validate_figures(cable.back, place);
  }
  const std::vector<bool> reached = reached_from_first(graph);
  for (std::size_t node = 1; node < static_cast<std::size_t>(devices); ++node) {
    if (!reached[node])
      throw Error(where,
                  fmt::format("no way leads from '{}' to '{}'", graph.nodes[0].name, graph.nodes[node].name),
                  graph.devices_forward ? "join them" : "devices do not forward: join them over switches");
  }
}

}  // namespace armilla
