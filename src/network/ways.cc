#include "network/ways.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace armilla {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace

Ways::Ways(const Machine& machine, std::span<const SlowLinks> slow, std::string_view routing)
    : topology_(machine),
      is_hierarchy_(machine.graph.empty()),
      hashed_(routing == "ecmp"),
      graph_(links_of(machine)) {
  for (const Dimension& dimension : machine.dimensions) dimensions_.push_back(dimension.name);
  for (const Cable& cable : graph_.cables) {
    links_.push_back({cable.a, cable.b, cable.dimension, cable.there});
    links_.push_back({cable.b, cable.a, cable.dimension, cable.back});
  }
  for (std::uint32_t d = 0; is_hierarchy_ && d < topology_.dimensions(); ++d) {
    const auto first = std::ranges::lower_bound(graph_.cables, d, {}, &Cable::dimension);
    first_cable_.push_back(static_cast<std::uint32_t>(first - graph_.cables.begin()));
  }
  leaving_.resize(graph_.nodes.size());
  for (std::uint32_t link = 0; link < links_.size(); ++link) leaving_[links_[link].from].push_back(link);
  for (const SlowLinks& links : slow) slow_down(links);
}

void Ways::slow_down(const SlowLinks& slow) {
  std::vector<bool> chosen(links_.size());
  const std::int64_t last = std::min(slow.ranks.last, topology_.ranks() - 1);
  for (std::int64_t rank = std::max<std::int64_t>(slow.ranks.first, 0); rank <= last; ++rank) {
    if (is_hierarchy_ && topology_.dimension(slow.dimension).size > 1) {
      for (std::int32_t number = 0; number < topology_.links_per_rank(slow.dimension); ++number)
        chosen[number_of({slow.dimension, static_cast<std::int32_t>(rank), number})] = true;
    } else if (!is_hierarchy_) {
      for (const std::uint32_t link : leaving_[static_cast<std::size_t>(rank)]) {
        if (links_[link].dimension == slow.dimension) chosen[link] = chosen[link ^ 1] = true;
      }
    }
  }
  for (std::size_t link = 0; link < links_.size(); ++link) {
    if (!chosen[link]) continue;
    LinkFigures& figures = links_[link].figures;
    figures.bandwidth.value *= slow.bandwidth;
    figures.latency = from_seconds(in_seconds(figures.latency) * slow.latency);
    Cable& cable = graph_.cables[link / 2];
    (link % 2 == 0 ? cable.there : cable.back) = figures;
  }
}

// In the order of links_of (ir/machine.h).
std::uint32_t Ways::number_of(const LinkId& id) const {
  const Dimension& dimension = topology_.dimension(id.dimension);
  const std::uint32_t first = first_cable_[id.dimension];
  const std::int64_t size = dimension.size, owner = id.owner;
  std::int64_t stride = 1;
  for (std::uint32_t d = 0; d < id.dimension; ++d) stride *= topology_.dimension(d).size;
  const std::int64_t here = owner / stride % size;
  switch (dimension.kind) {
    case DimensionKind::switched:
      return 2 * (first + static_cast<std::uint32_t>(owner)) + static_cast<std::uint32_t>(id.number);
    case DimensionKind::ring: {
      if (id.number == 0) return 2 * (first + static_cast<std::uint32_t>(owner));
      const std::int64_t previous = owner + (here == 0 ? size - 1 : -1) * stride;
      return 2 * (first + static_cast<std::uint32_t>(previous)) + 1;
    }
    case DimensionKind::fully_connected: {
      const std::int64_t there = (here + id.number + 1) % size;
      const std::int64_t low = std::min(here, there), high = std::max(here, there);
      const std::int64_t group = owner / (stride * size) * stride + owner % stride;
      const std::int64_t pair = low * (2 * size - low - 1) / 2 + (high - low - 1);
      return 2 * (first + static_cast<std::uint32_t>(group * (size * (size - 1) / 2) + pair)) +
             (here < there ? 0 : 1);
    }
  }
  return 0;
}

std::string Ways::link_name(std::uint32_t number) const {
  const Link& link = links_[number];
  const std::string& from = graph_.nodes[link.from].name;
  const std::string& to = graph_.nodes[link.to].name;
  return link.dimension < dimensions_.size()
             ? fmt::format("{} -> {} ({})", from, to, dimensions_[link.dimension])
             : fmt::format("{} -> {}", from, to);
}

std::span<const std::uint32_t> Ways::way(const Message& message) {
  const auto ends = static_cast<std::uint64_t>(static_cast<std::uint32_t>(message.source)) << 32 |
                    static_cast<std::uint32_t>(message.destination);
  const auto [found, fresh] = known_.try_emplace(ends);
  if (fresh) {
    found->second.begin = static_cast<std::uint32_t>(pool_.size());
    if (is_hierarchy_) {
      find_over_dimensions(message);
    } else {
      find_over_graph(message);
    }
    found->second.length = static_cast<std::uint32_t>(pool_.size()) - found->second.begin;
  }
  return std::span(pool_).subspan(found->second.begin, found->second.length);
}

void Ways::find_over_dimensions(const Message& message) {
  Position at = topology_.start(message);
  while (at.hops_left > 0) pool_.push_back(number_of(topology_.advance(message, at)));
}

// Breadth first from the destination, against the links.
const std::vector<Ways::Reached>& Ways::towards(std::uint32_t device) {
  const auto [found, fresh] = reached_.try_emplace(device);
  std::vector<Reached>& reached = found->second;
  if (!fresh) return reached;
  reached.resize(graph_.nodes.size());
  reached[device] = {0, std::numeric_limits<double>::infinity()};
  std::vector<std::uint32_t> waiting = {device};
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const std::uint32_t here = waiting[i];
    if (here != device && is_device(here) && !graph_.devices_forward) continue;
    for (const std::uint32_t leaving : leaving_[here]) {
      const Link& link = links_[leaving ^ 1];  // that leads here
      Reached& before = reached[link.from];
      if (before.distance < 0) {
        before.distance = reached[here].distance + 1;
        waiting.push_back(link.from);
      }
      // All nodes as far as `here` are done with before those behind them are begun.
      if (before.distance == reached[here].distance + 1)
        before.width = std::max(before.width, std::min(link.figures.bandwidth.value, reached[here].width));
    }
  }
  return reached;
}

void Ways::find_over_graph(const Message& message) {
  const auto source = static_cast<std::uint32_t>(message.source);
  const auto destination = static_cast<std::uint32_t>(message.destination);
  const std::vector<Reached>& reached = towards(destination);
  if (reached[source].distance < 0) {
    throw Error("network", fmt::format("no way leads from '{}' to '{}'", graph_.nodes[source].name,
                                       graph_.nodes[destination].name));
  }
  const double width = reached[source].width;
  std::vector<std::uint32_t> equal;
  for (std::uint32_t node = source; node != destination;) {
    equal.clear();
    for (const std::uint32_t number : leaving_[node]) {
      const Link& link = links_[number];
      const Reached& next = reached[link.to];
      const bool passes = link.to == destination || graph_.devices_forward || !is_device(link.to);
      if (next.distance == reached[node].distance - 1 && next.distance >= 0 && passes &&
          std::min(link.figures.bandwidth.value, next.width) >= width)
        equal.push_back(number);
    }
    const std::uint64_t ends = std::uint64_t{source} << 32 | destination;
    const std::size_t chosen =
        hashed_ && equal.size() > 1
            ? static_cast<std::size_t>(scrambled(ends + 0x9e3779b97f4a7c15U * (node + 1)) % equal.size())
            : 0;
    pool_.push_back(equal[chosen]);
    node = links_[equal[chosen]].to;
  }
}

std::vector<LinkUse> Ways::used(std::span<const NetworkSums::Carried> carried) const {
  std::vector<LinkUse> uses;
  for (std::uint32_t link = 0; link < carried.size(); ++link) {
    if (carried[link].bytes == Bytes(0)) continue;
    uses.push_back({link_name(link), links_[link].dimension, 1, carried[link].bytes, carried[link].busy,
                    links_[link].figures.bandwidth});
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.busy > b.busy; });
  return uses;
}

}  // namespace armilla
