// Perfetto's native trace format, for ui.perfetto.dev: protobuf written field by field, without generated
// code.
//
// Field numbers from google/perfetto, protos/perfetto/trace/ (trace_packet, track_event/*, interned_data).
// One packet sequence: the first packet clears the incremental state and carries every interned string, then
// come the track descriptors and the slices' begins and ends in time order. A process track per class of
// ranks, a child track per lane (write/timeline.h). Times are whole nanoseconds, the unit of the format:
// picoseconds rounded to the nearest, halves up. Rounding is monotone, so slices of a track still do not
// overlap and none ends before it begins; what is shorter than half a nanosecond may show as empty.
#pragma once

#include <string>

#include "ir/study.h"
#include "write/timeline.h"

namespace armilla {

std::string write_perfetto(const Timeline& timeline);
std::string write_perfetto(const Run& run, const TimelineSelection& selection = {});

}  // namespace armilla
