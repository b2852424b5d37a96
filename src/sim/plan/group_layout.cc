#include "sim/group_layout.h"

#include <algorithm>

#include "base/sorted.h"
#include "network/topology.h"

namespace armilla {
namespace {

std::int32_t coordinate(std::int32_t rank, std::int64_t stride, std::int64_t size) {
  return static_cast<std::int32_t>(rank / stride % size);
}

}  // namespace

std::vector<std::int64_t> GroupLayout::sizes() const {
  std::vector<std::int64_t> all;
  for (const auto& in_dimension : coordinates) all.push_back(static_cast<std::int64_t>(in_dimension.size()));
  return all;
}

std::int32_t GroupLayout::position(std::int32_t rank, std::uint32_t d) const {
  const auto& here = coordinates[d];
  // The size of the dimension is not needed: whatever lies above the stride of the next one is cut off by it.
  const std::int64_t within = d + 1 < strides.size() ? rank % strides[d + 1] : rank;
  const auto value = static_cast<std::int32_t>(within / strides[d]);
  return static_cast<std::int32_t>(std::lower_bound(here.begin(), here.end(), value) - here.begin());
}

std::int32_t GroupLayout::flat_position(std::int32_t rank) const {
  if (consecutive) return rank - ranks.front();
  return std::lower_bound(by_rank.begin(), by_rank.end(), std::pair(rank, std::int32_t{0}))->second;
}

GroupLayout lay_out(const std::vector<std::int32_t>& ranks, const Machine& machine) {
  GroupLayout layout;
  layout.ranks = ranks;
  layout.by_rank.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    layout.by_rank.emplace_back(ranks[i], static_cast<std::int32_t>(i));
  layout.consecutive = true;
  for (std::size_t i = 1; i < ranks.size(); ++i)
    layout.consecutive = layout.consecutive && ranks[i] == ranks[i - 1] + 1;
  std::sort(layout.by_rank.begin(), layout.by_rank.end());

  std::int64_t stride = 1;
  std::int64_t product = 1;
  for (const Dimension& dimension : machine.dimensions) {
    std::vector<std::int32_t> occupied;
    occupied.reserve(ranks.size());
    for (const std::int32_t rank : ranks) occupied.push_back(coordinate(rank, stride, dimension.size));
    sort_unique(occupied);
    product *= static_cast<std::int64_t>(occupied.size());
    layout.coordinates.push_back(std::move(occupied));
    layout.strides.push_back(stride);
    stride *= dimension.size;
    if (product > static_cast<std::int64_t>(ranks.size())) break;
  }
  // As many distinct ranks as the grid has points are exactly the grid; the communicator must also list them
  // in rank order.
  const bool grid = product == static_cast<std::int64_t>(ranks.size()) &&
                    std::is_sorted(ranks.begin(), ranks.end()) &&
                    layout.coordinates.size() == machine.dimensions.size();
  if (!grid) layout.coordinates.clear();
  return layout;
}

bool has_cables(const Machine& machine) {
  return std::any_of(machine.dimensions.begin(), machine.dimensions.end(),
                     [](const Dimension& dimension) { return !dimension.cables.empty(); });
}

GroupShape shape_of(const GroupLayout& layout, const Machine& machine) {
  GroupShape shape{layout.sizes(), static_cast<std::int64_t>(layout.ranks.size())};
  if (!layout.is_grid()) place_in_nodes(layout.ranks, machine, shape.in_nodes);
  if (!has_cables(machine) || !layout.is_grid()) return shape;
  shape.places = layout.coordinates;
  // A grid's coordinates matter only where links differ from pair to pair; all other groups of one size share
  // their plans.
  for (std::size_t d = 0; d < shape.places.size(); ++d) {
    if (machine.dimensions[d].cables.empty()) shape.places[d].clear();
  }
  return shape;
}

void place_in_nodes(std::span<const std::int32_t> ranks, const Machine& machine,
                    std::vector<std::int32_t>& places) {
  places.clear();
  if (machine.dimensions.size() < 2) return;
  const Dimension& first = machine.dimensions.front();
  // Nodes that are rings of their own are lines of a grid, not places behind one switch.
  if (passes_others(first)) return;
  // Rings compare places and go round in their order. Where no cables join some of them, groups that differ
  // by where their places begin are served alike: they share their plans, and their ranks fold.
  std::int64_t begin = 0;
  if (first.cables.empty() && !ranks.empty()) {
    begin = first.size;
    for (const std::int32_t rank : ranks) begin = std::min(begin, rank % first.size);
  }
  std::int64_t node = -1;
  std::size_t count = 0;  // where the node's is
  for (const std::int32_t rank : ranks) {
    if (rank / first.size != node) {
      count = places.size();
      places.push_back(0);
    }
    node = rank / first.size;
    ++places[count];
    places.push_back(static_cast<std::int32_t>(rank % first.size - begin));
  }
}

}  // namespace armilla
