// What members that are joined by cables, not by a switch, attain together: the hybrid cube mesh of a DGX-1,
// of whose eight GPUs each has six NVLinks to four others.
//
// NCCL looks for rings over such cables (src/graph/search.cc): directed cycles through all members that share
// no cable in either direction, as many as there are. A collective is spread over them, and attains so many
// times a cable's bandwidth. Eight GPUs of a DGX-1 have six, four have four, two may have one or two. Where
// there is no ring, rings lead over PCIe and the CPUs; an all-reduce then goes along a chain instead (a tree
// whose every node has one child), up and down at once, of as many channels as there are rings: one.
//
// Messages between two members take the cables between them, or PCIe where there is none. Not modelled: rings
// over PCIe beside those over cables; messages that a member between passes on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/machine.h"

namespace armilla {

struct MemberRings {
  std::int32_t rings = 0;  // that share no cable in either direction
  bool chain = false;      // a way along cables through all members
  // The members in the order of each ring; where there is none, as the chain has them, else as they were
  // given, there and back.
  std::vector<std::vector<std::int32_t>> orders{};
};

// Among the members at some coordinates of a dimension. As many rings as the search finds in 10^6 steps,
// which are all of 8 members; O(1) where a member's cables are as many as the rings that were found.
MemberRings find_rings(std::span<const MemberCable> cables, std::span<const std::int32_t> members);

// Bytes that a member sends per second in a collective among these members. `host`: as in pair_bandwidth
// (ir/machine.h).
Bandwidth attained_on_cables(const Dimension& dimension, std::span<const std::int32_t> members,
                             CollectiveKind kind, Bandwidth host);

}  // namespace armilla
