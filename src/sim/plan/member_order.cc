#include "sim/plan/member_order.h"

#include <algorithm>
#include <span>
#include <vector>

#include "network/topology.h"

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

}  // namespace

void place_in_nodes(std::span<const std::int32_t> ranks, const Machine& machine,
                    std::vector<std::int32_t>& places) {
  places.clear();
  if (machine.dimensions.size() < 2) return;
  const Dimension& first = machine.dimensions.front();
  if (passes_others(first) || !first.cables.empty()) return;
  std::int64_t node = -1;
  std::size_t count = 0;  // where the node's is
  for (const std::int32_t rank : ranks) {
    if (rank / first.size != node) {
      count = places.size();
      places.push_back(0);
    }
    node = rank / first.size;
    ++places[count];
    places.push_back(static_cast<std::int32_t>(rank % first.size));
  }
}

std::int64_t nodes_in(const GroupShape& shape) {
  return std::ssize(nodes_of(shape));
}

std::uint32_t most_rings(const GroupShape& shape) {
  const std::vector<std::span<const std::int32_t>> nodes = nodes_of(shape);
  return nodes.size() < 2 ? 1 : static_cast<std::uint32_t>(fewest_members(nodes).size());
}

MemberOrder order_of_ring(const GroupShape& shape, std::uint32_t ring) {
  const std::vector<std::span<const std::int32_t>> nodes = nodes_of(shape);
  const std::span<const std::int32_t> entries = fewest_members(nodes);
  MemberOrder order;
  std::int32_t first = 0;
  for (const std::span<const std::int32_t> node : nodes) {
    const auto count = static_cast<std::int32_t>(node.size());
    auto enters = std::ranges::find(node, entries[ring]);
    if (enters == node.end()) {
      std::int64_t before = std::count_if(entries.begin(), entries.begin() + ring, [&](std::int32_t entry) {
        return std::ranges::find(node, entry) == node.end();
      });
      enters = std::ranges::find_if(node, [&](std::int32_t place) {
        return std::ranges::find(entries, place) == entries.end() && before-- == 0;
      });
    }
    const auto start = static_cast<std::int32_t>(enters - node.begin());
    for (std::int32_t i = 0; i < count; ++i) order.member_at.push_back(first + (start + i) % count);
    first += count;
  }
  order.position_of.resize(order.member_at.size());
  for (std::size_t position = 0; position < order.member_at.size(); ++position)
    order.position_of[static_cast<std::size_t>(order.member_at[position])] =
        static_cast<std::int32_t>(position);
  return order;
}

}  // namespace armilla
