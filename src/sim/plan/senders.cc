#include "sim/plan/senders.h"

#include <algorithm>
#include <vector>

#include "network/topology.h"

namespace armilla {
namespace {

// Dimensions in which two ranks differ.
std::uint32_t differing(const Topology& topology, std::int32_t rank, std::int32_t other) {
  std::uint32_t dimensions = 0;
  for (std::uint32_t d = 0; d < std::min(topology.dimensions(), 32U); ++d) {
    if (topology.coordinate(rank, d) != topology.coordinate(other, d)) dimensions |= 1U << d;
  }
  return dimensions;
}

// Of the families whose collectives a program issues, each once.
std::vector<std::uint32_t> families_of(const Graph& graph, const Issued& issued) {
  std::vector<std::uint32_t> families;
  for (const IssuedItem& item : issued.items) {
    if (item.kind != NodeKind::collective || graph.collectives[item.payload].custom >= 0) continue;
    const std::uint32_t family = graph.collectives[item.payload].family;
    if (std::ranges::find(families, family) == families.end()) families.push_back(family);
  }
  return families;
}

}  // namespace

std::uint32_t shared_dimensions(const Graph& graph, std::span<const Issued> issued, const Machine& machine,
                                const RankClasses& classes, CollectivePlanner& planner) {
  const Topology topology(machine);
  std::vector<std::vector<std::uint32_t>> families;  // by program
  for (const Issued& program : issued) families.push_back(families_of(graph, program));
  std::vector<std::uint32_t> crossed(graph.families.size());
  for (const std::int32_t rank : classes.real) {
    for (const std::uint32_t family : families[graph.program_of[static_cast<std::size_t>(rank)]]) {
      const std::int32_t group = graph.families[family].group_of[static_cast<std::size_t>(rank)];
      const GroupLayout& layout = planner.layout(graph, family, group);
      for (std::uint32_t d = 0; d < std::min<std::size_t>(layout.coordinates.size(), 32); ++d) {
        if (layout.coordinates[d].size() > 1) crossed[family] |= 1U << d;
      }
      for (std::size_t i = 1; i < layout.ranks.size() && !layout.is_grid(); ++i)
        crossed[family] |= differing(topology, layout.ranks.front(), layout.ranks[i]);
    }
  }
  std::uint32_t used = 0, shared = 0;
  for (const std::uint32_t dimensions : crossed) {
    shared |= used & dimensions;
    used |= dimensions;
  }
  if ((used & ~shared) == 0) return shared;
  const Peers peers(graph);
  std::uint32_t by_nodes = 0;
  const bool any_custom = !graph.custom.empty();
  for (const std::int32_t rank : classes.real) {
    for (const IssuedItem& item : issued[graph.program_of[static_cast<std::size_t>(rank)]].items) {
      if (item.kind == NodeKind::send)
        by_nodes |= differing(topology, rank, peers.of(rank, graph.transfers[item.payload]));
    }
  }
  return any_custom ? shared | used : shared | (used & by_nodes);
}

}  // namespace armilla
