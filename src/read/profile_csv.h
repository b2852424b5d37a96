// Measured times of computations: the CSV that `armilla events` writes, with times of one's own in the column
// `time_s` (docs/formats/events.md). Passed over: rows without a time, those whose `source` is "modelled" or
// "given", and communications.
#pragma once

#include <string>
#include <string_view>

#include "ir/profile.h"

namespace armilla {

// Throws Error with file:line for missing and unknown columns, a phase, type or number that is none, a
// negative time, and a computation that is there twice with different times.
Profile parse_profile(std::string_view text, const std::string& name);
Profile read_profile(const std::string& path);

}  // namespace armilla
