// A graph of directed links, and searches over it. Devices pass nothing on unless the graph says so.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/interconnect.h"

namespace armilla {

// Links 2c and 2c + 1 are the two directions of cable c.
struct DirectedLink {
  std::uint32_t from = 0, to = 0;  // nodes of the graph
  std::uint32_t dimension = 0;
  LinkFigures figures;
};

struct LinkGraph {
  explicit LinkGraph(Interconnect interconnect);

  bool is_device(std::uint32_t node) const { return graph.nodes[node].kind == NetworkNodeKind::device; }
  bool forwards(std::uint32_t node) const { return graph.devices_forward || !is_device(node); }

  Interconnect graph;
  std::vector<DirectedLink> links;
  std::vector<std::vector<std::uint32_t>> leaving;  // links, per node
};

// What lies between a node and a destination on the best ways.
struct Reached {
  std::int32_t distance = -1;  // links; -1: no way
  double width = 0;            // bandwidth of the narrowest, undamaged
};

// Per node; over links of one dimension, or of all. O(nodes + links).
constexpr std::uint32_t kEveryDimension = UINT32_MAX;
std::vector<Reached> search_towards(const LinkGraph& graph, std::uint32_t destination,
                                    std::uint32_t dimension = kEveryDimension);

// Links by which widest shortest ways to the destination leave `node`, which is on one as wide as `width`:
// where these were searched in one dimension, its links.
void next_links(const LinkGraph& graph, const std::vector<Reached>& reached, std::uint32_t node,
                std::uint32_t destination, double width, std::vector<std::uint32_t>& next,
                std::uint32_t dimension = kEveryDimension);

}  // namespace armilla
