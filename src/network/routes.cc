#include "network/routes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace armilla {
namespace {

struct Neighbour {
  std::uint32_t node = 0, port = 0;
};

// Per node, its neighbours in the order in which a search visits them: hosts by number, then switches from the last to
// the first. (ns-3 orders them by address in memory, where its switches, large objects, lie in falling order.)
std::vector<std::vector<Neighbour>> neighbours(const NetworkGraph& graph,
                                               std::span<const std::uint32_t> failed) {
  std::vector<std::vector<Neighbour>> all(graph.is_switch.size());
  const auto join = [&](std::uint32_t from, std::uint32_t to, std::uint32_t port, bool up) {
    std::erase_if(all[from], [&](const Neighbour& known) { return known.node == to; });
    if (up) all[from].push_back({to, port});
  };
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) {
    const auto a = static_cast<std::uint32_t>(graph.links[link].a),
               b = static_cast<std::uint32_t>(graph.links[link].b);
    const bool up = std::find(failed.begin(), failed.end(), link) == failed.end();
    join(a, b, 2 * link, up);
    join(b, a, 2 * link + 1, up);
  }
  for (std::vector<Neighbour>& list : all) {
    std::sort(list.begin(), list.end(), [&](const Neighbour& x, const Neighbour& y) {
      const bool switch_x = graph.is_switch[x.node], switch_y = graph.is_switch[y.node];
      if (switch_x != switch_y) return switch_y;
      return switch_x ? x.node > y.node : x.node < y.node;
    });
  }
  return all;
}

}  // namespace

Routes::Routes(const NetworkGraph& graph, std::int64_t payload, std::span<const std::uint32_t> destinations,
               std::span<const std::uint32_t> failed)
    : table_of_(graph.is_switch.size(), -1) {
  const std::size_t nodes = graph.is_switch.size();
  const std::vector<std::vector<Neighbour>> near = neighbours(graph, failed);
  std::vector<bool> wanted(nodes);
  for (const std::uint32_t host : destinations) wanted[host] = true;

  std::vector<std::uint32_t> queue;
  std::vector<std::vector<std::uint32_t>> ports(nodes);
  struct Reached {
    std::int32_t distance = -1;
    std::int64_t delay_ns = 0, transmission_ns = 0, bits_per_second = INT64_MAX;
  };
  std::vector<Reached> reached(nodes);
  for (std::uint32_t host = 0; host < nodes; ++host) {
    if (graph.is_switch[host]) continue;
    std::fill(reached.begin(), reached.end(), Reached{});
    for (std::vector<std::uint32_t>& list : ports) list.clear();
    queue.assign(1, host);
    reached[host].distance = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t here = queue[i];
      for (const Neighbour& next : near[here]) {
        const GraphLink& link = graph.links[next.port / 2];
        Reached& there = reached[next.node];
        if (there.distance < 0) {
          const Reached& from = reached[here];
          there = {from.distance + 1, from.delay_ns + link.delay_ns,
                   from.transmission_ns + payload * 8'000'000'000 / link.bits_per_second,
                   std::min(from.bits_per_second, link.bits_per_second)};
          if (graph.is_switch[next.node]) queue.push_back(next.node);
        }
        // The neighbour's own port of the same link leads here.
        if (wanted[host] && there.distance == reached[here].distance + 1)
          ports[next.node].push_back(next.port ^ 1);
      }
    }

    const auto figures = [&](std::uint32_t node) {
      const Reached& at = reached[node];
      if (at.distance <= 0) return PairFigures{};
      return PairFigures{2 * at.delay_ns + at.transmission_ns, at.bits_per_second, at.distance};
    };
    for (std::uint32_t node = 0; node < nodes; ++node) {
      if (graph.is_switch[node] || reached[node].distance <= 0) continue;
      const PairFigures pair = figures(node);
      longest_round_trip_ns_ = std::max(longest_round_trip_ns_, pair.round_trip_ns);
      largest_bandwidth_delay_bytes_ = std::max(largest_bandwidth_delay_bytes_, pair.bandwidth_delay_bytes());
    }
    if (!wanted[host]) continue;
    table_of_[host] = static_cast<std::int32_t>(tables_.size());
    Table& table = tables_.emplace_back();
    table.begin.push_back(0);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      table.ports.insert(table.ports.end(), ports[node].begin(), ports[node].end());
      table.begin.push_back(static_cast<std::uint32_t>(table.ports.size()));
      table.figures.push_back(figures(node));
    }
  }
}

std::span<const std::uint32_t> Routes::next_ports(std::uint32_t node, std::uint32_t host) const {
  const Table& table = tables_[static_cast<std::size_t>(table_of_[host])];
  return std::span(table.ports).subspan(table.begin[node], table.begin[node + 1] - table.begin[node]);
}

PairFigures Routes::pair(std::uint32_t source, std::uint32_t host) const {
  return tables_[static_cast<std::size_t>(table_of_[host])].figures[source];
}

std::uint32_t next_port(const NetworkGraph& graph, const Routes& routes, std::uint32_t node, const FlowAddress& flow) {
  const std::span<const std::uint32_t> ports = routes.next_ports(node, flow.destination);
  if (ports.empty()) return kNoPort;
  if (ports.size() == 1) return ports.front();
  const std::uint32_t seed = graph.is_switch[node] ? node : 0x8badf00dU;
  const std::uint32_t both = flow.source_port | static_cast<std::uint32_t>(flow.destination_port) << 16;
  return ports[murmur3(address_of(flow.source), address_of(flow.destination), both, seed) % ports.size()];
}

std::vector<FlowAddress> addresses_of(std::span<const TrafficFlow> flows) {
  std::vector<std::size_t> order(flows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return flows[a].start_ns < flows[b].start_ns; });
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> ports;
  std::vector<FlowAddress> addresses(flows.size());
  for (const std::size_t index : order) {
    const TrafficFlow& flow = flows[index];
    std::uint16_t& port = ports.try_emplace({flow.source, flow.destination}, std::uint16_t{10000}).first->second;
    addresses[index] = {static_cast<std::uint32_t>(flow.source), static_cast<std::uint32_t>(flow.destination), port++,
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
