#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/error.h"
#include "base/units_text.h"
#include "read/topology.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;

// Nodes in the order of their numbers: devices first.
class GraphBuilder {
 public:
  std::uint32_t node(NetworkNodeKind kind, std::string name) {
    if (static_cast<std::int64_t>(graph_.nodes.size()) >= kMostNodes)
      throw Error("topology", fmt::format("has more than {} nodes", kMostNodes), "make it smaller");
    graph_.nodes.push_back({kind, std::move(name)});
    return static_cast<std::uint32_t>(graph_.nodes.size() - 1);
  }
  // The first of `count`, called name0, name1, ...
  std::uint32_t nodes(NetworkNodeKind kind, const std::string& name, std::int64_t count) {
    const auto first = static_cast<std::uint32_t>(graph_.nodes.size());
    for (std::int64_t i = 0; i < count; ++i) node(kind, fmt::format("{}{}", name, i));
    return first;
  }
  void join(std::int64_t a, std::int64_t b, Bandwidth bandwidth, Time latency, std::uint32_t dimension = 0) {
    if (static_cast<std::int64_t>(graph_.cables.size()) >= 16 * kMostNodes)
      throw Error("topology", fmt::format("has more than {} links", 16 * kMostNodes), "make it smaller");
    const LinkFigures figures = {bandwidth, latency, 0};
    graph_.cables.push_back(
        {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), figures, figures, dimension});
  }
  void let_devices_forward() { graph_.devices_forward = true; }

  MachineLinks in_one_dimension(const std::string& name) && {
    Dimension dimension = one_dimension(graph_, name);
    return {std::move(graph_), {std::move(dimension)}};
  }
  MachineLinks in(std::vector<Dimension> dimensions) && { return {std::move(graph_), std::move(dimensions)}; }

 private:
  Interconnect graph_;
};

std::int64_t count_of(const ParameterValues& values, std::string_view name, std::int64_t least) {
  const std::int64_t count = values.count(name);
  if (count < least || count > kMostNodes)
    throw Error(values.where(name), fmt::format("{} is out of range", count),
                fmt::format("from {} to {}", least, kMostNodes));
  return count;
}

// Links away from devices are thinner, not fewer: any share will do.
double oversubscription_of(const ParameterValues& values) {
  const double times = values.number("oversubscription");
  if (times < 1 || times > static_cast<double>(kMostNodes))
    throw Error(values.where("oversubscription"), fmt::format("{:g} is out of range", times),
                fmt::format("from 1, which is none, to {}", kMostNodes));
  return times;
}

constexpr ParameterInfo kBandwidthParameter = {"bandwidth", ParameterType::bandwidth, "400Gbps",
                                               "of a device's link, per direction"};
constexpr ParameterInfo kLatencyParameter = {"latency", ParameterType::time, "500ns", "of every link"};
constexpr ParameterInfo kOversubscription = {
    "oversubscription", ParameterType::number, "1",
    "bandwidth of a leaf switch towards devices per bandwidth towards spines"};

constexpr std::array kFatTreeParameters = {
    ParameterInfo{"k", ParameterType::count, "4", "ports of every switch, even; k^3 / 4 devices"},
    ParameterInfo{"oversubscription", ParameterType::number, "1",
                  "bandwidth of an edge switch towards devices per bandwidth away from them"},
    kBandwidthParameter, kLatencyParameter};

// Al-Fares, Loukissas, Vahdat, SIGCOMM 2008: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2
// core switches. Oversubscribed, all links above the edge switches are as much thinner.
MachineLinks make_fat_tree(const ParameterValues& values) {
  const std::int64_t k = count_of(values, "k", 2), half = k / 2;
  if (k % 2 != 0)
    throw Error(values.where("k"), fmt::format("{} cannot be halved", typed_count(k, "port")),
                "an even number");
  const Bandwidth bandwidth = values.bandwidth("bandwidth");
  const Bandwidth up(bandwidth.value / oversubscription_of(values));
  const Time latency = values.time("latency");
  GraphBuilder builder;
  const std::int64_t devices = checked_multiply(k * half, half, values.where("k"));
  // Not all of a tree that is too large: one node more than may be is enough to be refused.
  builder.nodes(NetworkNodeKind::device, "gpu", std::min(devices, kMostNodes + 1));
  const std::int64_t edge = builder.nodes(NetworkNodeKind::switched, "edge", k * half);
  const std::int64_t middle = builder.nodes(NetworkNodeKind::switched, "agg", k * half);
  const std::int64_t core = builder.nodes(NetworkNodeKind::switched, "core", half * half);
  for (std::int64_t device = 0; device < devices; ++device)
    builder.join(device, edge + device / half, bandwidth, latency);
  for (std::int64_t i = 0; i < k * half; ++i) {
    const std::int64_t pod = i / half, place = i % half;
    for (std::int64_t j = 0; j < half; ++j) builder.join(edge + i, middle + pod * half + j, up, latency);
    // Aggregation switches in the same place of their pods share core switches, so that any two pods have
    // (k/2)^2 ways.
    for (std::int64_t j = 0; j < half; ++j) builder.join(middle + i, core + place * half + j, up, latency);
  }
  return std::move(builder).in_one_dimension("fabric");
}

constexpr std::array kLeafSpineParameters = {
    ParameterInfo{"leaves", ParameterType::count, "4", "leaf switches"},
    ParameterInfo{"hosts", ParameterType::count, "8", "devices of a leaf switch"},
    ParameterInfo{"spines", ParameterType::count, "4", "spine switches, each joined with every leaf switch"},
    kOversubscription,
    kBandwidthParameter,
    kLatencyParameter};

MachineLinks make_leaf_spine(const ParameterValues& values) {
  const std::int64_t leaves = count_of(values, "leaves", 1), hosts = count_of(values, "hosts", 1),
                     spines = count_of(values, "spines", 1);
  const Bandwidth bandwidth = values.bandwidth("bandwidth");
  // A leaf's links to all spines together carry what its devices do, but for the oversubscription.
  const Bandwidth up(bandwidth.value * static_cast<double>(hosts) / static_cast<double>(spines) /
                     oversubscription_of(values));
  const Time latency = values.time("latency");
  GraphBuilder builder;
  builder.nodes(NetworkNodeKind::device, "gpu", leaves * hosts);
  const std::int64_t leaf = builder.nodes(NetworkNodeKind::switched, "leaf", leaves);
  const std::int64_t spine = builder.nodes(NetworkNodeKind::switched, "spine", spines);
  for (std::int64_t device = 0; device < leaves * hosts; ++device)
    builder.join(device, leaf + device / hosts, bandwidth, latency);
  for (std::int64_t i = 0; i < leaves; ++i) {
    for (std::int64_t j = 0; j < spines; ++j) builder.join(leaf + i, spine + j, up, latency);
  }
  return std::move(builder).in_one_dimension("fabric");
}

constexpr std::array kRailPodsParameters = {
    ParameterInfo{"gpus", ParameterType::count, "8", "devices of a node, joined by a switch; so many rails"},
    ParameterInfo{"nodes", ParameterType::count, "16", "nodes of a pod: the devices of a leaf switch"},
    ParameterInfo{"pods", ParameterType::count, "1", "each with a leaf switch for every rail"},
    ParameterInfo{"spines", ParameterType::count, "8", "spine switches, each joined with every leaf switch"},
    kOversubscription,
    ParameterInfo{"nvlink", ParameterType::bandwidth, "450GB/s",
                  "of a device within its node, per direction"},
    ParameterInfo{"nvlink-latency", ParameterType::time, "500ns", "of a link within a node"},
    ParameterInfo{"bandwidth", ParameterType::bandwidth, "400Gbps", "of a device's rail, per direction"},
    kLatencyParameter,
    ParameterInfo{"pcie", ParameterType::bandwidth, "",
                  "between a device and its network interface, which is a node then; else they are one"},
};

// Rank order: the devices of node 0, of node 1, ... Device g of every node of a pod hangs on leaf switch
// g of the pod.
MachineLinks make_rail_pods(const ParameterValues& values) {
  const std::int64_t gpus = count_of(values, "gpus", 1), nodes = count_of(values, "nodes", 1),
                     pods = count_of(values, "pods", 1), spines = count_of(values, "spines", 1);
  const Bandwidth nvlink = values.bandwidth("nvlink"), bandwidth = values.bandwidth("bandwidth");
  const Time nvlink_latency = values.time("nvlink-latency"), latency = values.time("latency");
  const Bandwidth up(bandwidth.value * static_cast<double>(nodes) / static_cast<double>(spines) /
                     oversubscription_of(values));
  const std::int64_t all_nodes = checked_multiply(nodes, pods, "topology");
  const std::int64_t devices = checked_multiply(all_nodes, gpus, "topology");
  GraphBuilder builder;
  for (std::int64_t device = 0; device < devices; ++device)
    builder.node(NetworkNodeKind::device, fmt::format("gpu{}.{}", device / gpus, device % gpus));
  const bool has_nics = values.is_set("pcie");
  std::int64_t nic = 0;
  for (std::int64_t device = 0; has_nics && device < devices; ++device) {
    const std::uint32_t made =
        builder.node(NetworkNodeKind::nic, fmt::format("nic{}.{}", device / gpus, device % gpus));
    if (device == 0) nic = made;
  }
  const std::int64_t inner = builder.nodes(NetworkNodeKind::switched, "nvswitch", all_nodes);
  const std::int64_t leaf = builder.nodes(NetworkNodeKind::switched, "leaf", pods * gpus);
  const std::int64_t spine = builder.nodes(NetworkNodeKind::switched, "spine", spines);
  for (std::int64_t device = 0; device < devices; ++device) {
    const std::int64_t node = device / gpus, rail = device % gpus, pod = node / nodes;
    builder.join(device, inner + node, nvlink, nvlink_latency, 0);
    if (has_nics) builder.join(device, nic + device, values.bandwidth("pcie"), latency, 1);
    builder.join(has_nics ? nic + device : device, leaf + pod * gpus + rail, bandwidth, latency, 1);
  }
  for (std::int64_t i = 0; i < pods * gpus; ++i) {
    for (std::int64_t j = 0; j < spines; ++j) builder.join(leaf + i, spine + j, up, latency, 1);
  }
  // Links from one device to another, the farthest way; a switched dimension is two links, so each takes half
  // of it.
  const double hops = (pods > 1 ? 4 : 2) + (has_nics ? 2 : 0);
  const Bandwidth rail = has_nics ? std::min(bandwidth, values.bandwidth("pcie")) : bandwidth;
  return std::move(builder).in(
      {{"nvlink", DimensionKind::switched, gpus, nvlink, nvlink_latency},
       {"rail", DimensionKind::switched, all_nodes, rail, from_seconds(in_seconds(latency) * hops / 2)}});
}

constexpr ParameterInfo kGlobalLatency = {"global-latency", ParameterType::time, "1us",
                                          "of a link between groups"};
constexpr std::array kDragonflyParameters = {
    ParameterInfo{"routers", ParameterType::count, "4", "a, of a group, each joined with every other"},
    ParameterInfo{"hosts", ParameterType::count, "2", "p, devices of a router"},
    ParameterInfo{"global", ParameterType::count, "2", "h, links of a router to other groups"},
    ParameterInfo{"groups", ParameterType::count, "", "at most a h + 1, which is the default"},
    kBandwidthParameter,
    kLatencyParameter,
    kGlobalLatency};

// How many groups there are, of `switches` each with `global` links to other groups.
std::int64_t groups_of(const ParameterValues& values, std::int64_t switches, std::string_view kind,
                       std::int64_t global) {
  const std::int64_t most = checked_multiply(switches, global, "topology") + 1;
  const std::int64_t groups = values.is_set("groups") ? count_of(values, "groups", 1) : most;
  if (groups > most) {
    throw Error(values.where("groups"),
                fmt::format("{} groups, and {} {} with {} each {} {}", groups, switches, kind,
                            counted(global, "global link"), switches == 1 ? "reaches" : "reach",
                            typed_count(most - 1, "other")),
                fmt::format("at most {}", most));
  }
  return groups;
}

// A cable between any two groups; `node(group, i)` is the i-th switch of a group.
template <class Node>
void join_groups(GraphBuilder& builder, std::int64_t groups, std::int64_t global, const Node& node,
                 const LinkFigures& figures) {
  for (std::int64_t i = 0; i < groups; ++i) {
    for (std::int64_t k = i + 1; k < groups; ++k) {
      // Each end counts its links from its own group on, which gives every two groups one cable.
      const std::int64_t here = k - i - 1, there = i + groups - k - 1;
      builder.join(node(i, here / global), node(k, there / global), figures.bandwidth, figures.latency);
    }
  }
}

// Kim, Dally, Scott, Abts, ISCA 2008. Group i is joined with group i + 1 + n (around) by its n-th
// global link.
MachineLinks make_dragonfly(const ParameterValues& values) {
  const std::int64_t a = count_of(values, "routers", 1), p = count_of(values, "hosts", 1),
                     h = count_of(values, "global", 1);
  const std::int64_t groups = groups_of(values, a, "routers", h);
  const Bandwidth bandwidth = values.bandwidth("bandwidth");
  const Time latency = values.time("latency"), global_latency = values.time("global-latency");
  const std::int64_t routers = checked_multiply(groups, a, "topology");
  GraphBuilder builder;
  builder.nodes(NetworkNodeKind::device, "gpu", checked_multiply(routers, p, "topology"));
  const std::int64_t first = builder.nodes(NetworkNodeKind::switched, "router", routers);
  for (std::int64_t device = 0; device < routers * p; ++device)
    builder.join(device, first + device / p, bandwidth, latency);
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t i = 0; i < a; ++i) {
      for (std::int64_t j = i + 1; j < a; ++j)
        builder.join(first + group * a + i, first + group * a + j, bandwidth, latency);
    }
  }
  join_groups(builder, groups, h, [&](std::int64_t group, std::int64_t i) { return first + group * a + i; },
              {bandwidth, global_latency, 0});
  return std::move(builder).in_one_dimension("fabric");
}

constexpr std::array kDragonflyPlusParameters = {
    ParameterInfo{"leaves", ParameterType::count, "4", "leaf switches of a group"},
    ParameterInfo{"spines", ParameterType::count, "4", "of a group, each joined with every leaf switch"},
    ParameterInfo{"hosts", ParameterType::count, "4", "devices of a leaf switch"},
    ParameterInfo{"global", ParameterType::count, "1", "links of a spine switch to other groups"},
    ParameterInfo{"groups", ParameterType::count, "", "at most spines x global + 1, which is the default"},
    kBandwidthParameter,
    kLatencyParameter,
    kGlobalLatency};

// Shpiner, Haramaty, Eliad, Zdornov, Gafni, Zahavi, "Dragonfly+: low cost topology for scaling datacenters",
// HiPINEB 2017: a group is a leaf-spine, and its spine switches have the links to other groups.
MachineLinks make_dragonfly_plus(const ParameterValues& values) {
  const std::int64_t leaves = count_of(values, "leaves", 1), spines = count_of(values, "spines", 1),
                     hosts = count_of(values, "hosts", 1), global = count_of(values, "global", 1);
  const std::int64_t groups = groups_of(values, spines, "spine switches", global);
  const Bandwidth bandwidth = values.bandwidth("bandwidth");
  const Time latency = values.time("latency");
  const std::int64_t all_leaves = checked_multiply(groups, leaves, "topology");
  GraphBuilder builder;
  builder.nodes(NetworkNodeKind::device, "gpu", checked_multiply(all_leaves, hosts, "topology"));
  const std::int64_t leaf = builder.nodes(NetworkNodeKind::switched, "leaf", all_leaves);
  const std::int64_t spine =
      builder.nodes(NetworkNodeKind::switched, "spine", checked_multiply(groups, spines, "topology"));
  for (std::int64_t device = 0; device < all_leaves * hosts; ++device)
    builder.join(device, leaf + device / hosts, bandwidth, latency);
  for (std::int64_t i = 0; i < all_leaves; ++i) {
    for (std::int64_t j = 0; j < spines; ++j)
      builder.join(leaf + i, spine + i / leaves * spines + j, bandwidth, latency);
  }
  join_groups(builder, groups, global,
              [&](std::int64_t group, std::int64_t i) { return spine + group * spines + i; },
              {bandwidth, values.time("global-latency"), 0});
  return std::move(builder).in_one_dimension("fabric");
}

constexpr ParameterInfo axis(std::string_view name, std::string_view default_value) {
  return {name, ParameterType::count, default_value, "devices along this axis"};
}
constexpr ParameterInfo kGridBandwidth = {"bandwidth", ParameterType::bandwidth, "50GB/s",
                                          "of every link, per direction"};
constexpr std::array kTorusParameters = {axis("x", "4"), axis("y", "4"), axis("z", "1"), axis("w", "1"),
                                         axis("v", "1"), axis("u", "1"), kGridBandwidth, kLatencyParameter};

std::vector<Dimension> torus_axes(const ParameterValues& values) {
  std::vector<Dimension> dimensions;
  for (const std::string_view name : {"x", "y", "z", "w", "v", "u"}) {
    const std::int64_t size = count_of(values, name, 1);
    if (size > 1)
      dimensions.push_back({std::string(name), DimensionKind::ring, size, values.bandwidth("bandwidth"),
                            values.time("latency")});
  }
  if (dimensions.empty()) throw Error("topology", "has a single device");
  std::int64_t devices = 1;
  for (const Dimension& dimension : dimensions) {
    devices = checked_multiply(devices, dimension.size, "topology");
    if (devices > kMostNodes)
      throw Error("topology", fmt::format("has more than {} nodes", kMostNodes), "make it smaller");
  }
  return dimensions;
}

MachineLinks make_torus(const ParameterValues& values) {
  return {{}, torus_axes(values)};
}

MachineLinks make_mesh(const ParameterValues& values) {
  std::vector<Dimension> dimensions = torus_axes(values);
  std::int64_t devices = 1;
  for (const Dimension& dimension : dimensions)
    devices = checked_multiply(devices, dimension.size, "topology");
  GraphBuilder builder;
  builder.let_devices_forward();
  builder.nodes(NetworkNodeKind::device, "gpu", std::min(devices, kMostNodes + 1));
  std::int64_t stride = 1;
  for (std::uint32_t d = 0; d < dimensions.size(); ++d) {
    const Dimension& dimension = dimensions[d];
    for (std::int64_t device = 0; device < devices; ++device) {
      if (device / stride % dimension.size + 1 < dimension.size)
        builder.join(device, device + stride, dimension.bandwidth, dimension.latency, d);
    }
    stride *= dimension.size;
  }
  return std::move(builder).in(std::move(dimensions));
}

constexpr std::array kFullyConnectedParameters = {
    ParameterInfo{"size", ParameterType::count, "8", "devices, each joined with every other"}, kGridBandwidth,
    kLatencyParameter};

MachineLinks make_fully_connected(const ParameterValues& values) {
  return {{},
          {{"links", DimensionKind::fully_connected, count_of(values, "size", 2),
            values.bandwidth("bandwidth"), values.time("latency")}}};
}

constexpr std::array kTopologies = {
    TopologyInfo{"fat-tree", "three tiers of switches with k ports (Al-Fares et al., SIGCOMM 2008)",
                 kFatTreeParameters, make_fat_tree},
    TopologyInfo{"leaf-spine", "two tiers of switches, the upper one as much thinner as it is told to be",
                 kLeafSpineParameters, make_leaf_spine},
    TopologyInfo{
        "rail-pods",
        "nodes of devices behind a switch of their own, and a leaf switch per pod for the devices of "
        "one place in all nodes (rails), below spines",
        kRailPodsParameters, make_rail_pods},
    TopologyInfo{"dragonfly", "groups of routers, any two joined by one link (Kim et al., ISCA 2008)",
                 kDragonflyParameters, make_dragonfly},
    TopologyInfo{
        "dragonfly-plus",
        "groups of leaf and spine switches, any two joined by one link (Shpiner et al., HiPINEB 2017)",
        kDragonflyPlusParameters, make_dragonfly_plus},
    TopologyInfo{"torus", "rings along up to six axes", kTorusParameters, make_torus},
    TopologyInfo{"mesh", "the same without the links around; devices forward", kTorusParameters, make_mesh},
    TopologyInfo{"fully-connected", "a link between any two devices", kFullyConnectedParameters,
                 make_fully_connected},
};

}  // namespace

std::span<const TopologyInfo> topologies() {
  return kTopologies;
}

bool names_topology(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  return std::ranges::find(topologies(), name, &TopologyInfo::name) != topologies().end();
}

MachineLinks make_topology(const ComponentChoice& choice) {
  const TopologyInfo& info = find_component("topology", topologies(), choice.name, choice.where);
  try {
    return info.make(ParameterValues(info.name, info.parameters, choice.parameters));
  } catch (const Error& error) {  // the generators know no place
    if (error.where != "topology" || choice.where.empty()) throw;
    throw Error(choice.where, error.message, error.hint);
  }
}

Dimension one_dimension(const Interconnect& graph, const std::string& name) {
  const auto devices = static_cast<std::size_t>(graph.devices());
  std::vector<double> widest(graph.nodes.size());
  std::vector<std::vector<std::pair<std::uint32_t, Time>>> near(graph.nodes.size());
  for (const Cable& cable : graph.cables) {
    widest[cable.a] = std::max(widest[cable.a], cable.there.bandwidth.value);
    widest[cable.b] = std::max(widest[cable.b], cable.back.bandwidth.value);
    near[cable.a].emplace_back(cable.b, cable.there.latency);
    near[cable.b].emplace_back(cable.a, cable.back.latency);
  }
  // Breadth first: the shortest ways in links.
  constexpr Time kUnknown(-1);
  std::vector<Time> latency(graph.nodes.size(), kUnknown);
  std::vector<std::uint32_t> waiting = {0};
  latency[0] = Time(0);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (const auto& [next, link] : near[waiting[i]]) {
      if (latency[next] != kUnknown) continue;
      latency[next] = later(latency[waiting[i]], link);
      waiting.push_back(next);
    }
  }
  Dimension dimension;
  dimension.name = name;
  dimension.kind = DimensionKind::switched;
  dimension.size = static_cast<std::int64_t>(devices);
  dimension.bandwidth =
      Bandwidth(*std::min_element(widest.begin(), widest.begin() + static_cast<std::ptrdiff_t>(devices)));
  dimension.latency =
      *std::max_element(latency.begin(), latency.begin() + static_cast<std::ptrdiff_t>(devices)) / 2;
  if (dimension.latency < Time(0)) dimension.latency = Time(0);
  return dimension;
}

}  // namespace armilla
