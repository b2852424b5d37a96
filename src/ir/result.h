// Result: what happened in a simulated run, recorded once. Everything a report shows is a function of it
// (ir/derived/metrics.h).
//
// Times are picoseconds from the start of the iteration. Per-rank figures are kept for every class of ranks
// that behaved identically; a class lists how many ranks it stands for. Intervals are recorded for the first
// class of each program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/graph.h"

namespace armilla {

// Part of a run: [from, until).
struct TimeWindow {
  Time from, until = kEndOfTime;
};

// What ranks did again and again (sim/fold/time_fold.h): all that is recorded of them between `from` and
// `until` happened `times` times more right after it, or for so long nothing did (`pause`), and all that is
// recorded later happened that much later. Sums (of ranks, links, messages, events, the iteration) are of the
// whole run.
struct Repetition {
  Time from, until;
  std::int64_t times = 0;
  Time pause{};

  Time skipped() const { return (until - from) * times + pause; }
};
// For how long what went on between two recorded moments did so.
inline Time between(const std::vector<Repetition>& repeated, Time start, Time end) {
  Time time = end - start;
  for (const Repetition& again : repeated) {
    time +=
        (std::clamp(end, again.from, again.until) - std::clamp(start, again.from, again.until)) * again.times;
  }
  return time;
}

struct Interval {
  Time start, end;
  std::uint32_t node = 0;   // in the program of its class; of a loop, the one that is written
  std::uint32_t times = 1;  // that it happened so (RankClass::repeated)
};

// One chunk of a collective working in one dimension, as seen by one rank.
struct ChunkInterval {
  Time start, end;
  std::uint32_t node = 0;
  std::uint32_t chunk = 0;
  std::uint32_t dimension = 0;  // the logical one, where the semantics split one
  std::uint32_t phase = 0;      // which of the chunk's phases this is
  Time ready{};         // since when it waited in the dimension's queue; kept by the ASTRA-sim semantics
  Time message_time{};  // of its received messages, from ready to arrival, summed; likewise
  std::int32_t messages = 0;  // how many; likewise
};

struct RankClass {
  std::int32_t representative = 0;  // the lowest rank of the class
  std::int64_t ranks = 1;           // how many it stands for
  std::uint32_t program = 0;
  Time finish;                        // end of its last node
  Time compute;                       // busy computing: Lane::device
  Time communication;                 // at least one collective or send in flight (sim/engine/recorder.h)
  Time exposed_communication;         // of that, while not computing
  Time host_waits;                    // neither, while a node waits for nothing but the host's issue
  std::vector<Interval> computes;     // in order of start; empty unless recorded
  std::vector<Interval> collectives;  // from issue to completion
  std::vector<Interval> others;       // sends, receives, remote memory, host operations, pauses
  std::vector<ChunkInterval> chunks;
  std::vector<Repetition> repeated;  // in order; none: everything is recorded as it happened
};

// A collective as its representative saw it, the first class of its program.
struct CollectiveRecord {
  std::uint32_t program = 0, node = 0;
  std::uint32_t call = 0;  // into Graph::collectives
  std::int64_t group_size = 0;
  std::string algorithm;  // "reduce-scatter direct, all-reduce ring, all-gather direct"
  Time issued, started, finished;
  // Least time in which the group's links could carry what any algorithm has to send; 0: unknown. And that
  // in which the busiest link could carry what this one sends over it. Both at most the record's own time,
  // but on networks that do not share links, and where it is that of a broadcast's root, or of a member of
  // a group that is no grid, who is done before the others.
  Time link_limit, busiest_link;
  std::int64_t chunks = 0;  // that it was cut into; 0: it has none (custom collectives)
  CollectiveLimit limit = CollectiveLimit::bandwidth;
  std::int64_t better_chunks = 0;  // another number that would be much faster; 0: none is known
  std::int64_t times = 1;          // that it happened so (RankClass::repeated)
};

struct LinkUse {
  std::string name;  // "rank 0 -> rank 1 (nvlink)"
  std::uint32_t dimension = 0;
  std::int64_t links = 1;  // how many links behaved identically
  Bytes bytes;
  Time busy;
  Bandwidth bandwidth;
  // While several senders (Message::sender) shared it, and how many did at once; of networks that share links
  // among senders.
  Time shared{};
  std::int32_t senders = 0;
};

struct Result {
  Time iteration;  // end of the last node of any rank
  std::int64_t ranks = 0;
  std::vector<RankClass> classes;
  std::vector<std::uint32_t> class_of;  // per rank, into classes
  std::vector<CollectiveRecord> collectives;
  std::vector<LinkUse> links;             // those that carried something, the busiest first
  std::vector<std::string> dimensions;    // names, for the indices above
  std::vector<Bytes> sent_per_dimension;  // by rank 0; kept by the ASTRA-sim semantics
  std::int64_t messages = 0;              // simulated
  std::int64_t events = 0;
  std::vector<std::string>
      warnings;                    // what the user should not overlook: an unused network, an unfinished rank
  std::vector<std::string> notes;  // what the network chose for itself
};

}  // namespace armilla
