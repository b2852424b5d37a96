// Timeline: a run's recorded intervals as processes, tracks and slices, the form that all trace formats
// share.
//
// A process is a class of ranks that behaved alike, seen from its lowest rank; or, where ranks are chosen,
// one of these with what its class did. Its tracks are the compute units, the collectives (from issue to
// completion), point-to-point messages, remote memory, the host, and the chunks working in each network
// dimension; pauses are not shown. Where the run deviates from the ideal machine, a process of its own says
// how, and how long the iteration takes without. Slices of one track never overlap: what runs at the same
// time is spread over lanes, "collectives", "collectives (2)", and so on. A counter tells the memory that the
// rank holds. A flow leads from a computation to each collective that waited for it. All text is viewed in
// the Run, which must outlive the timeline, or in the timeline itself.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/study.h"

namespace armilla {

struct TraceArgument {
  std::string_view key;
  std::variant<std::int64_t, double, std::string_view> value;
};

struct TraceSlice {
  Time start, end;
  std::string_view name;
  std::string_view category;  // a phase, or "chunk"
  std::string_view layer;     // empty: none
  std::vector<TraceArgument> arguments;
  std::vector<std::uint64_t> flows_out, flows_in;  // ids that start or end here, unique in the timeline
};

struct TraceTrack {
  std::string name;
  std::vector<TraceSlice> slices;  // in time order
};

// A quantity that changes over time.
struct TraceCounter {
  struct Sample {
    Time at;
    std::int64_t value = 0;  // from then on
  };
  std::string name;
  std::vector<Sample> samples;  // in time order
  bool in_bytes = true;         // else a plain number
};

struct TraceProcess {
  std::string name;
  std::int32_t rank = 0;  // one beyond the last: what all ranks are subject to
  std::vector<TraceTrack> tracks;
  std::vector<TraceCounter> counters;
};

struct Timeline {
  std::vector<TraceProcess> processes;  // those with recorded intervals
  std::deque<std::string> texts;        // that the run does not hold
};

// What of a run to show. Slices are shown whole where any part of them lies in the window.
struct TimelineSelection {
  std::vector<RankRange> ranks;  // empty: the lowest rank of every recorded class
  Time from, until = kEndOfTime;
};

// Throws Error for a rank that the run has not, or that was not recorded.
Timeline make_timeline(const Run& run, const TimelineSelection& selection = {});

}  // namespace armilla
