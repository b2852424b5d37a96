#include "network/flit/flit_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/splitmix.h"

namespace armilla {
namespace {

constexpr std::int64_t kLongestLink = 1 << 22;  // cycles: of a wheel with a slot for each

}  // namespace

FlitGraph::FlitGraph(Ways& ways, const FlitFabric& fabric) : ways_(ways) {
  make_routers();
  connect(fabric);
  order_links(ways.up_down());
  look_at_ways(ways);
}

// Ports of a node are its links in the order of their cables; those of a device's interfaces follow in
// the same order.
void FlitGraph::make_routers() {
  const Interconnect& graph = ways_.graph();
  std::vector<std::uint32_t> links(graph.nodes.size());
  place_.resize(ways_.links().size());
  for (std::uint32_t link = 0; link < place_.size(); ++link) place_[link] = links[ways_.links()[link].from]++;
  network_.rule = RouteRule::given;
  network_.routers = static_cast<std::uint32_t>(graph.nodes.size());
  network_.first_port = {0};
  for (std::uint32_t node = 0; node < network_.routers; ++node) {
    network_.router_names.push_back(graph.nodes[node].name);
    const bool device = ways_.is_device(node);
    network_.first_port.push_back(network_.first_port.back() + links[node] * (device ? 2 : 1));
    if (!device) continue;
    first_interface_.push_back(network_.nodes);
    network_.nodes += links[node];
    network_.node_names.resize(network_.nodes, graph.nodes[node].name);
  }
  network_.number_ports();
  network_.outputs.resize(network_.ports() + network_.nodes);
}

std::uint32_t FlitGraph::output_of(std::uint32_t link) const {
  return network_.first_port[ways_.links()[link].from] + place_[link];
}

std::uint32_t FlitGraph::interface_of(std::uint32_t link) const {
  return first_interface_[ways_.links()[link].from] + place_[link];
}

// A link's latency holds the pipeline of the router behind it.
void FlitGraph::connect(const FlitFabric& fabric) {
  for (std::uint32_t link = 0; link < ways_.links().size(); ++link) {
    const DirectedLink& one = ways_.links()[link];
    const auto fail = [&](const std::string& what, const std::string& hint) {
      throw Error("network flit", fmt::format("the link {} {}", ways_.link_name(link), what), hint);
    };
    if (one.figures.loss > 0)
      fail("loses packets, and flits are never lost", "--network packet repeats what is lost");
    double period = fabric.flit_bytes / one.figures.bandwidth.value * 1e12 / fabric.cycle_ps;
    // Rates and clocks come from decimal figures: what differs by less than a billionth is the same.
    if (period < 1 - 1e-9)
      fail(fmt::format("moves {:.4g} flits in a cycle of the clock, and a router passes one", 1 / period),
           "a faster clock, or wider flits");
    if (fabric.whole_periods) period = std::ceil(period - 1e-9);
    period = std::max(period, 1.0);
    const double latency = static_cast<double>(one.figures.latency.value) / fabric.cycle_ps;
    if (period > 1e4 || latency > static_cast<double>(kLongestLink))
      fail(fmt::format("takes {:.3g} cycles", std::max(period, latency)),
           "wider flits make fewer cycles; --network flow takes a time that depends on neither");
    FlitChannel& channel = network_.outputs[output_of(link)];
    channel.input = output_of(link ^ 1);  // inputs are numbered as outputs are
    channel.period = static_cast<std::uint32_t>(std::llround(period * FlitChannel::kCycle));
    // Figures of latency are from the end of one link to that of the next, and so count the router; at least
    // a cycle is left for the wire.
    const std::int64_t cycles = std::max<std::int64_t>(std::llround(latency) - fabric.pipeline, 1);
    channel.latency = static_cast<std::uint32_t>(cycles - 1);
    // There, the router behind it, and the credit back.
    const double round_trip =
        static_cast<double>(2 * cycles + fabric.pipeline + channel.whole_period() + 2) / period;
    longest_round_trip_ = std::max(longest_round_trip_, static_cast<std::int64_t>(std::ceil(round_trip)));
    if (!ways_.is_device(one.from)) continue;
    const std::uint32_t interface = interface_of(link);
    const std::uint32_t links = (network_.first_port[one.from + 1] - network_.first_port[one.from]) / 2;
    const std::uint32_t port = output_of(link) + links;
    network_.outputs[port] = {kNoFlitPort, interface, 0};
    network_.outputs[network_.ports() + interface] = {port, kNoFlitPort, 0};
  }
}

// Levels are the fewest links to a device. Ways of up-down keep to an order of their own, on any graph.
void FlitGraph::order_links(const UpDown* up_down) {
  const std::vector<DirectedLink>& links = ways_.links();
  if (up_down != nullptr) {
    for (std::uint32_t link = 0; link < links.size(); ++link) order_.push_back(up_down->place_on_ways(link));
    return;
  }
  const std::uint32_t nodes = network_.routers;
  std::vector<std::uint32_t> level(nodes, UINT32_MAX), waiting;
  std::vector<std::vector<std::uint32_t>> near(nodes);
  for (const DirectedLink& link : links) near[link.from].push_back(link.to);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!ways_.is_device(node)) continue;
    level[node] = 0;
    waiting.push_back(node);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (const std::uint32_t other : near[waiting[i]]) {
      if (level[other] != UINT32_MAX) continue;
      level[other] = level[waiting[i]] + 1;
      waiting.push_back(other);
    }
  }
  for (const DirectedLink& link : links) {
    // Links up come first in the order, the lower the earlier, then links across, then links down: up and
    // then down a way climbs in it all the time, and takes one layer of virtual channels.
    const std::uint64_t from = level[link.from], to = level[link.to], all = nodes;
    const std::uint64_t up = from, across = all + (link.to > link.from ? link.from : 2 * all - link.from);
    order_.push_back(to > from ? up : to == from ? across : 4 * all - from);
  }
}

// Calls `visit(link, layer)` along a way; returns how many layers it takes.
template <class Visit>
std::uint32_t FlitGraph::visit_layers(std::span<const std::uint32_t> way, const Visit& visit) const {
  std::uint32_t layer = 0, most = 0;
  for (std::size_t i = 0; i < way.size(); ++i) {
    const auto dimension = [&](std::size_t at) {
      return by_dimension_ ? ways_.links()[way[at]].dimension : 0;
    };
    // Wherever a way falls back it goes on in the next layer. Within a layer buffers are waited for in their
    // order alone, so that no circle closes.
    if (i > 0 && dimension(i) > dimension(i - 1))
      layer = 0;
    else if (i > 0 && order_[way[i]] <= order_[way[i - 1]])
      ++layer;
    most = std::max(most, layer);
    visit(way[i], layer);
  }
  return most + 1;
}

// Of all pairs of devices, or of some thousands by chance: fewer on large graphs, where a search takes long.
void FlitGraph::look_at_ways(Ways& ways) {
  const auto devices = static_cast<std::uint64_t>(ways.graph().devices());
  const std::uint64_t most = std::clamp<std::uint64_t>((1 << 23) / network_.routers, 16, 4096);
  const bool all = devices * devices <= most;
  const std::uint64_t pairs = all ? devices * devices : most;
  std::vector<Ways::Way> seen;
  for (std::uint64_t pair = 0; pair < pairs; ++pair) {
    const std::uint64_t ends = all ? pair : splitmix(pair + 1) % (devices * devices);
    Message message;
    message.source = static_cast<std::int32_t>(ends / devices);
    message.destination = static_cast<std::int32_t>(ends % devices);
    if (message.source == message.destination) continue;
    try {
      const std::span<const Ways::Way> found = ways.ways(message);
      seen.insert(seen.end(), found.begin(), found.end());
    } catch (const Error&) {
      continue;  // no way leads there: whoever sends there will be told
    }
  }
  // Nobody has sent there yet.
  ways.forget_pairs();
  const auto falls = [&](std::uint32_t a, std::uint32_t b) {
    return ways.links()[a].dimension > ways.links()[b].dimension;
  };
  by_dimension_ = std::ranges::none_of(
      seen, [&](const Ways::Way& way) { return std::ranges::adjacent_find(way, falls) != way.end(); });
  double sum = 0;
  for (const Ways::Way& way : seen) {
    sum += static_cast<double>(way.size());
    layers_ = std::max(layers_, visit_layers(way, [](std::uint32_t, std::uint32_t) {}));
  }
  if (!seen.empty()) mean_links_ = sum / static_cast<double>(seen.size());
}

// Where there are fewer virtual channels than layers, or more layers than were foreseen, the last ones share.
VcRange FlitGraph::vcs_of(std::uint32_t layer) const {
  const std::int64_t layers = std::min<std::int64_t>(layers_, virtual_channels_);
  const std::int64_t mine = std::min<std::int64_t>(layer, layers - 1);
  return {static_cast<std::uint16_t>(mine * virtual_channels_ / layers),
          static_cast<std::uint16_t>((mine + 1) * virtual_channels_ / layers - 1)};
}

FlitGraph::Entry FlitGraph::add(std::span<const std::uint32_t> way) {
  const Entry entry = {interface_of(way.front()), static_cast<std::uint32_t>(network_.steps.size())};
  const VcRange all = {0, static_cast<std::uint16_t>(virtual_channels_ - 1)};
  const bool ends_free = one_packet_each_ || way.size() == 1;
  visit_layers(way, [&](std::uint32_t link, std::uint32_t layer) {
    const bool last = network_.steps.size() - entry.step + 1 == way.size();
    network_.steps.push_back({output_of(link), last && ends_free ? all : vcs_of(layer)});
  });
  const std::uint32_t back = way.back() ^ 1;
  const std::uint32_t device = ways_.links()[back].from;
  const std::uint32_t links = (network_.first_port[device + 1] - network_.first_port[device]) / 2;
  network_.steps.push_back({output_of(back) + links, all});
  return entry;
}

}  // namespace armilla
