// What the links of a group's ranks need for a collective by whatever algorithm: a bound from cuts.
//
// Ranks that agree in some of the machine's dimensions and have all coordinates of the group in the others,
// S, are a block. Of n ranks in m = n / s blocks, s each, a block has to send or receive V bytes over the
// links that leave it: s times those that a rank has in the dimensions outside S. The bound is the largest V
// over the bandwidth of these links over all S. C is the call's bytes:
//
//   all-reduce                   2 (m - 1) / m C (Patarasuk and Yuan 2009, for m ranks); C over
//                                switches that reduce
//   reduce-scatter, all-gather   (m - 1) / m C
//   all-to-all                   s (1 - 1/m) C; on Rings, half of which also is a block, as much as
//                                crosses the middle
//   broadcast, reduce            C
//   barrier                      0
//
// Links, per rank and direction: a Ring two (of two ranks one), FullyConnected one to every other member,
// Switch one, or what rings over a group's cables attain (collective/cables.h), where there are none at least
// a cable of a chain, or all cables of a member, for algorithms that take no rings. In a group that is no
// grid blocks are the members that agree in the outer dimensions, of several sizes: messages that cross
// dimensions in ascending order come in over the members' links, and leave over the links of the places that
// members of other blocks have. A block of s sends or receives s (1 - s/n) C in an all-to-all, (1 - s/n) C in
// an all-gather or a reduce-scatter, and C in an all-reduce, a broadcast or a reduction, whose root's it may
// not be; all m blocks together receive 2 (m - 1) C in an all-reduce, (m - 1) C in a reduce-scatter. Over an
// explicit graph: of single ranks, with the links of all dimensions.
// Of calls whose bytes depend on a routing of tokens nothing is known: 0.
#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "ir/machine.h"
#include "sim/collective_plan.h"
#include "sim/group_layout.h"

namespace armilla {

// `reducing`: the dimensions, by bit, whose switches reduce. O(2^d d) for d dimensions in which the group's
// ranks differ.
Time least_time_on_links(const CollectiveCall& call, const GroupLayout& layout, const Machine& machine,
                         std::uint32_t reducing, bool by_rings = true);

}  // namespace armilla
