// The stages of a hybrid-parallel run side by side: how every role spent the iteration and what it holds.
//
// Per role, for the first of its ranks that was recorded:
//   iteration = compute + sum of exposed[kind] + bubble
// Time in which nothing is computed belongs to the communication in flight, by the name of its groups
// ("tensor", "data" ...); to the first of StageTable::kinds where several are. Sends count as communication
// while they are under way, waiting for a message does not: it is bubble, as in the papers, along with
// whatever else is not communication. Bubble of equal stages without communication: (p - 1) / (m + p - 1) of
// the iteration under 1F1B, (p - 1) / m of the ideal time (Narayanan et al. 2021, section 2.2).
// Cost: O(intervals log intervals).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ir/study.h"

namespace armilla {

struct StageSummary {
  std::uint32_t program = 0;
  std::int64_t ranks = 0;  // of all classes of the role
  Time compute;
  std::vector<Time> exposed;  // parallel to StageTable::kinds
  Time bubble;
  Time least_compute, most_compute;  // over the classes
  Bytes peak;                        // memory; 0: not known
};

struct StageTable {
  std::vector<std::string_view> kinds;  // of communication that is exposed anywhere
  std::vector<StageSummary> stages;     // by program
};

// One stage per program; of any run, though it says little about those without several.
StageTable stage_table(const Run& run);

// Of one class of ranks whose intervals were recorded: the same for its ranks, without kinds that none of
// them waits for.
std::vector<std::pair<std::string_view, Time>> exposed_by_kind(const Run& run, const RankClass& ranks);

// Per program the first class of ranks that was recorded, or the first one; null where no rank runs it.
std::vector<const RankClass*> representatives(const Run& run);

// Mean over all ranks of the time in which they neither compute nor communicate nor wait for the host: its
// share of the simulated time, and over the time spent computing.
double bubble_fraction(const Run& run);
double bubble_ratio(const Run& run);
// Likewise of the time in which they wait for nothing but the host (Plan::host).
double host_fraction(const Run& run);

// What the rank that was recorded for `memory.program` holds, from its first node on: every change of it, in
// order of time, thinned to `most` moments that keep the peaks. The largest is the peak. All but activations
// and temporary stays the same. Empty where nothing was recorded.
struct MemorySample {
  Time at;
  Bytes held;  // all of it
  Bytes activations, temporary;
};
std::vector<MemorySample> memory_over_time(const Run& run, const RoleMemory& memory, std::size_t most);
// The same for a class of ranks of that role.
std::vector<MemorySample> memory_over_time(const Run& run, const RankClass& ranks, const RoleMemory& memory,
                                           std::size_t most);

// Whether intervals of the class were kept.
bool is_recorded(const RankClass& ranks);

}  // namespace armilla
