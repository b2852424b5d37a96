// The ways of flows and of packets: those of the job, all of the shortest, or the one that ECMP hashes; which
// of several a packet takes, and where it goes on when a link has failed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/packet/flow.h"
#include "network/packet/links.h"
#include "network/packet/way_store.h"
#include "network/routing/routes.h"

namespace armilla::packets {

class WayFinder {
 public:
  WayFinder(Core& core, const Links& links);

  const WayStore& store() const { return store_; }
  PairFigures pair(std::uint32_t source, std::uint32_t host) const { return routes_.pair(source, host); }
  // Of all pairs of hosts.
  const Routes::Largest& largest() const { return largest_; }

  // Gives the flow its ways; returns the least that it takes (PacketFlowOutcome's), ns.
  std::int64_t find(Flow& flow);
  // The same of ways that are known: the ports that packets leave by, from a host to a host.
  void add(Flow& flow, std::span<const std::vector<std::uint32_t>> ways);

  // The way that the next packet of data takes.
  std::uint32_t choose(Flow& flow) const;
  // At a switch, once more.
  void choose_again(const Flow& flow, Packet& packet) const;

  // From now on these links do not work, and packets find their way hop by hop.
  void without(const std::vector<std::uint32_t>& failed);
  bool hop_by_hop() const { return hop_by_hop_; }
  // The port by which such a packet leaves a node, kNoPort: there is none.
  std::uint32_t next_hop(std::uint32_t node, const FlowAddress& address) const {
    return next_port(core_.job.graph, routes_, node, address);
  }

  // The ports that its data, or its acknowledgements (`back`), leave by: visit(port, back).
  template <class Visit>
  void for_each_port(const Flow& flow, const Visit& visit) const;

 private:
  // Links that all ways have in common from the first switch on.
  std::uint32_t hops_together(std::span<const std::uint32_t> ways) const;
  std::int64_t least_ns(std::uint64_t size, std::span<const std::vector<std::uint32_t>> ways) const;
  void find_shortest(std::uint32_t node, std::uint32_t host, std::size_t most,
                     std::vector<std::uint32_t>& way, std::vector<std::vector<std::uint32_t>>& ways) const;
  [[noreturn]] void no_way(const Flow& flow) const;

  const Core& core_;
  const Links& links_;
  const std::vector<std::uint32_t> ends_;  // hosts that packets go to
  Routes routes_;
  const Routes::Largest largest_;
  bool hop_by_hop_ = false;
  WayStore store_;
};

template <class Visit>
void WayFinder::for_each_port(const Flow& flow, const Visit& visit) const {
  const auto follow = [&](std::uint32_t way, bool back) {
    for (; way != WayStore::kEnd; way = store_[way].rest) visit(store_[way].port, back);
  };
  visit(flow.port, false);
  follow(flow.way_there, false);
  visit(flow.exit, true);
  follow(flow.way_back, true);
  if (flow.ways == 1) return;
  for (const std::uint32_t way : store_.list(flow.ways_there, flow.ways)) follow(way, false);
  if (!core_.traits.sprays) return;
  for (const std::uint32_t way : store_.list(flow.ways_back, flow.ways)) follow(way, true);
}

}  // namespace armilla::packets
