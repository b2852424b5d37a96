#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/mapped_file.h"
#include "base/text.h"
#include "base/units_text.h"
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
      graph.nodes.push_back({switches ? NetworkNodeKind::switched : NetworkNodeKind::device,
                             numbered.names[node], static_cast<std::int64_t>(node)});
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

// Where links of the file are not announced, that is what is wrong, and not what is missing without them.
void validate_links(const Interconnect& graph, const std::string& path, const std::string& surplus) {
  try {
    validate_interconnect(graph, path);
  } catch (const Error& error) {
    if (surplus.empty()) throw;
    throw Error("", fmt::format("{} are left out, and {}", surplus, error.message),
                "announce them in the first line");
  }
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
  std::string surplus = surplus_links(words, links);
  validate_links(graph, path, surplus);
  Dimension dimension = one_dimension(graph, "fabric");
  return {std::move(graph), {std::move(dimension)}, std::move(surplus)};
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
  std::string surplus = surplus_links(words, links);
  validate_links(graph, path, surplus);
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
  return {std::move(graph), {std::move(nvlink), std::move(network)}, std::move(surplus)};
}

// htsim's fat trees (its FatTreeTopology): "Nodes", "Tiers", "Podsize", then per tier, from the one at the
// hosts upwards, the speed and latency of its links down, and the radices. Keys are spelled in any case.
struct HtsimTier {
  std::string where;  // FILE:LINE; empty: not there
  std::int64_t gigabits = 0, up = 0, down = 0, link_ns = 0, switch_ns = 0;
  std::int64_t bundle = 0, oversubscribed = 0;  // 0: not said, which means 1
};

struct HtsimTree {
  std::int64_t nodes = 0, tiers = 0, podsize = 0;
  std::array<HtsimTier, 3> tier;  // the last is of three tiers only
  std::string queues;             // where the first key of its own queues stands, and its name; or empty
};

HtsimTree read_htsim_keys(RoceWords& words, const std::string& path) {
  constexpr std::int64_t kMostBundle = 1024, kMostNs = 1'000'000'000'000;
  struct Key {
    std::string_view name;
    std::int64_t HtsimTier::*field;
    std::int64_t least, most;
  };
  constexpr Key kOfTier[] = {
      {"downlink_speed_gbps", &HtsimTier::gigabits, 1, kMostInFile},
      {"radix_up", &HtsimTier::up, 1, kMostInFile},
      {"radix_down", &HtsimTier::down, 1, kMostInFile},
      {"bundle", &HtsimTier::bundle, 1, kMostBundle},
      {"oversubscribed", &HtsimTier::oversubscribed, 1, kMostInFile},
      {"downlink_latency_ns", &HtsimTier::link_ns, 1, kMostNs},
      {"switch_latency_ns", &HtsimTier::switch_ns, 0, kMostNs},
  };
  HtsimTree tree;
  std::int64_t here = -1;
  while (const auto key = words.next()) {
    const std::string name = lower_case(std::string(*key));
    if (name.starts_with('#')) {
      words.skip_line();
      continue;
    }
    const auto of_header = [&](std::int64_t& value, std::int64_t least, std::int64_t most) {
      if (here >= 0) words.fail(fmt::format("{} stands after the first Tier", *key));
      if (value > 0) words.fail(fmt::format("{} is given twice", *key));
      value = words.whole(*key, least, most, true);
    };
    if (name == "nodes") {
      of_header(tree.nodes, 1, kMostInFile);
    } else if (name == "tiers") {
      of_header(tree.tiers, 2, 3);
    } else if (name == "podsize") {
      of_header(tree.podsize, 1, kMostInFile);
    } else if (name == "tier") {
      here = words.whole(*key, 0, 2, true);
      HtsimTier& tier = tree.tier[static_cast<std::size_t>(here)];
      if (!tier.where.empty()) words.fail(fmt::format("Tier {} is there twice", here));
      tier.where = words.where();
    } else if (name == "queue_up" || name == "queue_down") {
      if (tree.queues.empty()) tree.queues = fmt::format("{}: {}", words.where(), *key);
      words.skip_line();  // of htsim's own queues
    } else {
      const auto found = std::ranges::find(kOfTier, name, &Key::name);
      if (found == std::end(kOfTier)) words.fail(fmt::format("unknown key '{:.60}'", *key));
      if (here < 0) words.fail(fmt::format("{} stands before the first Tier", *key));
      if (here == 2 && name == "radix_up") words.fail("Tier 2 has no links up", "omit Radix_Up");
      std::int64_t& value = tree.tier[static_cast<std::size_t>(here)].*(found->field);
      if (value != 0) words.fail(fmt::format("{} of Tier {} is given twice", *key, here));
      value = words.whole(*key, found->least, found->most, true);
    }
  }
  for (const auto& [name, value] :
       {std::pair{"Nodes", tree.nodes}, std::pair{"Tiers", tree.tiers}, std::pair{"Podsize", tree.podsize}}) {
    if (value == 0)
      throw Error(path, fmt::format("{} is missing", name),
                  "htsim's .topo files begin with Nodes, Tiers and Podsize");
  }
  for (std::int64_t t = 0; t < tree.tiers; ++t) {
    HtsimTier& tier = tree.tier[static_cast<std::size_t>(t)];
    if (tier.where.empty())
      throw Error(path, fmt::format("Tiers is {}, and Tier {} is missing", tree.tiers, t));
    const auto need = [&](std::string_view name, std::int64_t value) {
      if (value == 0) throw Error(tier.where, fmt::format("Tier {} has no {}", t, name));
    };
    need("Downlink_speed_Gbps", tier.gigabits);
    need("Downlink_Latency_ns", tier.link_ns);
    need("Radix_Down", tier.down);
    if (t + 1 < tree.tiers) need("Radix_Up", tier.up);
    tier.bundle = std::max<std::int64_t>(1, tier.bundle);
    tier.oversubscribed = std::max<std::int64_t>(1, tier.oversubscribed);
  }
  return tree;
}

std::string counted_links(std::int64_t links, std::string_view direction) {
  return fmt::format("{} {}", counted(links, "link"), direction);
}

// What htsim computes of the numbers before it builds the tree. It derives how many switches there are from
// bandwidths and Oversubscribed, and refuses what does not fit the radices.
void check_htsim(const HtsimTree& tree, const std::string& path) {
  const auto& tier = tree.tier;
  const auto need = [&](bool holds, const std::string& where, const std::string& what,
                        const std::string& hint = {}) {
    if (!holds) throw Error(where, what, hint);
  };
  need(tree.nodes % tree.podsize == 0, path,
       fmt::format("Podsize {} does not divide Nodes {}", tree.podsize, tree.nodes));
  need(tree.tiers == 3 || tree.podsize == tree.nodes, path,
       fmt::format("Podsize {}: two tiers are one pod", tree.podsize),
       fmt::format("Podsize {}, or three tiers", tree.nodes));
  need(tier[0].bundle == 1, tier[0].where,
       fmt::format("Tier 0 has Bundle {}: htsim's hosts have one link", tier[0].bundle), "omit it");
  for (std::size_t t = 1; t < static_cast<std::size_t>(tree.tiers); ++t) {
    need(tier[t].down % tier[t].bundle == 0 && tier[t - 1].up % tier[t].bundle == 0, tier[t].where,
         fmt::format("Bundle {} of Tier {} divides not both its Radix_Down {} and the Radix_Up {} of Tier {}",
                     tier[t].bundle, t, tier[t].down, tier[t - 1].up, t - 1));
  }
  need(tree.podsize % tier[0].down == 0, tier[0].where,
       fmt::format("Radix_Down {} of Tier 0 does not divide Podsize {}", tier[0].down, tree.podsize));
  const std::int64_t ratio = tier[0].down / tier[0].up;
  need(ratio == tier[0].oversubscribed, tier[0].where,
       fmt::format("Tier 0 has Oversubscribed {}, and {} over {} is {}", tier[0].oversubscribed,
                   counted_links(tier[0].down, "down"), counted_links(tier[0].up, "up"),
                   ratio == 0 ? "less than 1" : fmt::format("{} in whole numbers", ratio)),
       ratio == 0 ? "" : fmt::format("Oversubscribed {}", ratio));

  // The links up that bandwidths ask for, from which the switches follow.
  const auto links_up = [&](std::int64_t links, std::size_t t) {
    const std::int64_t bandwidth = links * tier[t].gigabits;
    const std::int64_t share = tier[t + 1].gigabits * tier[t].oversubscribed;
    need(
        bandwidth % share == 0, tier[t].where,
        fmt::format(
            "Tier {}: {} of {} Gb/s {} not make a whole number of links up of {} Gb/s with Oversubscribed {}",
            t, counted_links(links, "down"), tier[t].gigabits, links == 1 ? "does" : "do",
            tier[t + 1].gigabits, tier[t].oversubscribed));
    return bandwidth / share;
  };
  const auto mismatch = [&](std::size_t t, std::int64_t links) {
    return fmt::format(
        "Tier {}: the {} Gb/s down, {} Gb/s up and Oversubscribed {} ask for {} in all, which do not fit "
        "Radix_Up {} and the Radix_Down {} and Bundle {} of Tier {}",
        t, tier[t].gigabits, tier[t + 1].gigabits, tier[t].oversubscribed, counted_links(links, "up"),
        tier[t].up, tier[t + 1].down, tier[t + 1].bundle, t + 1);
  };
  const std::int64_t up0 = links_up(tree.nodes, 0), pods = tree.nodes / tree.podsize;
  const std::int64_t above = tier[0].up / tier[1].bundle;  // switches of a pod
  need(up0 == above * pods * tier[1].down, tier[0].where, mismatch(0, up0));
  if (tree.tiers == 2) return;
  const std::int64_t up1 = links_up(up0, 1);
  need(up1 == above * (tier[1].up / tier[2].bundle) * tier[2].down, tier[1].where, mismatch(1, up1));
}

MachineLinks read_htsim(RoceWords& words, const std::string& path) {
  const HtsimTree tree = read_htsim_keys(words, path);
  check_htsim(tree, path);
  const auto& tier = tree.tier;
  const std::int64_t nodes = tree.nodes, down0 = tier[0].down;
  const auto need = [&](bool holds, const std::string& what) {
    if (!holds) throw Error(path, what, "make it smaller");
  };
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
                            nanoseconds(tier[t].link_ns + tier[t].switch_ns)};
    LinkFigures down = up;
    down.latency = nanoseconds(tier[t].link_ns + (t > 0 ? tier[t - 1].switch_ns : 0));
    for (std::int64_t i = 0; i < tier[t].bundle; ++i)
      graph.cables.push_back(
          {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(high), up, down, 0});
  };
  nodes_of(NetworkNodeKind::device, "host", nodes);
  const std::int64_t tors = nodes / down0;
  const std::int64_t tor = nodes_of(NetworkNodeKind::switched, "tor", tors);
  for (std::int64_t host = 0; host < nodes; ++host) join(host, tor + host / down0, 0);
  const auto need_links = [&](std::int64_t switches, std::int64_t up) {
    need(switches * up <= 16 * kMostInFile, fmt::format("has more than {} links", 16 * kMostInFile));
  };
  const std::int64_t above = tier[0].up / tier[1].bundle;
  const std::int64_t pods = tree.nodes / tree.podsize, tors_of_pod = tree.podsize / down0;
  const std::int64_t agg =
      nodes_of(NetworkNodeKind::switched, tree.tiers == 2 ? "spine" : "agg", pods * above);
  need_links(tors, tier[0].up);
  for (std::int64_t i = 0; i < tors; ++i) {
    for (std::int64_t j = 0; j < above; ++j) join(tor + i, agg + i / tors_of_pod * above + j, 1);
  }
  if (tree.tiers == 3) {
    const std::int64_t up1 = tier[1].up / tier[2].bundle;
    const std::int64_t core = nodes_of(NetworkNodeKind::switched, "core", above * up1);
    need_links(pods * above, tier[1].up);
    for (std::int64_t i = 0; i < pods * above; ++i) {
      for (std::int64_t j = 0; j < up1; ++j) join(agg + i, core + i % above * up1 + j, 2);
    }
  }
  validate_interconnect(graph, path);
  Dimension dimension = one_dimension(graph, "fabric");
  std::string idle;
  if (!tree.queues.empty())
    idle = tree.queues + " has no effect: how long queues may get is not taken from the file";
  return {std::move(graph), {std::move(dimension)}, {}, std::move(idle)};
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
    case FileKind::hpcc_flows:
    case FileKind::htsim_connections:
      throw wrong_kind(path, sniff(file.bytes()), "a topology");
    default:
      break;
  }
  const std::string_view text(file.bytes().data(), file.bytes().size());
  RoceWords words(text, path);
  if (const std::optional<std::string_view> word = RoceWords(text, path).next();
      word && !is_whole_number(*word))
    return read_htsim(words, path);
  return is_simai_topology(text) ? read_simai(words, path) : read_hpcc(words, path);
}

}  // namespace armilla
