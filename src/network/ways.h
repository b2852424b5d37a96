// The directed links of a machine, whatever it is made of, and the way of a message over them: for networks that take
// any graph.
//
// Over a hierarchy of dimensions ways are those of network/topology.h: dimension after dimension. Over an explicit graph
// (ir/interconnect.h) they are the widest shortest paths (Guerin, Orda, Williams, INFOCOM 1997; RFC 2676): those of the
// fewest links, and among them those whose narrowest link is the widest. A routing, a row of a table, says which of
// several that are equal in both a message takes; all messages from one device to another take the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/interconnect.h"
#include "ir/machine.h"
#include "ir/what_if.h"
#include "network/network.h"
#include "network/topology.h"

namespace armilla {

// Names of the routings, separated by '|', and what they mean.
inline constexpr std::string_view kRoutings = "ecmp|first";
inline constexpr std::string_view kRoutingHelp =
    "of equally good ways over a graph: by a hash of the two ends at every node, or always the first";

class Ways {
 public:
  // Directed: links 2c and 2c + 1 are the two directions of cable c.
  struct Link {
    std::uint32_t from = 0, to = 0;  // nodes of the graph
    std::uint32_t dimension = 0;
    LinkFigures figures;
  };

  // `routing`: one of kRoutings. Links of a graph that touch a slow rank's device in the dimension are slow.
  Ways(const Machine& machine, std::span<const SlowLinks> slow, std::string_view routing);

  const Interconnect& graph() const { return graph_; }
  const std::vector<Link>& links() const { return links_; }
  bool is_device(std::uint32_t node) const { return graph_.nodes[node].kind == NetworkNodeKind::device; }
  std::string link_name(std::uint32_t link) const;  // "gpu0 -> leaf3 (rail)"

  // Valid until the next call. Worked out once for each pair of ends. Throws Error where no way leads.
  std::span<const std::uint32_t> way(const Message& message);

  // What the links carried, the busiest first; `carried` per directed link.
  std::vector<LinkUse> used(std::span<const NetworkSums::Carried> carried) const;

 private:
  // What lies between a node and a destination on the best ways.
  struct Reached {
    std::int32_t distance = -1;  // links; -1: no way
    double width = 0;            // bandwidth of the narrowest
  };
  struct Stretch {
    std::uint32_t begin = 0, length = 0;  // in pool_
  };

  std::uint32_t number_of(const LinkId& id) const;
  void slow_down(const SlowLinks& slow);
  const std::vector<Reached>& towards(std::uint32_t device);
  void find_over_dimensions(const Message& message);
  void find_over_graph(const Message& message);

  Topology topology_;
  bool is_hierarchy_;
  bool hashed_;
  std::vector<std::string> dimensions_;  // names
  Interconnect graph_;
  std::vector<Link> links_;
  std::vector<std::uint32_t> first_cable_;  // per dimension, of hierarchies
  std::vector<std::vector<std::uint32_t>> leaving_;
  std::unordered_map<std::uint32_t, std::vector<Reached>> reached_;  // by destination
  std::unordered_map<std::uint64_t, Stretch> known_;                 // by the two ends
  std::vector<std::uint32_t> pool_;
};

}  // namespace armilla
