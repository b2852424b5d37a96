// A collective evaluated instead of played: what its members do and what crosses their links when all of
// them start together and nothing else uses those links (sim/memo/lone_groups.h). Then it is always the same
// but for the moment, so it is played once, alone (sim/memo/rehearsals.h), and remembered.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/engine/collective_executor.h"
#include "sim/engine/collective_instances.h"

namespace armilla {

struct Rehearsal {
  // Equal messages of one member to another.
  struct Sent {
    std::int32_t to = 0;  // position in the sender's own group
    std::uint32_t dimension = 0;
    Bytes bytes;
    std::int64_t times = 0;
  };
  struct Member {
    std::vector<ChunkPhase> phases;  // in order of their ends
    std::vector<Sent> sent;
  };
  Time duration;                // of every member: they end together, too
  std::vector<Member> members;  // of the group class
};

class Rehearser {
 public:
  virtual ~Rehearser() = default;
  // Null where members that start together do not end together at a later moment, and where a rehearsal does
  // not pay. Stays where it is.
  virtual const Rehearsal* rehearse(std::uint32_t call, const CollectiveGroup& group) = 0;
};

}  // namespace armilla
