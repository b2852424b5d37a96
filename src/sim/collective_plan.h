// From a collective call to what its ranks execute: the call is cut into chunks, a chunk into phases over the
// machine's dimensions, a phase into the schedule of the dimension's algorithm. Plans and schedules are made
// once and shared by all equal calls.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "collective/algorithm.h"
#include "collective/decompose.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/result.h"
#include "network/network.h"
#include "sim/chunk_count.h"
#include "sim/group_layout.h"

namespace armilla {

// Another order of a group's members, by their positions in its own.
struct MemberOrder {
  std::vector<std::int32_t> member_at, position_of;
};

// As what a phase goes from node to node.
enum class Crossing : std::uint8_t { hierarchy, rings, trees };

struct PlannedPhase {
  std::uint32_t dimension = 0;  // of the machine, or kAllDimensions for a flat algorithm over the whole group
  CollectiveKind kind = CollectiveKind::all_reduce;
  PhaseMembers members = PhaseMembers::all;
  const Schedule* schedule = nullptr;
  std::string_view algorithm;
  const MemberOrder* order = nullptr;  // of a flat ring that is not the group's own order
  std::uint32_t queue = 0;  // other than its dimension's: of rings that share a flat call, of sums given back
  Crossing crossing = Crossing::hierarchy;
  // Of the dimension's bandwidth, what the members attain together over cables (collective/cables.h); else 1.
  double attained = 1;
  float share = 0;        // Message::share
  bool in_trees = false;  // of switches (Network::switch_tree), not in the switch of its dimension
};

struct CollectivePlan {
  std::vector<PlannedPhase> phases;
  std::vector<std::int32_t> root;  // its position in every dimension of a grid
};

// Of a member `rank` of a group in a phase: whether it takes part; its position in the phase's line of ranks;
// and who stands at another position of that line.
bool takes_part(const CollectivePlan& plan, const PlannedPhase& phase, const GroupLayout& layout,
                std::int32_t rank);
std::int32_t position_in(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank);
inline std::int32_t rank_at(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank,
                            std::int32_t here, std::int32_t there) {
  if (phase.dimension != kAllDimensions) return layout.member(rank, phase.dimension, here, there);
  const auto position = static_cast<std::size_t>(there);
  return layout
      .ranks[phase.order == nullptr ? position : static_cast<std::size_t>(phase.order->member_at[position])];
}

// What of a group's layout decides its plans: the sizes of a grid in the machine's dimensions, or only how
// many ranks there are.
struct GroupShape {
  std::vector<std::int64_t> sizes;  // empty: no grid
  std::int64_t ranks = 0;
  // Of a grid, the coordinates in each dimension that has cables (Dimension::cables), in none of the others;
  // empty where there is no such dimension.
  std::vector<std::vector<std::int32_t>> places{};
  // Of no grid, for each row of members in one group of the first dimension (node), how many they are and
  // where they stand in it, where NICs are theirs.
  std::vector<std::int32_t> in_nodes{};
  auto operator<=>(const GroupShape&) const = default;
};

// Whether groups of equal sizes differ by their places.
bool has_cables(const Machine& machine);
GroupShape shape_of(const GroupLayout& layout, const Machine& machine);
// GroupShape::in_nodes of members that are no grid; into `places`.
void place_in_nodes(std::span<const std::int32_t> ranks, const Machine& machine,
                    std::vector<std::int32_t>& places);
// Flat rings that a group is served by at most, one per NIC.
inline constexpr std::uint32_t kMostRings = 16;

// What a member of a group sends in a call.
struct MemberTraffic {
  double messages = 0, bytes = 0;
};

// Whether a network lets calls take the dimension's switches that reduce, where nobody names an algorithm. Of
// trees only those of SHARP: where NVSwitches reduce on them, ranks do not fold.
inline bool reduces_in(const Dimension& dimension, const NetworkPromises& network) {
  return dimension.in_switch &&
         (network.knows_dimensions || (network.grows_trees && dimension.in_switch->name == "sharp"));
}

class CollectivePlanner {
 public:
  // Throws Error when the algorithms named by the options do not exist or do not fit the machine's
  // dimensions and the network.
  CollectivePlanner(const Machine& machine, const CollectiveOptions& options,
                    const NetworkPromises& network = {.knows_dimensions = true});

  const GroupLayout& layout(const Graph& graph, std::uint32_t family, std::int32_t group);
  // As the options say, else by size; at most one per byte.
  std::int64_t chunks(const CollectiveCall& call, std::uint32_t shape);
  // Calls of one kind and root have the same peers in a group, whatever their size, if this is equal.
  std::int64_t size_class(const CollectiveCall& call) const;
  // Plans with all the peers that a call of its size class may have in a group.
  std::vector<const CollectivePlan*> possible_plans(const CollectiveCall& call, std::uint32_t shape);
  // Whether some calls may go over trees of switches.
  bool climbs() const { return climbs_; }
  // Numbers shapes from 0.
  std::uint32_t shape(const GroupShape& shape);
  const CollectivePlan& plan(const CollectiveCall& call, std::uint32_t shape, std::int64_t chunk);
  const CollectivePlan& plan(const CollectiveCall& call, const GroupLayout& layout, std::int64_t chunk) {
    return plan(call, layout.shape, chunk);
  }
  // How many chunks take each plan, in the order of their first.
  std::vector<std::pair<const CollectivePlan*, std::int64_t>> plans(const CollectiveCall& call,
                                                                    std::uint32_t shape);

  // "reduce-scatter direct on nvlink, all-reduce ring on rail, all-gather direct on nvlink"
  std::string describe(const CollectiveCall& call, std::uint32_t shape);
  // What was used in place of a general wish that cannot perform a kind, one sentence each; of the plans made
  // so far.
  const std::set<std::string>& substitutions() const { return substitutions_; }

  // What the call takes beyond its schedule, by the fastest of the protocols of each dimension it crosses, if
  // CollectiveOptions::measured, and by what its members attain over cables where the network knows none;
  // else 0.
  Time overhead(const CollectiveCall& call, std::uint32_t shape);
  // What of it is that the protocol moves bytes slower than the links do.
  Time held_by_protocol(const CollectiveCall& call, std::uint32_t shape);

  // What the call's steps and its kernel take whatever its bytes, about.
  Time latency(const CollectiveCall& call, const GroupLayout& layout);

  // On average over the group.
  MemberTraffic traffic_per_member(const CollectiveCall& call, std::uint32_t shape);
  // Least time in which the busiest link could carry all chunks of the call, from the first member's point of
  // view.
  Time busiest_link(const CollectiveCall& call, const GroupLayout& layout);
  // Least time in which the group's links could carry what any algorithm has to send (sim/plan/link_limit.h).
  Time link_limit(const CollectiveCall& call, const GroupLayout& layout) const;
  // Chunks, what delays the call beside bandwidth and the number of chunks that would help, into a record.
  // Returns how long the call takes alone on its dimensions, about; 0: not known.
  Time describe_chunks(const CollectiveCall& call, std::uint32_t shape, CollectiveRecord& record);

 private:
  // Of one dimension: that of the options, or the natural one; and others that may be faster for some
  // sizes and groups.
  struct Choice {
    Algorithm usual;
    std::vector<Algorithm> others{};  // at most kMostOthers
  };
  // Which of a Choice every dimension takes, a few bits each: 0 is the usual one.
  using Picks = std::uint64_t;
  static constexpr std::uint32_t kPickBits = 2;
  // Of a broadcast or a reduction: over all lines (collective/decompose.h).
  static constexpr Picks kOverAllLines = Picks{1} << 63;
  static constexpr std::size_t kMostOthers = (1 << kPickBits) - 1;
  const Algorithm& algorithm(CollectiveKind kind, std::uint32_t dimension, Picks picks) const;
  const Schedule& schedule(const Algorithm& algorithm, const ScheduleRequest& request);
  Bytes chunk_bytes(const CollectiveCall& call, std::int64_t chunk, std::int64_t count) const;
  // How a chunk goes: the order of dimensions (the ring, where it is flat), and, of those that go alike,
  // which of two trees or directions.
  struct Way {
    std::uint32_t order = 0, turn = 0;
    auto operator<=>(const Way&) const = default;
  };
  static constexpr std::uint32_t kTurns = 2;
  std::uint32_t turns(const CollectiveCall& call) const;
  // The orders of dimensions that its chunks take.
  std::vector<std::vector<std::uint32_t>> orders(CollectiveKind kind, const GroupShape& shape) const;
  // Flat rings that share a call, each of which leaves a node by another NIC: as many as the node with fewest
  // members has.
  std::uint32_t flat_rings(CollectiveKind kind, const GroupShape& shape) const;
  const MemberOrder* order_of(std::uint32_t shape, std::uint32_t ring);  // null where it is the group's own
  // By order.
  std::vector<ChunkLoads> phase_loads(const CollectiveCall& call, std::uint32_t shape);
  const std::vector<Way>& ways(const CollectiveCall& call, std::uint32_t shape);
  const CollectivePlan& plan(const CollectiveCall& call, std::uint32_t shape, Bytes bytes, const Way& way);
  CollectivePlan make_plan(const CollectiveCall& call, std::uint32_t shape, Bytes bytes, const Way& way,
                           Picks taken);
  ChunkLoads loads_of(const CollectivePlan& plan) const;
  // The dimension of a phase that has one, or goes over a tree.
  std::uint32_t crossed_by(const PlannedPhase& phase) const;
  // PlannedPhase::attained.
  double attained(std::uint32_t shape, std::uint32_t dimension, CollectiveKind kind);
  Picks picks(const CollectiveCall& call, std::uint32_t shape);
  // How a chunk of `bytes` is cut into phases.
  std::vector<CollectivePhase> phases_of(const CollectiveCall& call, Bytes bytes, const GroupShape& shape,
                                         const Way& way, Picks taken) const;
  bool may_go_over_all_lines(CollectiveKind kind, const GroupShape& shape) const;
  // What the library makes of a call: of a barrier an all-reduce of one element.
  CollectiveCall as_made(const CollectiveCall& call) const;
  // All that a call's phases may take, each dimension's choice with each other's; the usual ones first.
  std::vector<Picks> possible_picks(const CollectiveCall& call, const GroupShape& shape) const;
  Picks fastest(const CollectiveCall& call, std::uint32_t shape);
  // Gives a phase of `bytes` of a call what the library's rings or trees carry from node to node.
  Crossing cross_as_the_library(CollectivePhase& phase, const CollectiveCall& call, Bytes bytes,
                                const GroupShape& shape, Picks taken) const;
  // In seconds: of the kernel, of steps, and of bytes that a protocol moves slower than links do.
  struct Beyond {
    double launch = 0, steps = 0, bytes = 0;
    double total() const { return launch + steps + bytes; }
  };
  Beyond beyond(const PlannedPhase& phase, const GroupShape& shape) const;
  Beyond beyond(const CollectivePlan& plan, const GroupShape& shape) const;
  bool steps_hold_latency(const PlannedPhase& phase) const;
  double latency_between_nodes(const CollectivePlan& plan) const;
  const Beyond& beyond(const CollectiveCall& call, std::uint32_t shape);
  Time measure_busiest_link(const CollectiveCall& call, const GroupLayout& layout);

  // Of a call among a shape: shape, kind, bytes, root, routing.
  using ShapeKey = std::tuple<std::uint32_t, CollectiveKind, std::int64_t, std::int32_t, ExpertRouting>;
  static ShapeKey key_of(const CollectiveCall& call, std::uint32_t shape) {
    return {shape, call.kind, call.bytes.value, call.root, call.routing};
  }
  // And which algorithm each dimension takes, for a chunk of it.
  using PlanKey = std::tuple<ShapeKey, Way, Picks, Bytes>;  // of a chunk; last, of its call
  using CallKey = std::tuple<const void*, CollectiveKind, std::int64_t, std::int32_t, ExpertRouting>;
  using ScheduleKey =
      std::tuple<const Algorithm*, CollectiveKind, std::int32_t, std::int64_t, std::int32_t, std::int32_t>;

  const Machine& machine_;
  const CollectiveOptions& options_;
  bool knows_dimensions_;  // NetworkPromises's
  bool grows_trees_;
  bool climbs_ = false;  // some algorithm is of trees of switches
  // Per kind, one algorithm per dimension, and last the one for flat groups.
  std::map<CollectiveKind, std::vector<Choice>> algorithms_;
  std::map<std::pair<CollectiveKind, std::uint32_t>, std::string_view>
      replaced_;  // the wish, by kind and dimension
  std::set<std::string> substitutions_;
  std::map<std::pair<std::uint32_t, std::int32_t>, GroupLayout> layouts_;  // by (family, group)
  std::map<std::uint32_t, std::vector<MemberOrder>> member_orders_;        // of rings, by shape
  std::map<GroupShape, std::uint32_t> shape_numbers_;
  std::vector<GroupShape> shapes_;
  std::map<PlanKey, CollectivePlan> plans_;
  std::map<CallKey, Time> busiest_links_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, CollectiveKind>, double>
      attained_;  // by shape, dimension and kind
  std::map<ShapeKey, std::int64_t> chunk_counts_;
  std::map<ShapeKey, std::vector<Way>> ways_;
  std::map<ShapeKey, Picks> picks_;
  std::map<ShapeKey, Beyond> beyond_;
  bool chooses_by_size_ = false;  // some algorithm is chosen by size
  std::map<ScheduleKey, Schedule> schedules_;
};

}  // namespace armilla
