// For tests: whether Armilla's own schedules perform their collective.
#pragma once

#include <string>

#include "collective/algorithm.h"

namespace armilla {

// Proof by execution that schedules perform their collective: moves tokens instead of bytes.
//
// Every member starts with its contribution to every block; messages merge or replace blocks as their
// payloads say. At the end each member must hold exactly what the collective's meaning demands: for
// all-reduce every block with every contribution exactly once, and so on. Merging a contribution twice,
// sending a block one does not hold, a step that never completes, bytes that do not match the payload and
// receives that nobody sends are all reported. Cost O(ranks^2 x blocks), so at most kMaxPayloadRanks.
//
// Empty when `schedule` (made with payloads) performs what was requested, else what is wrong with it.
std::string verify_schedule(const ScheduleRequest& request, const Schedule& schedule);

}  // namespace armilla
