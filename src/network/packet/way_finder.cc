#include "network/packet/way_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/error.h"

namespace armilla::packets {
namespace {

std::vector<std::uint32_t> hosts_of(const NetworkGraph& graph) {
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t node = 0; node < graph.is_switch.size(); ++node) {
    if (!graph.is_switch[node]) hosts.push_back(node);
  }
  return hosts;
}

}  // namespace

WayFinder::WayFinder(Core& core, const Links& links)
    : core_(core),
      links_(links),
      ends_(core.job.flows_come ? hosts_of(core.job.graph) : ends_of(core.job.flows)),
      routes_(core.job.graph, core.settings.payload, ends_),
      largest_(ends_.empty() ? Routes::Largest{} : routes_.largest()) {}

void WayFinder::without(const std::vector<std::uint32_t>& failed) {
  routes_ = Routes(core_.job.graph, core_.settings.payload, ends_, failed);
  hop_by_hop_ = true;
}

std::int64_t WayFinder::find(Flow& flow) {
  if (core_.job.ways) {
    const std::span<const std::vector<std::uint32_t>> ways =
        core_.job.ways(flow.address.source, flow.address.destination);
    add(flow, ways);
    return least_ns(flow.size, ways);
  }
  std::vector<std::uint32_t> way;
  if (core_.traits.sprays) {
    std::vector<std::vector<std::uint32_t>> ways;
    // As many as a flow has names of paths for, where none are given (settings.paths).
    constexpr std::size_t kMostWays = 256;
    find_shortest(flow.address.source, flow.address.destination, kMostWays, way, ways);
    if (ways.empty()) no_way(flow);
    add(flow, ways);
    return least_ns(flow.size, ways);
  }
  std::int64_t least = 0;
  for (const bool back : {false, true}) {
    const FlowAddress address = back ? flow.address.back() : flow.address;
    way.clear();
    for (std::uint32_t node = address.source; node != address.destination;) {
      const std::uint32_t port = next_hop(node, address);
      if (port == kNoPort) no_way(flow);
      way.push_back(port);
      node = links_[port ^ 1].node;
    }
    (back ? flow.exit : flow.port) = way.front();
    if (!back) least = least_ns(flow.size, std::span(&way, 1));
    (back ? flow.way_back : flow.way_there) = store_.add(std::span(way).subspan(1));
  }
  return least;
}

// All of them, where they are no more than `most`; else some of every turning, other ones for other hosts.
void WayFinder::find_shortest(std::uint32_t node, std::uint32_t host, std::size_t most,
                              std::vector<std::uint32_t>& way,
                              std::vector<std::vector<std::uint32_t>>& ways) const {
  if (node == host) {
    ways.push_back(way);
    return;
  }
  const auto& ports = routes_.next_ports(node, host);
  const std::size_t turnings = std::min(most, ports.size());
  const std::size_t first = turnings < ports.size() ? host % ports.size() : 0;
  for (std::size_t i = 0; i < turnings; ++i) {
    const std::uint32_t port = ports[(first + i) % ports.size()];
    way.push_back(port);
    find_shortest(links_[port ^ 1].node, host, most / turnings, way, ways);
    way.pop_back();
  }
}

void WayFinder::no_way(const Flow& flow) const {
  throw Error(core_.job.where,
              fmt::format("no way leads from {} to {} after the link between {} and {} failed",
                          core_.job.graph.called(flow.address.source, "host"),
                          core_.job.graph.called(flow.address.destination, "host"),
                          core_.job.graph.called(core_.settings.link_down_a, ""),
                          core_.job.graph.called(core_.settings.link_down_b, "")));
}

// The first one is the flow's own, there and back; what leaves by another NIC, or comes back by one, is
// none of its.
void WayFinder::add(Flow& flow, std::span<const std::vector<std::uint32_t>> ways) {
  std::vector<std::uint32_t> there, back;
  std::vector<std::uint32_t> turned;
  const auto add_back = [&](const std::vector<std::uint32_t>& way) {
    turned.clear();
    for (const std::uint32_t port : std::views::reverse(way)) turned.push_back(port ^ 1);
    back.push_back(store_.add(std::span(turned).subspan(1)));
  };
  for (const std::vector<std::uint32_t>& way : ways) {
    if (way.front() != ways.front().front()) continue;
    if (core_.traits.sprays && way.back() != ways.front().back()) continue;
    if (core_.traits.telemetry && way.size() > kTelemetryHops + 1) {
      throw Error(core_.job.where,
                  fmt::format("a way passes {} switches, and packets of HPCC have room for the figures of {}",
                              way.size() - 1, kTelemetryHops),
                  "choose another congestion control");
    }
    there.push_back(store_.add(std::span(way).subspan(1)));
    if (core_.traits.sprays || there.size() == 1) add_back(way);
  }
  flow.port = ways.front().front();
  flow.exit = ways.front().back() ^ 1;
  flow.way_there = there.front();
  flow.way_back = back.front();
  flow.ways = static_cast<std::uint32_t>(there.size());
  if (flow.ways == 1) return;
  flow.ways_there = store_.add_list(there);
  flow.ways_back = store_.add_list(back);
}

// Of several ways each may be as slow as it likes: the host sends all, and another takes it in.
std::int64_t WayFinder::least_ns(std::uint64_t size, std::span<const std::vector<std::uint32_t>> ways) const {
  const auto bytes = static_cast<std::int64_t>(size);
  const std::int64_t first = std::min(bytes, core_.settings.payload);
  const std::int64_t packets = (bytes - 1) / core_.settings.payload + 1;
  // As packets are sent, to whole nanoseconds where those of ns-3 are.
  const auto ps_on = [&](std::int64_t frame, std::uint32_t port) {
    return links_[port].transmission_ps[frame];
  };
  const std::int64_t header = core_.traits.header;
  std::int64_t least = INT64_MAX;
  for (const std::vector<std::uint32_t>& way : ways) {
    const auto slower = [&](std::uint32_t a, std::uint32_t b) {
      return links_[b].rate < links_[a].rate ? b : a;
    };
    std::uint32_t slowest = slower(way.front(), way.back());
    std::int64_t ns = 0, ps = 0;
    for (const std::uint32_t port : way) {
      ns += links_[port].delay_ns + links_[port ^ 1].delay_ns;
      if (ways.size() > 1) continue;
      slowest = slower(slowest, port);
      ps += ps_on(first, port);
    }
    if (ways.size() == 1) ps -= ps_on(first, slowest);
    ps += (packets - 1) * ps_on(core_.settings.payload + header, slowest) +
          ps_on(bytes - (packets - 1) * core_.settings.payload + header, slowest);
    least = std::min(least, ns + ps / 1000);
  }
  return least;
}

// By the queues where the ways part, mostly at the first switch: what their host could be told.
std::uint32_t WayFinder::choose(Flow& flow) const {
  if (flow.ways == 1) return flow.way_there;
  if (core_.job.choice == WayChoice::spread)
    return store_.of_list(flow.ways_there, flow.packets_spread++ % flow.ways);
  const std::span<const std::uint32_t> ways = store_.list(flow.ways_there, flow.ways);
  const std::uint32_t before = hops_together(ways);
  return *std::ranges::min_element(ways, {}, [&](std::uint32_t way) {
    std::uint32_t step = way;
    for (std::uint32_t hop = 0; hop < before; ++hop) step = store_[step].rest;
    const std::int64_t queued = step != WayStore::kEnd ? links_[store_[step].port].queued : 0;
    // Queue and a packet, times the links to go: of equal queues the shorter way wins.
    return (queued + core_.settings.payload) * (store_.links(way) + 1);
  });
}

// Behind a network interface that is a node all ways have its one link.
std::uint32_t WayFinder::hops_together(std::span<const std::uint32_t> ways) const {
  const auto part = [&](std::uint32_t a, std::uint32_t b) {
    std::uint32_t hops = 0;
    for (; a != WayStore::kEnd && b != WayStore::kEnd && store_[a].port == store_[b].port; ++hops) {
      a = store_[a].rest;
      b = store_[b].rest;
    }
    return hops;
  };
  // Mostly the first and the last one tell: ways that begin alike follow each other.
  std::uint32_t hops = part(ways.front(), ways.back());
  for (std::size_t i = 1; hops > 0 && i + 1 < ways.size(); ++i)
    hops = std::min(hops, part(ways.front(), ways[i]));
  return hops;
}

// Of data that is beyond the first switch of the shortest way: by the queues here, among the ways that are
// the same up to here (Jiang, Kim, Dally, ISCA 2009).
void WayFinder::choose_again(const Flow& flow, Packet& packet) const {
  const std::uint32_t hops = store_.links(flow.way_there) - store_.links(packet.step);
  // Only of packets that have left their first switch, and are not on a longer way already.
  if (flow.ways == 1 || hops == 0 || store_.links(packet.step) > store_.links(flow.way_there)) return;
  const auto after = [&](std::uint32_t way, std::uint32_t same_as) {
    for (std::uint32_t hop = 0; hop < hops; ++hop) {
      if (way == WayStore::kEnd || store_[way].port != store_[same_as].port) return WayStore::kEnd;
      way = store_[way].rest;
      same_as = store_[same_as].rest;
    }
    return way;
  };
  const std::uint32_t straight = packet.step;
  if (after(flow.way_there, flow.way_there) != straight) return;
  const auto wait = [&](std::uint32_t way) {
    return (links_[store_[way].port].queued + core_.settings.payload) * store_.links(way);
  };
  for (const std::uint32_t way : store_.list(flow.ways_there, flow.ways)) {
    const std::uint32_t rest = after(way, flow.way_there);
    if (rest != WayStore::kEnd && wait(rest) < wait(packet.step)) packet.step = rest;
  }
}

}  // namespace armilla::packets
