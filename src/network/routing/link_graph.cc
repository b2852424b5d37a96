#include "network/routing/link_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace armilla {

LinkGraph::LinkGraph(Interconnect interconnect) : graph(std::move(interconnect)) {
  for (const Cable& cable : graph.cables) {
    links.push_back({cable.a, cable.b, cable.dimension, cable.there});
    links.push_back({cable.b, cable.a, cable.dimension, cable.back});
  }
  leaving.resize(graph.nodes.size());
  for (std::uint32_t link = 0; link < links.size(); ++link) leaving[links[link].from].push_back(link);
}

// Breadth first from the destination, against the links.
std::vector<Reached> search_towards(const LinkGraph& graph, std::uint32_t destination,
                                    std::uint32_t dimension) {
  std::vector<Reached> reached(graph.leaving.size());
  reached[destination] = {0, std::numeric_limits<double>::infinity()};
  std::vector<std::uint32_t> waiting = {destination};
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const std::uint32_t here = waiting[i];
    if (here != destination && !graph.forwards(here)) continue;
    for (const std::uint32_t leaving : graph.leaving[here]) {
      const DirectedLink& link = graph.links[leaving ^ 1];  // that leads here
      if (dimension != kEveryDimension && link.dimension != dimension) continue;
      Reached& before = reached[link.from];
      if (before.distance < 0) {
        before.distance = reached[here].distance + 1;
        waiting.push_back(link.from);
      }
      // All nodes as far as `here` are done with before those behind them are begun.
      if (before.distance == reached[here].distance + 1)
        before.width = std::max(before.width, std::min(link.figures.width().value, reached[here].width));
    }
  }
  return reached;
}

void next_links(const LinkGraph& graph, const std::vector<Reached>& reached, std::uint32_t node,
                std::uint32_t destination, double width, std::vector<std::uint32_t>& next,
                std::uint32_t dimension) {
  next.clear();
  const std::int32_t closer = reached[node].distance - 1;
  if (closer < 0) return;
  for (const std::uint32_t number : graph.leaving[node]) {
    const DirectedLink& link = graph.links[number];
    const Reached& there = reached[link.to];
    if (there.distance != closer || (dimension != kEveryDimension && link.dimension != dimension)) continue;
    const bool passes = link.to == destination || graph.forwards(link.to);
    if (passes && std::min(link.figures.width().value, there.width) >= width) next.push_back(number);
  }
}

}  // namespace armilla
