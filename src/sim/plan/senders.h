// Who sends: on a link, messages of one sender wait for each other, and those of several may share it
// (Message::sender). The collectives of a family of groups are one, as of one communicator; messages of
// nodes, those of custom collectives among them, are another.
#pragma once

#include <cstdint>

#include "sim/collective_plan.h"
#include "sim/plan/rank_classes.h"
#include "sim/plan/study_job.h"

namespace armilla {

inline std::uint16_t sender_of_family(std::uint32_t family) {
  return static_cast<std::uint16_t>(1 + family % UINT16_MAX);
}

// Bit d: several senders use the machine's dimension d, whether at one time or not; of a Ring, the links
// between the same two neighbours. Dimensions beyond the 32nd, which no machine of a file has, are not looked
// at. O(issued items + simulated ranks x families); on Rings that more than one
// sender uses at all, O(ranks x (families + sends) x links of a way).
std::uint32_t shared_dimensions(const StudyJob& input, const RankClasses& classes,
                                CollectivePlanner& planner);

}  // namespace armilla
