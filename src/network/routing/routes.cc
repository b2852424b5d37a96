#include "network/routing/routes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace armilla {

Routes::Routes(const NetworkGraph& graph, std::int64_t payload, std::span<const std::uint32_t> destinations,
               std::span<const std::uint32_t> failed)
    : is_switch_(graph.is_switch),
      links_(graph.links),
      payload_(payload),
      near_(is_switch_.size()),
      last_port_(is_switch_.size()),
      target_of_(is_switch_.size(), -1) {
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    if (std::find(failed.begin(), failed.end(), link) != failed.end()) continue;
    const auto a = static_cast<std::uint32_t>(links_[link].a), b = static_cast<std::uint32_t>(links_[link].b);
    near_[a].push_back({b, 2 * link});
    near_[b].push_back({a, 2 * link + 1});
  }
  // The order in which a search visits neighbours: hosts by number, then switches from the last to the first.
  // Numbers are those of the file that they are from.
  // (ns-3 orders them by address in memory, where its switches, large objects, lie in falling order.)
  for (std::vector<Neighbour>& list : near_) {
    std::sort(list.begin(), list.end(), [&](const Neighbour& x, const Neighbour& y) {
      if (x.node == y.node) return x.port > y.port;  // the one named last
      if (is_switch_[x.node] != is_switch_[y.node]) return bool{is_switch_[y.node]};
      const std::int64_t one = graph.number_of(x.node), other = graph.number_of(y.node);
      return is_switch_[x.node] ? one > other : one < other;
    });
    list.erase(std::unique(list.begin(), list.end(),
                           [](const Neighbour& x, const Neighbour& y) { return x.node == y.node; }),
               list.end());
  }

  // For a host on one switch: the switch's port that leads to it.
  for (std::uint32_t node = 0; node < near_.size(); ++node) {
    if (!near_[node].empty()) last_port_[node] = near_[node].front().port ^ 1;
  }

  // All hosts of a switch are reached as the switch is: one search from it stands for all of them.
  for (std::uint32_t node = 0; node < near_.size(); ++node) {
    const bool hangs = near_[node].size() == 1 && is_switch_[near_[node].front().node];
    anchor_.push_back(hangs ? near_[node].front().node : node);
  }

  std::vector<std::uint32_t> targets;
  for (const std::uint32_t host : destinations) {
    const std::uint32_t target = anchor_[host];
    if (target_of_[target] >= 0) continue;
    target_of_[target] = static_cast<std::int32_t>(targets.size());
    targets.push_back(target);
  }
  targets_ = targets.size();
  next_.resize(is_switch_.size() * targets_);
  // Lists of equal ports come again and again: each is kept once, and a single port needs none.
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  std::vector<std::vector<std::uint32_t>> ports(is_switch_.size());
  for (std::size_t target = 0; target < targets.size(); ++target) {
    for (std::vector<std::uint32_t>& list : ports) list.clear();
    search(targets[target], &ports);
    for (std::size_t node = 0; node < ports.size(); ++node) {
      const std::vector<std::uint32_t>& list = ports[node];
      std::uint32_t& next = next_[node * targets_ + target];
      if (list.size() == 1) {
        next = list.front();
        continue;
      }
      const auto [found, fresh] = known.try_emplace(list, kLists + static_cast<std::uint32_t>(lists_.size()));
      next = found->second;
      if (!fresh) continue;
      lists_.push_back(static_cast<std::uint32_t>(list.size()));
      lists_.insert(lists_.end(), list.begin(), list.end());
    }
  }
}

Routes::Reached Routes::over(const Reached& reached, std::uint32_t port) const {
  const GraphLink& link = links_[port / 2];
  const GraphLink::Back forth{link.bits_per_second, link.delay_ns, link.loss};
  const GraphLink::Back back = link.back.value_or(forth);
  // A link's first end sends forth, its second end receives that.
  const std::int64_t rate = (port % 2 == 1 ? forth : back).bits_per_second;
  return {reached.distance + 1, reached.delays_ns + forth.delay_ns + back.delay_ns,
          reached.transmission_ns + payload_ * 8'000'000'000 / rate, std::min(reached.bits_per_second, rate)};
}

// Breadth first from the target; hosts do not forward.
std::vector<Routes::Reached> Routes::search(std::uint32_t target,
                                            std::vector<std::vector<std::uint32_t>>* ports) const {
  std::vector<Reached> reached(is_switch_.size());
  std::vector<std::uint32_t> queue = {target};
  reached[target].distance = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t here = queue[i];
    for (const Neighbour& next : near_[here]) {
      Reached& there = reached[next.node];
      if (there.distance < 0) {
        there = over(reached[here], next.port);
        if (is_switch_[next.node]) queue.push_back(next.node);
      }
      // The neighbour's own port of the same link leads here.
      if (ports != nullptr && there.distance == reached[here].distance + 1)
        (*ports)[next.node].push_back(next.port ^ 1);
    }
  }
  return reached;
}

PairFigures Routes::figures(const Reached& reached) {
  if (reached.distance <= 0) return {};
  return {reached.delays_ns + reached.transmission_ns, reached.bits_per_second, reached.distance};
}

std::span<const std::uint32_t> Routes::next_ports(std::uint32_t node, std::uint32_t host) const {
  const std::uint32_t target = anchor_[host];
  if (node == target && target != host) {
    return {&last_port_[host], 1};
  }
  const std::uint32_t& next = next_[node * targets_ + static_cast<std::size_t>(target_of_[target])];
  if (next < kLists) return {&next, 1};
  const std::uint32_t list = next - kLists;
  return std::span(lists_).subspan(list + std::size_t{1}, lists_[list]);
}

// Along the way that a search finds first.
PairFigures Routes::pair(std::uint32_t source, std::uint32_t host) const {
  Reached reached;
  reached.distance = 0;
  for (std::uint32_t node = source; node != host;) {
    const std::span<const std::uint32_t> ports = next_ports(node, host);
    if (ports.empty()) return {};
    const std::uint32_t port = ports.front();
    reached = over(reached, port ^ 1);
    node = static_cast<std::uint32_t>(port % 2 == 0 ? links_[port / 2].b : links_[port / 2].a);
  }
  return figures(reached);
}

Routes::Largest Routes::largest() const {
  Largest most;
  // Hosts by what they hang on and by what link, as one stands for all alike.
  std::map<std::uint32_t, std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::uint32_t>>> alike;
  for (std::uint32_t host = 0; host < is_switch_.size(); ++host) {
    if (is_switch_[host] || near_[host].empty()) continue;
    const Reached last = over({}, near_[host].front().port);
    alike[anchor_[host]][{last.delays_ns, last.bits_per_second}].push_back(host);
  }
  // One search for each switch, and one host for each kind of link there: what is largest needs no more
  // pairs.
  for (const auto& [target, classes] : alike) {
    const std::vector<Reached> reached = search(target, nullptr);
    for (const auto& [link, hosts] : classes) {
      for (std::uint32_t source = 0; source < is_switch_.size(); ++source) {
        if (is_switch_[source] || reached[source].distance < 0 ||
            (hosts.size() == 1 && source == hosts.front()))
          continue;
        const PairFigures pair =
            figures(target == hosts.front() ? reached[source]
                                            : over(reached[source], near_[hosts.front()].front().port));
        most.round_trip_ns = std::max(most.round_trip_ns, pair.round_trip_ns);
        most.bandwidth_delay_bytes = std::max(most.bandwidth_delay_bytes, pair.bandwidth_delay_bytes());
      }
    }
  }
  return most;
}

std::uint32_t next_port(const NetworkGraph& graph, const Routes& routes, std::uint32_t node,
                        const FlowAddress& flow) {
  const std::span<const std::uint32_t> ports = routes.next_ports(node, flow.destination);
  if (ports.empty()) return kNoPort;
  if (ports.size() == 1) return ports.front();
  // Switches hash with their numbers, or those in a row would all choose alike (polarisation).
  const auto number = [&](std::uint32_t one) { return static_cast<std::uint32_t>(graph.number_of(one)); };
  const std::uint32_t seed = graph.is_switch[node] ? number(node) : 0x8badf00dU;
  const std::uint32_t both = flow.source_port | static_cast<std::uint32_t>(flow.destination_port) << 16;
  return ports[murmur3(address_of(number(flow.source)), address_of(number(flow.destination)), both, seed) %
               ports.size()];
}

namespace {

// Stable, by counting: hosts are numbers from 0.
void sort_by_host(std::vector<std::uint32_t>& order, const auto& host_of) {
  std::vector<std::size_t> places;
  for (const std::uint32_t one : order) {
    const auto next = static_cast<std::size_t>(host_of(one)) + 1;
    if (next >= places.size()) places.resize(next + 1);
    ++places[next];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<std::uint32_t> sorted(order.size());
  for (const std::uint32_t one : order) sorted[places[static_cast<std::size_t>(host_of(one))]++] = one;
  order.swap(sorted);
}

}  // namespace

std::vector<FlowAddress> addresses_of(std::span<const TrafficFlow> flows) {
  std::vector<std::uint32_t> order(flows.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  const auto start = [&](std::uint32_t index) { return flows[index].start_ns; };
  // In the order in which they begin, then by pair: source ports of a pair count up in the order of its
  // flows.
  if (!std::ranges::is_sorted(order, {}, start)) std::ranges::stable_sort(order, {}, start);
  sort_by_host(order, [&](std::uint32_t index) { return flows[index].destination; });
  sort_by_host(order, [&](std::uint32_t index) { return flows[index].source; });
  std::vector<FlowAddress> addresses(flows.size());
  std::uint16_t port = kFirstSourcePort;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TrafficFlow& flow = flows[order[i]];
    const bool same = i > 0 && flows[order[i - 1]].source == flow.source &&
                      flows[order[i - 1]].destination == flow.destination;
    port = same ? static_cast<std::uint16_t>(port + 1) : kFirstSourcePort;
    addresses[order[i]] = {static_cast<std::uint32_t>(flow.source),
                           static_cast<std::uint32_t>(flow.destination), port,
                           static_cast<std::uint16_t>(flow.port)};
  }
  return addresses;
}

std::vector<std::uint32_t> ends_of(std::span<const TrafficFlow> flows) {
  std::vector<std::uint32_t> ends;
  for (const TrafficFlow& flow : flows) {
    ends.push_back(static_cast<std::uint32_t>(flow.source));
    ends.push_back(static_cast<std::uint32_t>(flow.destination));
  }
  return ends;
}

std::uint32_t murmur3(std::uint32_t first, std::uint32_t second, std::uint32_t third, std::uint32_t seed) {
  std::uint32_t hash = seed;
  for (std::uint32_t word : {first, second, third}) {
    word = std::rotl(word * 0xcc9e2d51U, 15) * 0x1b873593U;
    hash = std::rotl(hash ^ word, 13) * 5 + 0xe6546b64U;
  }
  hash ^= 12;  // bytes
  hash = (hash ^ hash >> 16) * 0x85ebca6bU;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
  return hash ^ hash >> 16;
}

std::uint32_t address_of(std::uint32_t host) {
  return 0x0b000001U + host / 256 * 0x10000U + host % 256 * 0x100U;
}

}  // namespace armilla
