// How the members of a group meet in its collectives: what decides which of them are alike.
//
// Groups of one family, shape and set of calls are of one type. In a symmetric schedule
// (collective/schedule.h) all members do the same from where they stand, so that only distances matter;
// otherwise members are told apart by their position. Where messages cross links that others use, their
// routes matter, too: on a Ring all but those between neighbours, and what a flat algorithm sends across
// dimensions.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ir/machine.h"
#include "sim/collective_plan.h"
#include "sim/plan/study_job.h"

namespace armilla {

// The messages of one or more phases along lines of ranks: those of a grid in one dimension, or the group.
struct GroupWay {
  std::uint32_t dimension = 0;  // or kAllDimensions
  // Of a symmetric schedule: how offsets name peers, else absolute.
  Addressing addressing = Addressing::absolute;
  std::set<std::int32_t> offsets;
  std::vector<std::set<std::int32_t>> peers;  // otherwise, per position in the line

  // Calls `visit(peer)` for the peers of a position, in a fixed order.
  template <class Visit>
  void visit_peers(std::int32_t position, std::int32_t size, const Visit& visit) const {
    for (const std::int32_t offset : offsets) {
      visit(addressing == Addressing::exchange
                ? position ^ offset
                : static_cast<std::int32_t>((std::int64_t{position} + offset) % size));
    }
    if (peers.empty()) return;
    for (const std::int32_t peer : peers[static_cast<std::size_t>(position)]) visit(peer);
  }
};

struct GroupType {
  GroupShape shape;
  bool is_ordered = false;  // members are told apart by their position
  bool is_custom = false;   // members do what a user's schedule says
  bool is_routed = false;   // messages cross links that others use
  std::vector<GroupWay> ways;
};

struct TypedGroup {
  std::uint32_t family = 0, group = 0, type = 0;
};

struct GroupTypes {
  std::vector<GroupType> types;
  std::vector<TypedGroup> groups;  // those in which collectives send messages
  // Per family: its groups with messages are of one type at most.
  std::vector<bool> single_type;
};

// Coordinates of every rank: [dimension][rank].
using Coordinates = std::vector<std::vector<std::int32_t>>;
Coordinates coordinates_of(const Machine& machine, std::int64_t ranks);

// O(ranks x dimensions) per family in use, and the size of the schedules.
GroupTypes type_groups(const StudyJob& input, const Coordinates& coordinates, CollectivePlanner& planner);

// The lines of ranks of a grid along a dimension, as member numbers: base + i * stride for i below size.
struct GroupLines {
  std::int64_t size = 1, stride = 1;
};
inline GroupLines lines_along(const GroupShape& shape, std::uint32_t dimension) {
  if (dimension == kAllDimensions) return {shape.ranks, 1};
  GroupLines lines{shape.sizes[dimension], 1};
  for (std::uint32_t d = 0; d < dimension; ++d) lines.stride *= shape.sizes[d];
  return lines;
}

}  // namespace armilla
