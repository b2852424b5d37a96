// The directed links of a machine, whatever it is made of, and the ways of messages over them: for networks
// that take any graph.
//
// Shortest ways over an explicit graph (ir/interconnect.h) are the widest shortest paths (Guerin, Orda,
// Williams, INFOCOM 1997; RFC 2676): those of the fewest links, and among them those whose narrowest link is
// the widest. A routing, a row of a table, says which ways there are between two devices, and what a network
// does with several. Over a hierarchy of dimensions the ways of "first", "ecmp" and "dimension-order" are
// those of network/topology.h: dimension after dimension.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/flow_traffic.h"
#include "ir/interconnect.h"
#include "ir/machine.h"
#include "ir/what_if.h"
#include "network/network.h"
#include "network/routing/link_graph.h"
#include "network/routing/routes.h"
#include "network/routing/up_down.h"
#include "network/topology.h"

namespace armilla {

// Tells pairs of ends apart.
inline std::uint64_t pair_key(std::uint32_t source, std::uint32_t destination) {
  return std::uint64_t{source} << 32 | destination;
}
inline std::uint64_t ends_of(const Message& message) {
  return pair_key(static_cast<std::uint32_t>(message.source),
                  static_cast<std::uint32_t>(message.destination));
}

// A connection of a collective library, whose messages keep their order: of one sender from one device to
// another. Those of several senders share the links.
struct ConnectionKey {
  std::uint64_t ends = 0;  // of a message, or its link to a tree
  std::uint16_t sender = 0;
  bool operator==(const ConnectionKey&) const = default;
};
struct ConnectionHash {
  std::size_t operator()(const ConnectionKey& key) const {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio (Knuth, TAOCP 3, 6.4)
    return std::hash<std::uint64_t>()(key.ends + key.sender * kGolden);
  }
};

class Ways {
 public:
  using Way = std::vector<std::uint32_t>;  // links, in the order in which they are crossed
  struct Routing {
    std::string_view name, help;
    bool dimensional;  // over a hierarchy: dimension after dimension
    WayChoice choice;  // of a message, or a packet, among the ways
    std::vector<Way> (Ways::*find)(std::uint32_t source, std::uint32_t destination);
  };
  static const std::array<Routing, 10> kRoutingTable;

  // `routing`: one of the table's names. Links of a graph that touch a slow rank's device in the dimension
  // are slow; damaged ones carry less or are not there. Throws Error for damage that cuts devices off.
  Ways(const Machine& machine, std::span<const SlowLinks> slow, std::string_view routing,
       std::span<const DamagedLink> damage = {});
  Ways(const Ways&) = delete;
  Ways& operator=(const Ways&) = delete;

  const Interconnect& graph() const { return graph_.graph; }
  const LinkGraph& link_graph() const { return graph_; }
  const std::vector<DirectedLink>& links() const { return graph_.links; }
  bool is_device(std::uint32_t node) const { return graph_.is_device(node); }
  std::string link_name(std::uint32_t link) const;  // "gpu0 -> leaf3 (rail)"
  const Routing& routing() const { return routing_; }
  // What the ways of up-down keep to; nullptr with other routings.
  const UpDown* up_down();

  // All that the message may take, at least one, at most kMostWays; shortest ways before detours. A tree of
  // switches with k ports has k^2 / 4 for each pair: of more than kMostWays so many are taken at random,
  // other ones for each pair, so that what is found and kept does not grow with the tree, and messages
  // together still take all links. Kept for the pairs of ends that were asked for last, and valid until the
  // next call. Throws Error where no way leads.
  static constexpr std::size_t kMostWays = 16;
  std::span<const Way> ways(const Message& message);
  // The first of them.
  std::span<const std::uint32_t> way(const Message& message) { return ways(message).front(); }
  // All links of some ways, each once, in order.
  static std::vector<std::uint32_t> distinct_links(std::span<const Way> ways);

  // Whether any way that was asked for is one of several, taken by a hash or at random.
  bool any_by_chance() const { return any_by_chance_; }
  // Where hashes (ecmp, ecmp-ns3) have put many more of the pairs that were asked for on a link than fall to
  // it if all links that each hash chose from were taken alike, and few other links have as many for their
  // bandwidth: that link, in a sentence; or empty.
  std::string collision_note() const;
  // As if nobody had asked for a way yet.
  void forget_pairs();
  // Makes room where a lot is kept, for who asks for one destination after the other.
  void forget_some();

  // What the links carried, the busiest first; `carried` per directed link, of classes by those that
  // stand for others.
  std::vector<LinkUse> used(std::span<const NetworkSums::Carried> carried,
                            const LinkClasses& classes = each_link_itself()) const;

 private:
  std::uint32_t number_of(const LinkId& id) const;
  void slow_down(const SlowLinks& slow);
  const std::vector<Reached>& towards(std::uint32_t node);
  Way over_dimensions(const Message& message) const;
  // By the hash `key` among equal ones; nothing: always the first. Throws Error where no way leads.
  Way shortest(std::uint32_t source, std::uint32_t destination, std::optional<std::uint64_t> key);
  // The same, behind what `way` has. Returns whether the hash had a choice.
  bool add_shortest(std::uint32_t source, std::uint32_t destination, std::optional<std::uint64_t> key,
                    Way& way);
  // That begin so, until there are `most`.
  void add_detours(const Way& begin, std::uint32_t source, std::uint32_t destination, std::size_t most,
                   std::vector<Way>& ways);
  // Of `equal` links, perhaps but one, a hash chose this one.
  void note_hashed(std::span<const std::uint32_t> equal, std::uint32_t chosen);
  std::vector<Way> hashed(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> hashed_as_ns3(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> first(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> in_dimension_order(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> up_and_down(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> all_shortest(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> detours(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> shortest_and_detours(std::uint32_t source, std::uint32_t destination);
  std::vector<Way> shortest_and_late_detours(std::uint32_t source, std::uint32_t destination);
  [[noreturn]] void fail(std::uint32_t source, std::uint32_t destination, const std::string& why = {}) const;

  Topology topology_;
  const Routing& routing_;
  bool in_dimensions_;                   // ways are those of topology_
  std::vector<std::string> dimensions_;  // names
  LinkGraph graph_;
  std::vector<std::uint32_t> first_cable_;                           // per dimension, of hierarchies
  std::vector<std::uint32_t> pivots_;                                // nodes that detours may lead over
  std::unordered_map<std::uint32_t, std::vector<Reached>> reached_;  // by destination
  std::optional<UpDown> up_down_;                                    // once it is asked for
  struct Ns3Ways {
    NetworkGraph graph;
    Routes routes;
  };
  std::optional<Ns3Ways> ns3_;                                 // likewise
  static constexpr std::size_t kMostKnown = 1 << 20;           // ways: some 100 MB
  std::unordered_map<std::uint64_t, std::vector<Way>> known_;  // by the two ends
  std::size_t ways_known_ = 0;
  bool any_by_chance_ = false;
  std::vector<std::uint32_t> equal_;  // next links of a node, one node after the other
  // Pairs of ends on whose hashed ways the link is, and as many as would choose it on the average. Empty
  // until one did.
  struct Hashed {
    std::int64_t pairs = 0;
    double even = 0;
  };
  std::vector<Hashed> hashed_;
};

}  // namespace armilla
