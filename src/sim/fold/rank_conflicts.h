// What colours do not show: places at which ranks of one class get in each other's way
// (sim/fold/rank_colours.h).
//
//   links     two messages of different sources cross a link over as many hops to go, and their labels may be
//             equal: the order of their sources decides who goes first
//   arrivals  the same where a rank hears two of them
//   matching  among the peers of a rank's nodes are two of one class that send, or receive, messages of equal
//             tag and size; or one that is waited for without sending what is waited for
// Only the lowest rank of every class is looked at, for the others' surroundings are the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/fold/rank_messages.h"
#include "sim/plan/study_job.h"

namespace armilla {

// The colours, without repetition, whose ranks must become classes of their own; those of one rank are.
std::vector<std::uint32_t> find_conflicts(const StudyJob& input, const RankMessages& messages,
                                          std::span<const std::uint32_t> colours);

}  // namespace armilla
