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
#include <utility>
#include <vector>

#include "collective/algorithm.h"
#include "collective/decompose.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/result.h"
#include "network/network.h"
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

// Flat rings that a group is served by at most, one per NIC.
inline constexpr std::uint32_t kMostRings = 16;

// Calls with equal keys go alike among the same members.
struct CallKey {
  explicit CallKey(const CollectiveCall& call)
      : kind(call.kind),
        bytes(call.bytes),
        root(call.root),
        takes_turns(call.takes_turns),
        routing(call.routing) {}
  CollectiveKind kind;
  Bytes bytes;
  std::int32_t root;
  bool takes_turns;
  ExpertRouting routing;
  auto operator<=>(const CallKey&) const = default;
};

// How a chunk goes: the order of dimensions (the ring, where it is flat), and, of those that go alike, which
// of two trees or directions.
struct ChunkWay {
  std::uint32_t order = 0, turn = 0;
  auto operator<=>(const ChunkWay&) const = default;
};

// Which of the algorithms it may take every dimension takes (sim/plan/algorithm_choices.h); 0: the
// usual ones.
using AlgorithmPicks = std::uint64_t;

// What a call takes beyond its schedule, in seconds: of the kernel, of steps, and of bytes that a protocol
// moves slower than links do, or within a member's own memory.
struct BeyondSchedule {
  double launch = 0, steps = 0, bytes = 0, within = 0;
  double total() const { return launch + steps + bytes + within; }
};

// What plans are made for. Machine and options must outlive who keeps it.
struct PlannedFor {
  const Machine& machine;
  const CollectiveOptions& options;
  NetworkPromises network;
};

struct PhaseLoad;
class AlgorithmChoices;
class CollectiveLibrary;
class PlanMaker;

// Decides how a call goes - in how many chunks, each which way, with which algorithms - and remembers what
// was decided and the plans made for it (sim/plan/plan_maker.h).
class CollectivePlanner {
 public:
  // Throws Error when the algorithms named by the options do not exist or do not fit the machine's
  // dimensions and the network.
  CollectivePlanner(const Machine& machine, const CollectiveOptions& options,
                    const NetworkPromises& network = {.over_dimensions = true});
  ~CollectivePlanner();
  CollectivePlanner(const CollectivePlanner&) = delete;
  CollectivePlanner& operator=(const CollectivePlanner&) = delete;

  const Machine& machine() const { return given_.machine; }
  const CollectiveOptions& options() const { return given_.options; }
  const GroupLayout& layout(const Graph& graph, std::uint32_t family, std::int32_t group);
  // Another graph has other groups. Nothing else that is remembered depends on the graph.
  void forget_groups() { layouts_.clear(); }
  std::size_t plans_made() const { return plans_.size(); }
  // As the options say, else by size; at most one per byte.
  std::int64_t chunks(const CollectiveCall& call, std::uint32_t shape);
  // Calls of one kind and root have the same peers in a group, whatever their size, if this is equal.
  std::int64_t size_class(const CollectiveCall& call) const;
  // Plans with all the peers that a call of its size class may have in a group.
  std::vector<const CollectivePlan*> possible_plans(const CollectiveCall& call, std::uint32_t shape);
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
  const std::set<std::string>& substitutions() const;
  const AlgorithmChoices& choices() const { return *choices_; }

  // What the call takes beyond its schedule, by the fastest of the protocols of each dimension it crosses, if
  // CollectiveOptions::measured, and by what its members attain over cables where the network knows none;
  // else 0.
  Time overhead(const CollectiveCall& call, std::uint32_t shape);
  // What of it is that the protocol moves bytes slower than the links do.
  Time held_by_protocol(const CollectiveCall& call, std::uint32_t shape);

  // What the call's steps and its kernel take whatever its bytes, about.
  Time latency(const CollectiveCall& call, const GroupLayout& layout);

  // Chunks, what delays the call beside bandwidth and the number of chunks that would help, into a record.
  // Returns how long the call takes alone on its dimensions, about; 0: not known.
  Time describe_chunks(const CollectiveCall& call, std::uint32_t shape, CollectiveRecord& record);

 private:
  // Whether `chunks` is what is estimated to be best: where nobody names it, nor flat rings share
  // the chunks out.
  bool chooses_chunks(const CollectiveCall& call, std::uint32_t shape) const;
  Bytes chunk_bytes(const CollectiveCall& call, std::int64_t chunk, std::int64_t count) const;
  static constexpr std::uint32_t kTurns = 2;
  std::uint32_t turns(const CollectiveCall& call) const;
  // By order, of the phases of a chunk.
  std::vector<std::vector<PhaseLoad>> phase_loads(const CollectiveCall& call, std::uint32_t shape);
  const std::vector<ChunkWay>& ways(const CollectiveCall& call, std::uint32_t shape);
  const CollectivePlan& plan(const CollectiveCall& call, std::uint32_t shape, Bytes bytes,
                             const ChunkWay& way);
  AlgorithmPicks picks(const CollectiveCall& call, std::uint32_t shape);
  AlgorithmPicks fastest(const CollectiveCall& call, std::uint32_t shape);
  std::vector<AlgorithmPicks> possible_picks(const CollectiveCall& call, const GroupShape& shape) const;
  const BeyondSchedule& beyond(const CollectiveCall& call, std::uint32_t shape);

  using ShapeKey = std::pair<std::uint32_t, CallKey>;  // of a call among a shape
  static ShapeKey key_of(const CollectiveCall& call, std::uint32_t shape) { return {shape, CallKey(call)}; }
  // And which algorithm each dimension takes, for a chunk of it.
  using PlanKey = std::tuple<ShapeKey, ChunkWay, AlgorithmPicks, Bytes>;  // of a chunk; last, of its call

  PlannedFor given_;
  std::unique_ptr<const AlgorithmChoices> choices_;
  std::unique_ptr<const CollectiveLibrary> library_;
  std::unique_ptr<PlanMaker> maker_;
  bool chooses_by_size_;                                                   // some algorithm is chosen by size
  std::map<std::pair<std::uint32_t, std::int32_t>, GroupLayout> layouts_;  // by (family, group)
  std::map<PlanKey, CollectivePlan> plans_;
  std::map<ShapeKey, std::int64_t> chunk_counts_;
  std::map<ShapeKey, std::vector<ChunkWay>> ways_;
  std::map<ShapeKey, AlgorithmPicks> picks_;
  std::map<ShapeKey, BeyondSchedule> beyond_;
};

}  // namespace armilla
