// The Trace Event Format of chrome://tracing (JSON): complete events ("X") for slices, metadata events ("M")
// that name processes and threads, flow events ("s" to "f") from a gradient to its collective.
//
// One process per class of ranks, one thread per lane (write/timeline.h). Times are microseconds, as the
// format wants, with six decimals: exact to the picosecond. A flow starts in the middle of its slice, where
// no neighbour can be mistaken for it, and ends at the beginning of the slice it leads to.
#pragma once

#include <string>

#include "ir/study.h"
#include "write/timeline.h"

namespace armilla {

std::string write_chrome(const Run& run, const TimelineSelection& selection = {});

}  // namespace armilla
