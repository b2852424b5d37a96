#include "sim/plan/member_order.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "collective/cables.h"

namespace armilla {
namespace {

// Of no grid, where its members stand in each node (GroupShape::in_nodes).
std::vector<std::span<const std::int32_t>> nodes_of(const GroupShape& shape) {
  std::vector<std::span<const std::int32_t>> nodes;
  for (std::size_t at = 0; at < shape.in_nodes.size(); at += 1 + nodes.back().size())
    nodes.push_back(std::span(shape.in_nodes).subspan(at + 1, static_cast<std::size_t>(shape.in_nodes[at])));
  return nodes;
}
std::span<const std::int32_t> fewest_members(std::span<const std::span<const std::int32_t>> nodes) {
  return *std::ranges::min_element(nodes, {}, [](const auto& node) { return node.size(); });
}

// Where a ring enters a node: at its own entry, or, where nobody stands there, at what is no ring's.
std::int32_t entry_of(std::span<const std::int32_t> node, std::span<const std::int32_t> entries,
                      std::size_t ring) {
  const auto enters = std::ranges::find(node, entries[ring]);
  if (enters != node.end()) return *enters;
  std::int64_t before =
      std::count_if(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(ring),
                    [&](std::int32_t entry) { return std::ranges::find(node, entry) == node.end(); });
  return *std::ranges::find_if(node, [&](std::int32_t place) {
    return std::ranges::find(entries, place) == entries.end() && before-- == 0;
  });
}

}  // namespace

std::int64_t nodes_in(const GroupShape& shape) {
  return std::ssize(nodes_of(shape));
}

std::uint32_t most_rings(const GroupShape& shape) {
  const std::vector<std::span<const std::int32_t>> nodes = nodes_of(shape);
  // Every ring enters and leaves each node over a member, and so its NIC, of its own.
  return nodes.size() < 2 ? 1 : static_cast<std::uint32_t>(fewest_members(nodes).size());
}

std::vector<MemberOrder> orders_of_rings(const GroupShape& shape, std::span<const MemberCable> cables) {
  const std::vector<std::span<const std::int32_t>> nodes = nodes_of(shape);
  const std::span<const std::int32_t> entries = fewest_members(nodes);
  std::map<std::vector<std::int32_t>, MemberRings> on_cables;  // by the members of a node
  for (const std::span<const std::int32_t> node : nodes) {
    const auto [found, fresh] = on_cables.try_emplace({node.begin(), node.end()});
    // Nodes with members at the same places have the same cables between them.
    if (fresh && !cables.empty()) found->second = find_rings(cables, node);
  }
  std::vector<MemberOrder> orders(std::min<std::size_t>(entries.size(), kMostRings));
  for (std::size_t ring = 0; ring < orders.size(); ++ring) {
    MemberOrder& order = orders[ring];
    std::int32_t first = 0;
    for (const std::span<const std::int32_t> node : nodes) {
      const std::int32_t enters = entry_of(node, entries, ring);
      const auto& ways = on_cables.at({node.begin(), node.end()}).orders;
      const std::span<const std::int32_t> way = ways.empty() ? node : ways[ring % ways.size()];
      const auto start = static_cast<std::size_t>(std::ranges::find(way, enters) - way.begin());
      for (std::size_t i = 0; i < way.size(); ++i) {
        const auto place = std::ranges::find(node, way[(start + i) % way.size()]);
        order.member_at.push_back(first + static_cast<std::int32_t>(place - node.begin()));
      }
      first += static_cast<std::int32_t>(node.size());
    }
    order.position_of.resize(order.member_at.size());
    for (std::size_t position = 0; position < order.member_at.size(); ++position)
      order.position_of[static_cast<std::size_t>(order.member_at[position])] =
          static_cast<std::int32_t>(position);
  }
  return orders;
}

}  // namespace armilla
