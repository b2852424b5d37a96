// Events of a training job: every distinct computation and communication once, with how often it occurs.
//
// DistSim (Lu et al. 2023, section 4.1): ranks and micro-batches repeat the same few computations, so that
// one profile of each distinct one is enough. Two computations are the same event when operator, phase and
// work (matrix shapes, flops, bytes, type) are equal; two communications, when kind, bytes, group size and
// the machine's dimensions that they span are. Redundancy factor: occurrences over distinct events, how much
// profiling or costing each once saves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/graph.h"
#include "ir/work.h"

namespace armilla {

// Where a time comes from.
enum class TimeSource : std::uint8_t { modelled, measured, interpolated, given, simulated };
std::string_view name_of(TimeSource source);

struct JobEvent {  // Event is the queue's (event/event_queue.h)
  NodeKind kind = NodeKind::compute;
  std::string name;            // of an operator, or "all-reduce", "send", "load" ...
  Phase phase = Phase::other;  // of computations
  Work work;                   // likewise; only its type and shapes where the time was given
  Bytes bytes;                 // of communications
  std::int64_t group_size = 0;
  std::string spans;        // "nvlink", "nvlink+rail": dimensions of the machine in which members differ
  bool inter_node = false;  // beyond the innermost dimension
  std::int64_t count = 0;   // over all ranks and micro-batches; every member of a group counts
  Time time;                // of one; of communications, the mean of those simulated
  TimeSource source = TimeSource::simulated;
  std::optional<Time> profiled{};  // of communications: what the profile has, which is not what was simulated
};

struct EventTable {
  std::vector<JobEvent> computations, communications;  // the longest in total first
  std::string device{};                                // the machine's usual one
};

// What remains to be measured: computations without a measured time, communications that no profile has.
EventTable missing_events(const EventTable& table);

std::int64_t occurrences(const EventTable& table);
double redundancy_factor(const EventTable& table);

}  // namespace armilla
