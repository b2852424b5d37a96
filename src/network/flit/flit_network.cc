#include "network/flit/flit_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

using PortIndex = std::uint32_t;

constexpr std::int64_t kMostNodes = 1 << 17;
constexpr std::size_t kMostPairs = std::size_t{1} << 26;  // of router and node: the table of routes, 400 MB
constexpr std::uint32_t kMostPorts = 1024;

// k^n, or more than kMostNodes.
std::int64_t power(std::int64_t k, std::int64_t n) {
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < n && result <= kMostNodes; ++i) result *= k;
  return result;
}

void check_size(const FlitStudy& study, std::int64_t nodes) {
  if (study.k < 2)
    throw Error("k = " + std::to_string(study.k), "is too small for this topology", "at least 2");
  if (study.n < 1)
    throw Error("n = " + std::to_string(study.n), "is not a number of dimensions", "at least 1");
  if (nodes > kMostNodes)
    throw Error(fmt::format("k = {}, n = {}", study.k, study.n), "is a network of too many nodes",
                fmt::format("at most {}", kMostNodes));
}

// All routers have `ports` but those of the first `smaller`, which have `few`.
void lay_out(FlitNetwork& network, PortIndex routers, PortIndex ports, PortIndex smaller = 0,
             PortIndex few = 0) {
  if (static_cast<std::size_t>(routers) * network.nodes > kMostPairs)
    throw Error("",
                fmt::format("a network of {} and {} nodes is too large", typed_count(routers, "router"),
                            network.nodes),
                fmt::format("at most {} pairs of a router and a node", kMostPairs));
  if (ports > kMostPorts)
    throw Error("", fmt::format("a router of {} ports is too large", ports),
                fmt::format("at most {} ports", kMostPorts));
  network.routers = routers;
  network.first_port = {0};
  for (PortIndex router = 0; router < routers; ++router)
    network.first_port.push_back(network.first_port.back() + (router < smaller ? few : ports));
  network.number_ports();
  network.outputs.resize(network.first_port.back() + network.nodes);
  network.routes.resize(static_cast<std::size_t>(routers) * network.nodes);
}

void connect(FlitNetwork& network, PortIndex router, PortIndex port, PortIndex to_router, PortIndex to_port,
             PortIndex latency) {
  network.outputs[network.first_port[router] + port] = {network.first_port[to_router] + to_port, kNoFlitPort,
                                                        latency};
}

void attach(FlitNetwork& network, PortIndex node, PortIndex router, PortIndex port) {
  const PortIndex number = network.first_port[router] + port;
  network.outputs[number] = {kNoFlitPort, node, 1};
  network.outputs[network.ports() + node] = {number, kNoFlitPort, 1};
}

RouteEntry entry(PortIndex port, PortIndex choices = 0, PortIndex phase = 0, bool ejects = false) {
  return {static_cast<std::uint16_t>(port), static_cast<std::uint16_t>(choices),
          static_cast<std::uint8_t>(phase), ejects};
}

// Dimension order, the lowest first. In a ring the shorter way, either by chance where both are equal; the
// phase is that of a packet that enters the ring here.
RouteEntry cube_route(PortIndex from, PortIndex to, PortIndex k, PortIndex n, bool torus) {
  for (PortIndex dimension = 0; dimension < n; ++dimension, from /= k, to /= k) {
    const PortIndex here = from % k, there = to % k;
    if (here == there) continue;
    const PortIndex up = 2 * dimension, down = up + 1;
    if (!torus) return entry(here < there ? up : down);
    const PortIndex distance = (there + k - here) % k;
    // Which side of the ring's dateline it begins on: virtual channels of both sides break the circle of
    // buffers (Dally and Seitz 1987).
    const PortIndex phase = here > there ? 1 : 0;
    if (2 * distance == k) return entry(up, 2, phase);
    return entry(2 * distance < k ? up : down, 0, phase);
  }
  return entry(2 * n, 0, 0, true);
}

FlitNetwork cube(const FlitStudy& study) {
  const bool torus = study.topology == FlitTopology::torus;
  check_size(study, power(study.k, study.n));
  const auto k = static_cast<PortIndex>(study.k), n = static_cast<PortIndex>(study.n);
  FlitNetwork network;
  network.rule = torus ? RouteRule::dateline : RouteRule::any_vc;
  network.nodes = static_cast<PortIndex>(power(study.k, study.n));
  network.node_ports = 1;
  lay_out(network, network.nodes, 2 * n + 1);
  for (PortIndex dimension = 0; dimension < n; ++dimension)
    for (const char sign : {'+', '-'}) network.port_names.push_back(fmt::format("{}{}", sign, dimension));
  network.port_names.push_back("node");
  // A torus is folded, so that no link is longer than two of a mesh.
  const PortIndex latency = torus && study.long_links ? 2 : 1;
  for (PortIndex router = 0; router < network.routers; ++router) {
    PortIndex stride = 1;
    for (PortIndex dimension = 0; dimension < n; ++dimension, stride *= k) {
      const PortIndex place = router / stride % k;
      const PortIndex next = place + 1 < k ? router + stride : router - (k - 1) * stride;
      if (!torus && place + 1 == k) continue;
      connect(network, router, 2 * dimension, next, 2 * dimension + 1, latency);
      connect(network, next, 2 * dimension + 1, router, 2 * dimension, latency);
    }
    attach(network, router, router, 2 * n);
    for (PortIndex node = 0; node < network.nodes; ++node)
      network.routes[static_cast<std::size_t>(router) * network.nodes + node] =
          cube_route(router, node, k, n, torus);
  }
  return network;
}

// k-ary n-tree: n levels of k^(n-1) routers, the roots first. Ports 0 ... k-1 lead down, k ... 2k-1 up.
// Child c of a router differs from it in the digit of its level, so a router's k parents are one for each of
// its up ports.
FlitNetwork fat_tree(const FlitStudy& study) {
  check_size(study, power(study.k, study.n));
  const auto k = static_cast<PortIndex>(study.k), n = static_cast<PortIndex>(study.n);
  FlitNetwork network;
  network.nodes = static_cast<PortIndex>(power(study.k, study.n));
  network.node_ports = k;
  const PortIndex width = network.nodes / k;  // routers of a level
  lay_out(network, n * width, 2 * k, width, k);
  for (PortIndex port = 0; port < 2 * k; ++port)
    network.port_names.push_back(fmt::format("{} {}", port < k ? "child" : "parent", port % k));
  PortIndex span = width;  // routers of a level below one router of this one, or beside it
  for (PortIndex level = 0; level < n; ++level, span /= k) {
    for (PortIndex place = 0; place < width; ++place) {
      const PortIndex router = level * width + place;
      const PortIndex first = place / span * span;  // of the routers that share its nodes
      for (PortIndex child = 0; child < k; ++child) {
        if (level + 1 == n) {
          attach(network, place * k + child, router, child);
          continue;
        }
        const PortIndex branch = span / k, inside = place - first;
        const PortIndex below = (level + 1) * width + first + child * branch + inside % branch;
        const PortIndex up = k + inside / branch;
        connect(network, router, child, below, up, 1);
        connect(network, below, up, router, child, 1);
      }
      for (PortIndex node = 0; node < network.nodes; ++node) {
        // Down where the node is below, which is one way; else up by any parent, all of which reach it.
        const bool mine = node / k >= first && node / k < first + span;
        network.routes[static_cast<std::size_t>(router) * network.nodes + node] =
            mine ? entry((node - first * k) / span, 0, 0, level + 1 == n) : entry(k, k);
      }
    }
  }
  return network;
}

// p nodes, 2p - 1 links to the others of its group and p global links for each of the 2p routers of a
// group; every two of the 2p^2 + 1 groups have a link. Global link j of group G leads to group j, or j +
// 1 from G on.
FlitNetwork dragonfly(const FlitStudy& study) {
  if (study.n != 1)
    throw Error("n = " + std::to_string(study.n), "is not built: groups of a dragonfly have one dimension",
                "n = 1");
  const std::int64_t nodes =
      // Larger ones would overflow before they are refused.
      study.k > 64 ? kMostNodes + 1 : 2 * study.k * study.k * (2 * study.k * study.k + 1);
  if (study.k < 1 || nodes > kMostNodes) check_size(study, nodes);
  const auto p = static_cast<PortIndex>(study.k);
  const PortIndex group_routers = 2 * p, groups = group_routers * p + 1;
  FlitNetwork network;
  network.rule = RouteRule::global_hops;
  network.nodes = static_cast<PortIndex>(nodes);
  network.node_ports = p;
  const PortIndex local = p, global = p + group_routers - 1;  // the first ports of each kind
  lay_out(network, groups * group_routers, global + p);
  for (PortIndex port = 0; port < global + p; ++port)
    network.port_names.push_back(port < p        ? fmt::format("node {}", port)
                                 : port < global ? fmt::format("local {}", port - p)
                                                 : fmt::format("global {}", port - global));
  const auto local_port = [&](PortIndex from, PortIndex to) { return local + (to < from ? to : to - 1); };
  for (PortIndex router = 0; router < network.routers; ++router) {
    const PortIndex group = router / group_routers, place = router % group_routers;
    for (PortIndex i = 0; i < p; ++i) attach(network, router * p + i, router, i);
    for (PortIndex other = 0; other < group_routers; ++other) {
      if (other != place)
        connect(network, router, local_port(place, other), group * group_routers + other,
                // BookSim's latencies: 10 cycles within a group, 100 between groups.
                local_port(other, place), 10);
    }
    for (PortIndex i = 0; i < p; ++i) {
      const PortIndex link = place * p + i;
      const PortIndex to = link < group ? link : link + 1;
      const PortIndex back = group < to ? group : group - 1;
      connect(network, router, global + i, to * group_routers + back / p, global + back % p, 100);
    }
    for (PortIndex node = 0; node < network.nodes; ++node) {
      const PortIndex to = node / p, to_group = to / group_routers;
      RouteEntry& route = network.routes[static_cast<std::size_t>(router) * network.nodes + node];
      const PortIndex link = to_group < group ? to_group : to_group - 1;
      const PortIndex exit = to_group == group ? to % group_routers : link / p;  // within the group
      if (to == router)
        route = entry(node % p, 0, 0, true);
      else if (exit == place)
        route = entry(global + link % p, 0, 1);
      else
        route = entry(local_port(place, exit));
    }
  }
  return network;
}

}  // namespace

FlitNetwork make_flit_network(const FlitStudy& study) {
  switch (study.topology) {
    case FlitTopology::fat_tree:
      return fat_tree(study);
    case FlitTopology::dragonfly:
      return dragonfly(study);
    default:
      return cube(study);
  }
}

void FlitNetwork::number_ports() {
  router_of_port.clear();
  for (std::uint32_t router = 0; router < routers; ++router)
    router_of_port.resize(first_port[router + 1], router);
}

std::string FlitNetwork::input_name(std::uint32_t port) const {
  const std::uint32_t router = router_of_port[port];
  for (std::size_t output = 0; output < outputs.size(); ++output) {
    if (outputs[output].input != port) continue;
    const auto sender = static_cast<std::uint32_t>(output);
    return fmt::format("{} from {}", router_name(router),
                       sender >= ports() ? node_name(sender - ports()) : router_name(router_of_port[sender]));
  }
  return router_name(router);
}

std::string FlitNetwork::router_name(std::uint32_t router) const {
  return router_names.empty() ? fmt::format("router {}", router) : router_names[router];
}

std::string FlitNetwork::node_name(std::uint32_t node) const {
  return node_names.empty() ? fmt::format("node {}", node) : node_names[node];
}

}  // namespace armilla
