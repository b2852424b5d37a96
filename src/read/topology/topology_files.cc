#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/mapped_file.h"
#include "base/text.h"
#include "read/file_format.h"
#include "read/topology.h"
#include "read/topology/importers.h"
#include "read/traffic/roce_words.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostInFile = 1'000'000;

bool is_whole_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

// What of the node numbers in a file are switches, and what they are called.
struct NumberedNodes {
  std::vector<bool> is_switch;
  std::vector<std::string> names;
};

// "SOURCE DESTINATION RATE DELAY LOSS" per line, for both directions. Devices are numbered in the
// file's order.
Interconnect read_numbered_links(RoceWords& words, const NumberedNodes& numbered, std::int64_t links) {
  Interconnect graph;
  const auto nodes = static_cast<std::int64_t>(numbered.is_switch.size());
  std::vector<std::uint32_t> number(numbered.is_switch.size());
  for (const bool switches : {false, true}) {
    for (std::size_t node = 0; node < numbered.is_switch.size(); ++node) {
      if (numbered.is_switch[node] != switches) continue;
      number[node] = static_cast<std::uint32_t>(graph.nodes.size());
      graph.nodes.push_back(
          {switches ? NetworkNodeKind::switched : NetworkNodeKind::device, numbered.names[node]});
    }
  }
  for (std::int64_t i = 0; i < links; ++i) {
    const std::int64_t a =
        words.whole(fmt::format("the first node of link {} of {}", i + 1, links), 0, nodes - 1);
    const std::int64_t b =
        words.whole(fmt::format("the second node of link {} of {}", i + 1, links), 0, nodes - 1);
    if (a == b) words.fail(fmt::format("a link leads from node {} to itself", a));
    LinkFigures figures;
    figures.bandwidth = Bandwidth(static_cast<double>(words.bits_per_second("the link's rate")) / 8);
    if (!(figures.bandwidth.value > 0))
      words.fail(fmt::format("the link between {} and {} has no bandwidth", a, b), "leave it out");
    figures.latency = from_seconds(static_cast<double>(words.duration_ns("the link's delay")) * 1e-9);
    figures.loss = words.real("the link's probability of loss", 0, 1);
    if (figures.loss == 1) words.fail("a link that loses every packet", "leave it out");
    graph.cables.push_back(
        {number[static_cast<std::size_t>(a)], number[static_cast<std::size_t>(b)], figures, figures, 0});
  }
  return graph;
}

void read_switches(RoceWords& words, NumberedNodes& numbered, std::int64_t count, std::string_view kind) {
  const auto nodes = static_cast<std::int64_t>(numbered.is_switch.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t node = words.whole("a switch's number", 0, nodes - 1);
    if (numbered.is_switch[static_cast<std::size_t>(node)])
      words.fail(fmt::format("switch {} is named twice", node));
    numbered.is_switch[static_cast<std::size_t>(node)] = true;
    numbered.names[static_cast<std::size_t>(node)] = fmt::format("{}{}", kind, node);
  }
}

NumberedNodes numbered_nodes(std::int64_t nodes) {
  NumberedNodes numbered;
  numbered.is_switch.resize(static_cast<std::size_t>(nodes));
  for (std::int64_t node = 0; node < nodes; ++node) numbered.names.push_back(fmt::format("host{}", node));
  return numbered;
}

// HPCC and ASTRA-sim: "NODES SWITCHES LINKS", the switches' numbers, the links.
MachineLinks read_hpcc(RoceWords& words, const std::string& path) {
  const std::int64_t nodes = words.whole("the number of nodes", 1, kMostInFile);
  const std::int64_t switches = words.whole("the number of switches", 0, nodes);
  const std::int64_t links = words.whole("the number of links", 0, 16 * kMostInFile);
  NumberedNodes numbered = numbered_nodes(nodes);
  read_switches(words, numbered, switches, "switch");
  Interconnect graph = read_numbered_links(words, numbered, links);
  validate_interconnect(graph, path);
  Dimension dimension = one_dimension(graph, "fabric");
  return {std::move(graph), {std::move(dimension)}};
}

// SimAI: "NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE", the numbers of NVSwitches and then of
// switches, the links. The GPUs of a server are numbered one after the other.
MachineLinks read_simai(RoceWords& words, const std::string& path) {
  const std::int64_t nodes = words.whole("the number of nodes", 1, kMostInFile);
  const std::int64_t per_server = words.whole("the GPUs of a server", 1, nodes);
  const std::int64_t nvswitches = words.whole("the number of NVSwitches", 0, nodes);
  const std::int64_t switches = words.whole("the number of switches", 0, nodes);
  const std::int64_t links = words.whole("the number of links", 0, 16 * kMostInFile);
  words.skip_line();  // and the kind of GPU
  NumberedNodes numbered = numbered_nodes(nodes);
  read_switches(words, numbered, nvswitches, "nvswitch");
  const std::vector<bool> inner = numbered.is_switch;
  read_switches(words, numbered, switches, "switch");
  Interconnect graph = read_numbered_links(words, numbered, links);
  validate_interconnect(graph, path);
  const std::int64_t devices = graph.devices();
  if (devices % per_server != 0)
    throw Error(path, fmt::format("{} GPUs do not fill servers of {}", devices, per_server));

  // Links to NVSwitches are the servers' own; both dimensions have the figures of the devices' links.
  Dimension nvlink = {"nvlink", DimensionKind::switched, per_server, Bandwidth(0), Time(0)};
  Dimension network = one_dimension(graph, "network");
  network.size = devices / per_server;
  network.bandwidth = Bandwidth(0);
  for (Cable& cable : graph.cables) {
    const bool own = graph.nodes[cable.a].name.starts_with("nvswitch") ||
                     graph.nodes[cable.b].name.starts_with("nvswitch");
    cable.dimension = own ? 0 : 1;
    const bool to_device = graph.nodes[cable.a].kind == NetworkNodeKind::device ||
                           graph.nodes[cable.b].kind == NetworkNodeKind::device;
    Dimension& dimension = own ? nvlink : network;
    if (!to_device) continue;
    dimension.bandwidth = std::max(dimension.bandwidth, cable.there.bandwidth);
    if (own) nvlink.latency = std::max(nvlink.latency, cable.there.latency);
  }
  if (!(nvlink.bandwidth.value > 0)) nvlink.bandwidth = network.bandwidth;
  if (!(network.bandwidth.value > 0)) network.bandwidth = nvlink.bandwidth;
  return {std::move(graph), {std::move(nvlink), std::move(network)}};
}

// htsim's fat trees (its FatTreeTopology): "Nodes", "Tiers", "Podsize", then per tier, from the one at the
// hosts upwards, the speed and latency of its links down, and the radices.
MachineLinks read_htsim(RoceWords& words, const std::string& path) {
  struct Tier {
    std::int64_t gigabits = 0, up = 0, down = 0, bundle = 1;
    double link_ns = 0, switch_ns = 0;
  };
  std::int64_t nodes = 0, tiers = 0, podsize = 0;
  std::vector<Tier> tier(3);
  std::int64_t here = -1;
  while (const auto key = words.next()) {
    const std::string name = lower_case(std::string(*key));
    if (name.starts_with('#')) {
      words.skip_line();
      continue;
    }
    const auto whole = [&](std::int64_t most = kMostInFile) { return words.whole(name, 0, most, true); };
    const auto of_tier = [&]() -> Tier& {
      if (here < 0) words.fail(fmt::format("{} stands before the first Tier", name));
      return tier[static_cast<std::size_t>(here)];
    };
    if (name == "nodes") {
      nodes = whole();
    } else if (name == "tiers") {
      tiers = words.whole(name, 2, 3, true);
    } else if (name == "podsize") {
      podsize = whole();
    } else if (name == "tier") {
      here = words.whole(name, 0, 2, true);
    } else if (name == "downlink_speed_gbps") {
      of_tier().gigabits = whole();
    } else if (name == "radix_up") {
      of_tier().up = whole();
    } else if (name == "radix_down") {
      of_tier().down = whole();
    } else if (name == "bundle") {
      of_tier().bundle = words.whole(name, 1, 1024, true);
    } else if (name == "downlink_latency_ns") {
      of_tier().link_ns = words.real(name, 0, 1e12, true);
    } else if (name == "switch_latency_ns") {
      of_tier().switch_ns = words.real(name, 0, 1e12, true);
    } else if (name == "queue_up" || name == "queue_down" || name == "oversubscribed") {
      words.skip_line();  // of htsim's own queues; what the radices say already
    } else {
      words.fail(fmt::format("unknown key '{:.60}'", name));
    }
  }
  if (nodes < 1 || tiers < 2) throw Error(path, "says neither Nodes nor Tiers", "as htsim's .topo files do");
  if (podsize < 1) podsize = nodes;
  const auto need = [&](bool holds, const std::string& what) {
    if (!holds) throw Error(path, what);
  };
  const std::int64_t down0 = tier[0].down, up0 = tier[0].up;
  need(down0 > 0 && up0 > 0, "Tier 0 needs Radix_Down and Radix_Up");
  need(tier[0].gigabits > 0 && tier[1].gigabits > 0 && (tiers == 2 || tier[2].gigabits > 0),
       "a tier has no Downlink_speed_Gbps");
  need(nodes % down0 == 0, fmt::format("{} nodes do not fill switches with {} links down", nodes, down0));
  need(tiers == 2 || (nodes % podsize == 0 && podsize % down0 == 0),
       fmt::format(
           "pods of {} nodes do not divide {} nodes, or switches with {} links down do not divide them",
           podsize, nodes, down0));
  Interconnect graph;
  const auto nodes_of = [&](NetworkNodeKind kind, const std::string& name, std::int64_t count) {
    const auto first = static_cast<std::int64_t>(graph.nodes.size());
    need(first + count <= kMostInFile, fmt::format("has more than {} nodes", kMostInFile));
    for (std::int64_t i = 0; i < count; ++i) graph.nodes.push_back({kind, fmt::format("{}{}", name, i)});
    return first;
  };
  // A switch's latency counts with the link below it, on the way down as on the way up once.
  const auto join = [&](std::int64_t low, std::int64_t high, std::size_t t) {
    const LinkFigures up = {Bandwidth(static_cast<double>(tier[t].gigabits) * 1e9 / 8),
                            from_seconds((tier[t].link_ns + tier[t].switch_ns) * 1e-9)};
    LinkFigures down = up;
    down.latency = from_seconds((tier[t].link_ns + (t > 0 ? tier[t - 1].switch_ns : 0)) * 1e-9);
    for (std::int64_t i = 0; i < tier[t].bundle; ++i)
      graph.cables.push_back(
          {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high), up, down, 0});
  };
  nodes_of(NetworkNodeKind::device, "host", nodes);
  const std::int64_t tors = nodes / down0;
  const std::int64_t tor = nodes_of(NetworkNodeKind::switched, "tor", tors);
  for (std::int64_t host = 0; host < nodes; ++host) join(host, tor + host / down0, 0);
  const std::int64_t above = up0 / tier[1].bundle;
  need(above > 0 && up0 % tier[1].bundle == 0, "Bundle of Tier 1 does not divide Radix_Up of Tier 0");
  const auto need_top = [&](std::int64_t lower, std::size_t t) {
    need(tier[t].down == lower * tier[t].bundle,
         fmt::format("Radix_Down {} of Tier {}: a top switch has {} links here, {} to each of {} switches",
                     tier[t].down, t, lower * tier[t].bundle, tier[t].bundle, lower));
  };
  if (tiers == 2) {
    need_top(tors, 1);
    const std::int64_t spine = nodes_of(NetworkNodeKind::switched, "spine", above);
    for (std::int64_t i = 0; i < tors; ++i) {
      for (std::int64_t j = 0; j < above; ++j) join(tor + i, spine + j, 1);
    }
  } else {
    const std::int64_t pods = nodes / podsize, tors_of_pod = podsize / down0;
    const std::int64_t agg = nodes_of(NetworkNodeKind::switched, "agg", pods * above);
    for (std::int64_t i = 0; i < tors; ++i) {
      for (std::int64_t j = 0; j < above; ++j) join(tor + i, agg + i / tors_of_pod * above + j, 1);
    }
    const std::int64_t up1 = tier[1].up / tier[2].bundle;
    need(up1 > 0, "Tier 1 needs Radix_Up");
    need_top(pods, 2);
    const std::int64_t core = nodes_of(NetworkNodeKind::switched, "core", above * up1);
    for (std::int64_t i = 0; i < pods * above; ++i) {
      for (std::int64_t j = 0; j < up1; ++j) join(agg + i, core + i % above * up1 + j, 2);
    }
  }
  validate_interconnect(graph, path);
  Dimension dimension = one_dimension(graph, "fabric");
  return {std::move(graph), {std::move(dimension)}};
}

}  // namespace

MachineLinks read_topology_file(const std::string& path) {
  const MappedFile file(path);
  switch (sniff(file.bytes())) {
    case FileKind::infragraph:
      return read_infragraph(path);
    case FileKind::booksim_config:
      return read_booksim_links(path);
    case FileKind::astra1_network:
    case FileKind::astra2_network:
      return read_astra_links(path, sniff(file.bytes()) == FileKind::astra2_network);
    default:
      break;
  }
  const std::string_view text(file.bytes().data(), file.bytes().size());
  RoceWords head(text, path);
  std::size_t numbers = 0;
  std::optional<std::string_view> word = head.next();
  if (word && !is_whole_number(*word)) {
    RoceWords words(text, path);
    return read_htsim(words, path);
  }
  for (; word && is_whole_number(*word); word = head.next(true)) ++numbers;
  RoceWords words(text, path);
  return numbers == 5 ? read_simai(words, path) : read_hpcc(words, path);
}

}  // namespace armilla
