#include "network/routing/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/sorted.h"
#include "base/splitmix.h"
#include "network/routings.h"

namespace armilla {
namespace {

// Ways that come to a node twice go on from there at once.
void cut_loops(const LinkGraph& graph, std::vector<std::uint32_t>& way) {
  for (std::size_t i = 0; i < way.size(); ++i) {
    // From the far end, so that the longest loop goes at once.
    for (std::size_t k = way.size(); k-- > i;) {
      if (graph.links[way[k]].to != graph.links[way[i]].from) continue;
      way.erase(way.begin() + static_cast<std::ptrdiff_t>(i),
                way.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      break;
    }
  }
}

Interconnect damaged_links_of(const Machine& machine, std::span<const DamagedLink> damage) {
  return damage.empty() ? links_of(machine) : with_damage(links_of(machine), damage);
}

bool any_failed(std::span<const DamagedLink> damage) {
  return std::ranges::any_of(damage, [](const DamagedLink& link) { return link.bandwidth == 0; });
}

}  // namespace

constexpr std::array<Ways::Routing, 10> Ways::kRoutingTable = {{
    {"ecmp", "a shortest way for each pair of devices, by a hash of both at every node", true,
     WayChoice::first, &Ways::hashed},
    {"ecmp-ns3", "the same by the hash of HPCC's ns-3: MurmurHash3 of addresses, ports and the switch", true,
     WayChoice::first, &Ways::hashed_as_ns3},
    {"first", "the first of the shortest ways", true, WayChoice::first, &Ways::first},
    {"dimension-order", "dimension after dimension, in each a shortest way", true, WayChoice::first,
     &Ways::in_dimension_order},
    {"up-down", "up towards a root, then down: nothing can wait in a circle (Autonet, 1991)", false,
     WayChoice::first, &Ways::up_and_down},
    {"spray", "packet after packet over the shortest ways, at most 16; a fluid over all at once", false,
     WayChoice::spread, &Ways::all_shortest},
    {"adaptive", "for each packet, or fluid, the least loaded of the shortest ways, at most 16", false,
     WayChoice::adaptive, &Ways::all_shortest},
    {"valiant", "over nodes at random, at most 16 for each pair: packet after packet (Valiant, 1982)", false,
     WayChoice::spread, &Ways::detours},
    {"ugal",
     "for each packet, or fluid, the shortest way or one over a node at random, whichever has less load "
     "times length (Singh, 2005)",
     false, WayChoice::adaptive, &Ways::shortest_and_detours},
    {"progressive",
     "as ugal; a packet on the shortest way may still leave it at the second switch (Jiang et al., 2009)",
     false, WayChoice::progressive, &Ways::shortest_and_late_detours},
}};

std::vector<RoutingInfo> routings() {
  std::vector<RoutingInfo> infos;
  for (const Ways::Routing& routing : Ways::kRoutingTable) infos.push_back({routing.name, routing.help});
  return infos;
}

Ways::Ways(const Machine& machine, std::span<const SlowLinks> slow, std::string_view routing,
           std::span<const DamagedLink> damage)
    : topology_(machine),
      routing_(*std::ranges::find(kRoutingTable, routing, &Routing::name)),
      in_dimensions_(machine.graph.empty() && routing_.dimensional && !any_failed(damage)),
      graph_(damaged_links_of(machine, damage)) {
  for (const Dimension& dimension : machine.dimensions) dimensions_.push_back(dimension.name);
  for (std::uint32_t d = 0; machine.graph.empty() && d < topology_.dimensions(); ++d) {
    const auto first = std::ranges::lower_bound(graph().cables, d, {}, &Cable::dimension);
    first_cable_.push_back(static_cast<std::uint32_t>(first - graph().cables.begin()));
  }
  for (std::uint32_t node = 0; node < graph().nodes.size(); ++node) {
    if (graph_.forwards(node) && graph().nodes[node].kind != NetworkNodeKind::nic) pivots_.push_back(node);
  }
  for (const SlowLinks& links : slow) slow_down(links);
}

// The links that touch the ranks' devices, both ways; of a hierarchy in its own numbering those that
// a rank owns.
void Ways::slow_down(const SlowLinks& slow) {
  std::vector<bool> chosen(links().size());
  const std::int64_t last = std::min(slow.ranks.last, topology_.ranks() - 1);
  for (std::int64_t rank = std::max<std::int64_t>(slow.ranks.first, 0); rank <= last; ++rank) {
    if (in_dimensions_ && topology_.dimension(slow.dimension).size > 1) {
      for (std::int32_t number = 0; number < topology_.links_per_rank(slow.dimension); ++number)
        chosen[number_of({slow.dimension, static_cast<std::int32_t>(rank), number})] = true;
    } else if (!in_dimensions_) {
      for (const std::uint32_t link : graph_.leaving[static_cast<std::size_t>(rank)]) {
        if (links()[link].dimension == slow.dimension) chosen[link] = chosen[link ^ 1] = true;
      }
    }
  }
  for (std::size_t link = 0; link < links().size(); ++link) {
    if (!chosen[link]) continue;
    LinkFigures& figures = graph_.links[link].figures;
    figures.derate(slow.bandwidth);
    figures.latency = from_seconds(in_seconds(figures.latency) * slow.latency);
    Cable& cable = graph_.graph.cables[link / 2];
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
      // All cables of a member are one link here.
      return 2 * (first + static_cast<std::uint32_t>(owner)) + static_cast<std::uint32_t>(id.number % 2);
    case DimensionKind::ring: {
      // A cable leads from each member to its next; to the previous one it is that one's, the other way.
      if (id.number == 0) return 2 * (first + static_cast<std::uint32_t>(owner));
      const std::int64_t previous = owner + (here == 0 ? size - 1 : -1) * stride;
      return 2 * (first + static_cast<std::uint32_t>(previous)) + 1;
    }
    case DimensionKind::fully_connected: {
      const std::int64_t there = (here + id.number + 1) % size;
      // Cables are the pairs (low, high) in lexicographic order: low (2 size - low - 1) / 2 begin with
      // a lower one.
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
  const DirectedLink& link = links()[number];
  const std::string& from = graph().nodes[link.from].name;
  const std::string& to = graph().nodes[link.to].name;
  return link.dimension < dimensions_.size()
             ? fmt::format("{} -> {} ({})", from, to, dimensions_[link.dimension])
             : fmt::format("{} -> {}", from, to);
}

std::span<const Ways::Way> Ways::ways(const Message& message) {
  const auto source = static_cast<std::uint32_t>(message.source);
  const auto destination = static_cast<std::uint32_t>(message.destination);
  // All at once: what is needed again is found again, the same, as ways follow from the pair alone.
  if (ways_known_ >= kMostKnown) {
    known_.clear();
    ways_known_ = 0;
  }
  std::vector<Way>& found = known_[pair_key(source, destination)];
  if (found.empty()) {
    if (in_dimensions_) {
      found.push_back(over_dimensions(message));
    } else {
      found = (this->*routing_.find)(source, destination);
    }
    ways_known_ += found.size();
  }
  return found;
}

void Ways::forget_pairs() {
  known_.clear();
  ways_known_ = 0;
  any_by_chance_ = false;
  hashed_.clear();
}

void Ways::forget_some() {
  constexpr std::size_t kMostReached = std::size_t{1} << 22;
  // Searches are kept by destination: 16 bytes for each node of the graph.
  if (reached_.size() * graph().nodes.size() < kMostReached) return;
  reached_.clear();
  known_.clear();
  ways_known_ = 0;
}

void Ways::fail(std::uint32_t source, std::uint32_t destination, const std::string& why) const {
  throw Error("network",
              fmt::format("no way leads from '{}' to '{}'", graph().nodes[source].name,
                          graph().nodes[destination].name),
              why);
}

std::vector<std::uint32_t> Ways::distinct_links(std::span<const Way> ways) {
  std::vector<std::uint32_t> links;
  for (const Way& way : ways) links.insert(links.end(), way.begin(), way.end());
  sort_unique(links);
  return links;
}

Ways::Way Ways::over_dimensions(const Message& message) const {
  Way way;
  topology_.for_each_link(
      message, [&](const LinkId& link, const Position& /*beyond*/) { way.push_back(number_of(link)); });
  return way;
}

// Over the links of one dimension at a time, from device to device.
std::vector<Ways::Way> Ways::in_dimension_order(std::uint32_t source, std::uint32_t destination) {
  Way way;
  std::vector<std::uint32_t> next;
  std::int64_t stride = 1;
  std::uint32_t here = source;
  for (std::uint32_t d = 0; d < topology_.dimensions(); ++d) {
    const std::int64_t size = topology_.dimension(d).size;
    const std::int64_t own = here / stride % size, other = destination / stride % size;
    const auto there = static_cast<std::uint32_t>(here + (other - own) * stride);
    stride *= size;
    if (there == here) continue;
    if (there != destination && !graph_.forwards(there))
      fail(source, destination, "in dimension order it leads over devices, which do not forward here");
    const std::vector<Reached> reached = search_towards(graph_, there, d);
    if (reached[here].distance < 0)
      fail(source, destination, fmt::format("links of dimension '{}' are missing", dimensions_[d]));
    for (const double width = reached[here].width; here != there; here = links()[way.back()].to) {
      next_links(graph_, reached, here, there, width, next, d);
      way.push_back(next.front());
    }
  }
  return {std::move(way)};
}

const std::vector<Reached>& Ways::towards(std::uint32_t node) {
  const auto [found, fresh] = reached_.try_emplace(node);
  if (fresh) found->second = search_towards(graph_, node);
  return found->second;
}

Ways::Way Ways::shortest(std::uint32_t source, std::uint32_t destination, std::optional<std::uint64_t> key) {
  Way way;
  add_shortest(source, destination, key, way);
  return way;
}

bool Ways::add_shortest(std::uint32_t source, std::uint32_t destination, std::optional<std::uint64_t> key,
                        Way& way) {
  const std::vector<Reached>& reached = towards(destination);
  if (reached[source].distance < 0) fail(source, destination);
  const double width = reached[source].width;
  bool by_chance = false;
  for (std::uint32_t node = source; node != destination; node = links()[way.back()].to) {
    next_links(graph_, reached, node, destination, width, equal_);
    const bool chooses = key && equal_.size() > 1;
    by_chance = by_chance || chooses;
    // The node is mixed in, or a hash would take the same of the equal links at every level of a tree, which
    // is known as polarisation.
    const std::size_t chosen =
        chooses ? static_cast<std::size_t>(splitmix(*key + 0x9e3779b97f4a7c15U * (node + 1)) % equal_.size())
                : 0;
    way.push_back(equal_[chosen]);
    if (key && routing_.find == &Ways::hashed) note_hashed(equal_, equal_[chosen]);
  }
  any_by_chance_ = any_by_chance_ || by_chance;
  return by_chance;
}

void Ways::note_hashed(std::span<const std::uint32_t> equal, std::uint32_t chosen) {
  hashed_.resize(links().size());
  for (const std::uint32_t link : equal) hashed_[link].even += 1 / static_cast<double>(equal.size());
  ++hashed_[chosen].pairs;
}

std::string Ways::collision_note() const {
  constexpr double kWorthSaying = 1.5, kNearlyMost = 0.75;
  const auto load = [&](const Hashed& link) {
    const auto& figures = links()[static_cast<std::size_t>(&link - hashed_.data())].figures;
    return static_cast<double>(link.pairs) / std::max(figures.bandwidth.value, 1.0);
  };
  double largest = 0;
  for (const Hashed& link : hashed_) largest = std::max(largest, load(link));
  const auto crowding = [&](const Hashed& link) {
    // A pair alone meets nobody, and where others have more to carry all wait for those.
    return link.pairs < 2 || load(link) < kNearlyMost * largest
               ? 0
               : static_cast<double>(link.pairs) / std::max(link.even, 1.0);
  };
  const auto most = std::ranges::max_element(hashed_, {}, crowding);
  if (most == hashed_.end() || crowding(*most) < kWorthSaying) return {};
  return fmt::format(
      "hashed ways ({}) collide: {} is on the way of {} pairs of devices, and {:.3g} would be its even "
      "share; routing=spray takes all ways",
      routing_.name, link_name(static_cast<std::uint32_t>(most - hashed_.begin())), most->pairs, most->even);
}

std::vector<Ways::Way> Ways::hashed(std::uint32_t source, std::uint32_t destination) {
  return {shortest(source, destination, pair_key(source, destination))};
}

// Of each pair as of its first flow. Ports of the packets' graph are numbered as directed links are.
std::vector<Ways::Way> Ways::hashed_as_ns3(std::uint32_t source, std::uint32_t destination) {
  if (!ns3_) {
    std::vector<std::uint32_t> devices(static_cast<std::size_t>(graph().devices()));
    std::iota(devices.begin(), devices.end(), 0U);
    const NetworkGraph packets = network_graph(graph());
    ns3_.emplace(packets, Routes(packets, 1, devices));
  }
  const FlowAddress address = {source, destination, kFirstSourcePort,
                               static_cast<std::uint16_t>(TrafficFlow().port)};
  Way way;
  for (std::uint32_t node = source; node != destination; node = links()[way.back()].to) {
    const std::uint32_t port = next_port(ns3_->graph, ns3_->routes, node, address);
    if (port == kNoPort)
      fail(source, destination,
           graph().devices_forward ? "hosts of ns-3 pass nothing on: choose another routing" : "");
    const std::span<const std::uint32_t> equal = ns3_->routes.next_ports(node, destination);
    any_by_chance_ = any_by_chance_ || equal.size() > 1;
    note_hashed(equal, port);
    way.push_back(port);
  }
  return {std::move(way)};
}

std::vector<Ways::Way> Ways::first(std::uint32_t source, std::uint32_t destination) {
  return {shortest(source, destination, std::nullopt)};
}

const UpDown* Ways::up_down() {
  if (!up_down_ && routing_.find == &Ways::up_and_down) up_down_.emplace(graph_);
  return up_down_ ? &*up_down_ : nullptr;
}

std::vector<Ways::Way> Ways::up_and_down(std::uint32_t source, std::uint32_t destination) {
  up_down();
  Way way;
  if (!up_down_->find(source, destination, pair_key(source, destination), way, any_by_chance_))
    fail(source, destination);
  return {std::move(way)};
}

// All of them where they are few, in order; else as many as may be, at random.
std::vector<Ways::Way> Ways::all_shortest(std::uint32_t source, std::uint32_t destination) {
  const std::vector<Reached>& reached = towards(destination);
  if (reached[source].distance < 0) fail(source, destination);
  const double width = reached[source].width;
  std::vector<Way> found;
  std::vector<Way> begun = {{}};  // the next one last
  std::vector<std::uint32_t> equal;
  while (!begun.empty() && found.size() <= kMostWays) {
    Way way = std::move(begun.back());
    begun.pop_back();
    const std::uint32_t here = way.empty() ? source : links()[way.back()].to;
    if (here == destination) {
      found.push_back(std::move(way));
      continue;
    }
    next_links(graph_, reached, here, destination, width, equal);
    for (auto link = equal.rbegin(); link != equal.rend(); ++link) {
      begun.push_back(way);
      begun.back().push_back(*link);
    }
  }
  // More were begun than may be taken. The first of them all would share their first links.
  if (found.size() <= kMostWays) return found;
  found.clear();
  // Keys follow from the pair alone, so that its ways do not depend on who was asked about before.
  std::uint64_t key = pair_key(source, destination);
  for (std::size_t tries = 0; tries < 4 * kMostWays && found.size() < kMostWays; ++tries) {
    Way way = shortest(source, destination, key);
    if (std::ranges::find(found, way) == found.end()) found.push_back(std::move(way));
    key = splitmix(key + tries + 1);
  }
  return found;
}

void Ways::add_detours(const Way& begin, std::uint32_t source, std::uint32_t destination, std::size_t most,
                       std::vector<Way>& ways) {
  const std::uint32_t here = begin.empty() ? source : links()[begin.back()].to;
  std::uint64_t key = pair_key(source, destination);
  Way way;
  std::vector<std::uint32_t> done;  // pivots over which one way leads: another try would find it again
  for (std::size_t tries = 0; tries < 4 * kMostWays && ways.size() < most && !pivots_.empty(); ++tries) {
    key = splitmix(key + 0x9e3779b97f4a7c15U);
    any_by_chance_ = any_by_chance_ || pivots_.size() > 1;
    const std::uint32_t pivot = pivots_[key % pivots_.size()];
    if (pivot == here || pivot == destination || std::ranges::find(done, pivot) != done.end()) continue;
    // Links may have failed that lead to it.
    if (towards(pivot)[here].distance < 0 || towards(destination)[pivot].distance < 0) continue;
    way.assign(begin.begin(), begin.end());
    const bool to_pivot = add_shortest(here, pivot, key, way);
    const bool from_pivot = add_shortest(pivot, destination, key + 1, way);
    if (!to_pivot && !from_pivot) done.push_back(pivot);
    cut_loops(graph_, way);
    // What has been gone must stay: cutting a loop may have cut into it.
    const bool begins_so =
        std::ranges::equal(begin, std::span(way).first(std::min(begin.size(), way.size())));
    if (begins_so && std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  }
}

std::vector<Ways::Way> Ways::detours(std::uint32_t source, std::uint32_t destination) {
  std::vector<Way> ways;
  add_detours({}, source, destination, kMostWays, ways);
  return ways.empty() ? hashed(source, destination) : ways;
}

std::vector<Ways::Way> Ways::shortest_and_detours(std::uint32_t source, std::uint32_t destination) {
  std::vector<Way> ways = hashed(source, destination);
  add_detours({}, source, destination, kMostWays, ways);
  return ways;
}

// Half of the detours leave the shortest way at its second switch, unless that is its last.
std::vector<Ways::Way> Ways::shortest_and_late_detours(std::uint32_t source, std::uint32_t destination) {
  std::vector<Way> ways = hashed(source, destination);
  const Way straight = ways.front();
  std::size_t switches = 0, links_to_second = 0;
  for (std::size_t i = 0; i < straight.size(); ++i) {
    if (graph().nodes[links()[straight[i]].to].kind != NetworkNodeKind::switched) continue;
    if (++switches == 2) links_to_second = i + 1;
  }
  if (switches > 2) {
    const Way begin(straight.begin(), straight.begin() + static_cast<std::ptrdiff_t>(links_to_second));
    add_detours(begin, source, destination, kMostWays / 2, ways);
  }
  add_detours({}, source, destination, kMostWays, ways);
  return ways;
}

std::vector<LinkUse> Ways::used(std::span<const NetworkSums::Carried> carried,
                                const LinkClasses& classes) const {
  std::vector<LinkUse> uses;
  for (std::uint32_t link = 0; link < carried.size(); ++link) {
    if (carried[link].bytes == Bytes(0)) continue;
    uses.push_back({link_name(link), links()[link].dimension, classes.sizes.empty() ? 1 : classes.sizes[link],
                    carried[link].bytes, carried[link].busy, links()[link].figures.bandwidth,
                    carried[link].shared, carried[link].senders});
  }
  put_busiest_first(uses);
  return uses;
}

}  // namespace armilla
