// How a group of ranks lies on the machine: as a sub-grid of its dimensions, when it is one, so that
// collectives can be decomposed; and what of that decides how its collectives are planned.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/machine.h"

namespace armilla {

struct GroupLayout {
  // Per machine dimension, the coordinates the group occupies, ascending. Empty when the group is no grid in
  // rank order: then only a flat algorithm over `ranks` is possible.
  std::vector<std::vector<std::int32_t>> coordinates;
  std::vector<std::int64_t> strides;  // of the machine's dimensions, in ranks
  std::vector<std::int32_t> ranks;    // in communicator order
  std::uint32_t shape = 0;            // the planner's number for it

  bool is_grid() const { return !coordinates.empty(); }
  std::vector<std::int64_t> sizes() const;
  // Position of `rank` among the group's coordinates in dimension d.
  std::int32_t position(std::int32_t rank, std::uint32_t d) const;
  // The member at position `to` of dimension d that shares all other coordinates with `rank`, which is at
  // `from`.
  std::int32_t member(std::int32_t rank, std::uint32_t d, std::int32_t from, std::int32_t to) const {
    const auto& here = coordinates[d];
    return static_cast<std::int32_t>(
        rank + (here[static_cast<std::size_t>(to)] - here[static_cast<std::size_t>(from)]) * strides[d]);
  }
  // Position of `rank` in the communicator. O(1) for consecutive ranks, O(log) otherwise.
  std::int32_t flat_position(std::int32_t rank) const;

  bool consecutive = false;                                    // ranks are first, first + 1, ...
  std::vector<std::pair<std::int32_t, std::int32_t>> by_rank;  // (rank, position), sorted
};

// O(ranks x dimensions).
GroupLayout lay_out(const std::vector<std::int32_t>& ranks, const Machine& machine);

// What of a group's layout decides its plans: the sizes of a grid in the machine's dimensions, or only how
// many ranks there are.
struct GroupShape {
  std::vector<std::int64_t> sizes;  // empty: no grid
  std::int64_t ranks = 0;
  // Of a grid, the coordinates in each dimension that has cables (Dimension::cables), in none of the others;
  // empty where there is no such dimension.
  std::vector<std::vector<std::int32_t>> places{};
  // Of no grid, for each row of members in one group of the first dimension (node), how many they are and
  // where they stand in it, where NICs are theirs; counted from the first place that a member takes in any
  // node where no cables tell places apart.
  std::vector<std::int32_t> in_nodes{};
  auto operator<=>(const GroupShape&) const = default;
};

// Whether groups of equal sizes differ by their places.
bool has_cables(const Machine& machine);
GroupShape shape_of(const GroupLayout& layout, const Machine& machine);
// GroupShape::in_nodes of members that are no grid; into `places`.
void place_in_nodes(std::span<const std::int32_t> ranks, const Machine& machine,
                    std::vector<std::int32_t>& places);

}  // namespace armilla
