// From a collective call to what its ranks execute: the call is cut into chunks, a chunk into phases over the
// machine's dimensions, a phase into the schedule of the dimension's algorithm. Plans and schedules are made
// once and shared by all equal calls.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "collective/algorithm.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/result.h"
#include "network/network.h"
#include "sim/chunk_count.h"
#include "sim/group_layout.h"

namespace armilla {

struct PlannedPhase {
  std::uint32_t dimension = 0;  // of the machine, or kAllDimensions for a flat algorithm over the whole group
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool only_root_lines = false;
  bool windowed = false;  // some step limits its messages in flight
  const Schedule* schedule = nullptr;
  std::string_view algorithm;
};

struct CollectivePlan {
  std::vector<PlannedPhase> phases;
  std::vector<std::int32_t> root;  // its position in every dimension of a grid
};

// Of a member `rank` of a group in a phase: whether it takes part; its position in the phase's line of ranks; and
// who stands at another position of that line.
bool takes_part(const CollectivePlan& plan, const PlannedPhase& phase, const GroupLayout& layout,
                std::int32_t rank);
std::int32_t position_in(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank);
inline std::int32_t rank_at(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank,
                            std::int32_t here, std::int32_t there) {
  return phase.dimension == kAllDimensions ? layout.ranks[static_cast<std::size_t>(there)]
                                           : layout.member(rank, phase.dimension, here, there);
}

// What of a group's layout decides its plans: the sizes of a grid in the machine's dimensions, or only how
// many ranks there are.
struct GroupShape {
  std::vector<std::int64_t> sizes;  // empty: no grid
  std::int64_t ranks = 0;
  auto operator<=>(const GroupShape&) const = default;
};

// What a member of a group sends in a call.
struct MemberTraffic {
  double messages = 0, bytes = 0;
};

class CollectivePlanner {
 public:
  // Throws Error when the algorithms named by the options do not exist or do not fit the machine's
  // dimensions.
  CollectivePlanner(const Machine& machine, const CollectiveOptions& options);

  const GroupLayout& layout(const Graph& graph, std::uint32_t family, std::int32_t group);
  // As the options say, else by size; at most one per byte.
  std::int64_t chunks(const CollectiveCall& call, std::uint32_t shape);
  // How many of its chunks can take different ways: trees alternate between two. At most 2.
  std::int64_t sides(const CollectiveCall& call) const;
  // Numbers shapes from 0.
  std::uint32_t shape(const GroupShape& shape);
  const CollectivePlan& plan(const CollectiveCall& call, std::uint32_t shape, std::int64_t chunk);
  const CollectivePlan& plan(const CollectiveCall& call, const GroupLayout& layout, std::int64_t chunk) {
    return plan(call, layout.shape, chunk);
  }

  // "reduce-scatter direct on nvlink, all-reduce ring on rail, all-gather direct on nvlink"
  std::string describe(const CollectivePlan& plan) const;
  // What was used in place of a general wish that cannot perform a kind, one sentence each; of the plans made
  // so far.
  const std::set<std::string>& substitutions() const { return substitutions_; }

  // What the call takes beyond its schedule, by the fastest of the protocols of each dimension it crosses; 0
  // unless CollectiveOptions::measured.
  Time overhead(const CollectiveCall& call, std::uint32_t shape);

  // On average over the group.
  MemberTraffic traffic_per_member(const CollectiveCall& call, std::uint32_t shape);
  // Least time in which the busiest link could carry all chunks of the call, from the first member's point of
  // view.
  Time link_limit(const CollectiveCall& call, const GroupLayout& layout);
  // Chunks, what delays the call beside bandwidth and the number of chunks that would help, into a record. Returns how long
  // the call takes alone on its dimensions, about; 0: not known.
  Time describe_chunks(const CollectiveCall& call, std::uint32_t shape, CollectiveRecord& record);

 private:
  const Algorithm& algorithm(CollectiveKind kind, std::uint32_t dimension) const;
  const Schedule& schedule(const Algorithm& algorithm, const ScheduleRequest& request);
  Bytes chunk_bytes(const CollectiveCall& call, std::int64_t chunk, std::int64_t count) const;
  std::vector<PhaseLoad> phase_loads(const CollectiveCall& call, std::uint32_t shape);
  CollectivePlan make_plan(const CollectiveCall& call, const GroupShape& shape, Bytes bytes,
                           std::int64_t chunk);
  Time measure_link_limit(const CollectiveCall& call, const GroupLayout& layout);
  Time measure_overhead(const CollectiveCall& call, std::uint32_t shape);

  using PlanKey =
      std::tuple<std::uint32_t, CollectiveKind, std::int64_t, std::int32_t, std::int64_t, ExpertRouting>;
  using CallKey = std::tuple<const void*, CollectiveKind, std::int64_t, std::int32_t, ExpertRouting>;
  using ScheduleKey =
      std::tuple<const Algorithm*, CollectiveKind, std::int32_t, std::int64_t, std::int32_t, std::int32_t>;

  const Machine& machine_;
  const CollectiveOptions& options_;
  // Per kind, one algorithm per dimension, and last the one for flat groups.
  std::map<CollectiveKind, std::vector<Algorithm>> algorithms_;
  std::map<std::pair<CollectiveKind, std::uint32_t>, std::string_view>
      replaced_;  // the wish, by kind and dimension
  std::set<std::string> substitutions_;
  std::map<std::pair<std::uint32_t, std::int32_t>, GroupLayout> layouts_;  // by (family, group)
  std::map<GroupShape, std::uint32_t> shape_numbers_;
  std::vector<GroupShape> shapes_;
  std::map<PlanKey, CollectivePlan> plans_;
  std::map<CallKey, Time> link_limits_;
  std::map<std::tuple<std::uint32_t, CollectiveKind, std::int64_t, std::int32_t, ExpertRouting>, std::int64_t>
      chunk_counts_;
  std::map<std::tuple<std::uint32_t, CollectiveKind, std::int64_t, std::int32_t, ExpertRouting>, Time>
      overheads_;
  std::map<ScheduleKey, Schedule> schedules_;
};

}  // namespace armilla
