// Up*/down* routing (Schroeder et al., Autonet, IEEE JSAC 9(8), 1991): ways that first climb towards a root
// and then descend, so that no buffers can wait for each other in a circle on any graph.
//
// Of every part of the graph that is joined without devices the root is the node farthest from any device, of
// those the one with the most links, of those the first. A link leads up if its end is nearer to the root, or
// as near and of a smaller number; devices that pass nothing on lie below all others. Ways are the shortest
// of those allowed.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "network/routing/link_graph.h"

namespace armilla {

class UpDown {
 public:
  explicit UpDown(const LinkGraph& graph);

  // Appends the links from one node to another; of equally short ways the hash `key` takes one, and sets
  // `by_chance`, which stays as it is where there is but one. False: there is none.
  bool find(std::uint32_t source, std::uint32_t destination, std::uint64_t key,
            std::vector<std::uint32_t>& way, bool& by_chance);

  bool leads_up(std::uint32_t link) const {
    return order_[graph_.links[link].to] < order_[graph_.links[link].from];
  }
  // Grows along every way: upward links by their beginnings, then downward ones by their ends.
  std::uint64_t place_on_ways(std::uint32_t link) const {
    const std::uint64_t nodes = order_.size();
    return leads_up(link) ? nodes - order_[graph_.links[link].from]
                          : nodes + 1 + order_[graph_.links[link].to];
  }

 private:
  // Links to the destination: going down only, and in any allowed way; -1: none.
  struct Distances {
    std::vector<std::int32_t> down, any;
  };
  const Distances& towards(std::uint32_t destination);
  void number_part(const std::vector<std::uint32_t>& part, const std::vector<std::int32_t>& height,
                   std::uint64_t& next);

  const LinkGraph& graph_;
  std::vector<std::uint64_t> order_;  // per node
  std::unordered_map<std::uint32_t, Distances> known_;
};

}  // namespace armilla
