#include "ir/interconnect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/suggest.h"

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
    // The first one sends, whether devices forward or not.
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

std::vector<std::uint32_t> cables_between(const Interconnect& graph, const DamagedLink& link) {
  std::map<std::string_view, std::uint32_t> numbers;
  std::vector<std::string> names;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    numbers.emplace(graph.nodes[node].name, node);
    names.push_back(graph.nodes[node].name);
  }
  // Names may have dashes of their own.
  const std::string_view text = link.between;
  std::string_view unknown = text;
  std::vector<std::uint32_t> found;
  bool joined = false;
  for (std::size_t dash = text.find('-'); dash != std::string_view::npos; dash = text.find('-', dash + 1)) {
    const auto a = numbers.find(text.substr(0, dash)), b = numbers.find(text.substr(dash + 1));
    if (a == numbers.end() || b == numbers.end()) {
      unknown = a == numbers.end() ? text.substr(0, dash) : text.substr(dash + 1);
      continue;
    }
    joined = true;
    for (std::uint32_t cable = 0; cable < graph.cables.size(); ++cable) {
      const Cable& one = graph.cables[cable];
      if ((one.a == a->second && one.b == b->second) || (one.a == b->second && one.b == a->second))
        found.push_back(cable);
    }
  }
  if (!found.empty()) return found;
  if (joined) throw Error(link.where, fmt::format("no link joins the nodes of '{:.80}'", text));
  throw Error(link.where,
              unknown == text ? fmt::format("'{:.80}' does not name two nodes", text)
                              : fmt::format("there is no node '{:.60}'", unknown),
              unknown == text ? "such as leaf0-spine1" : suggest(unknown, names));
}

Interconnect with_damage(Interconnect graph, std::span<const DamagedLink> damage) {
  std::vector<bool> failed(graph.cables.size()), slowed(graph.cables.size());
  for (const DamagedLink& link : damage) {
    for (const std::uint32_t cable : cables_between(graph, link)) {
      const bool again = slowed[cable];
      (link.bandwidth == 0 ? failed : slowed)[cable] = true;
      if (again || (failed[cable] && slowed[cable])) {
        throw Error(link.where,
                    fmt::format("the link '{:.80}' is given twice, {}", link.between,
                                failed[cable] ? "as failed and with a share of its bandwidth"
                                              : "with two shares of its bandwidth"),
                    "give it once");
      }
      graph.cables[cable].there.derate(link.bandwidth);
      graph.cables[cable].back.derate(link.bandwidth);
    }
  }
  std::uint32_t cable = 0;
  std::erase_if(graph.cables, [&](const Cable&) { return bool{failed[cable++]}; });
  if (cable == graph.cables.size()) return graph;
  try {
    validate_interconnect(graph, damage.front().where);
  } catch (const Error& error) {
    throw Error(error.where, error.message + " any more", "the failed links cut the machine apart");
  }
  return graph;
}

void validate_interconnect(const Interconnect& graph, const std::string& where) {
  const std::int64_t devices = graph.devices();
  if (devices < 1) throw Error(where, "its links join no device");
  // Devices are numbered as nodes are, and so stand first.
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
