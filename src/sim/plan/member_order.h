// The flat rings that serve a group which is no grid, one per NIC of the node where it has fewest members.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/machine.h"
#include "sim/collective_plan.h"

namespace armilla {

// That a group which is no grid stands in, by rows of its members; 0 of other groups.
std::int64_t nodes_in(const GroupShape& shape);
// One where the group stands in a single node.
std::uint32_t most_rings(const GroupShape& shape);

// Ring r enters a node, by the NIC of the member it enters at, where the r-th member of the node with fewest
// stands in that one, so that NICs of the group's own carry it at both ends; where nobody stands there, at
// the first member that no ring enters at. It goes round to the member before; where cables join the members
// of a node, along the rings over these, in turn, or along the chain and back (MemberRings::orders).
std::vector<MemberOrder> orders_of_rings(const GroupShape& shape, std::span<const MemberCable> cables);

}  // namespace armilla
