#include "sim/plan/library.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/chunk_count.h"
#include "sim/plan/choice.h"
#include "sim/plan/member_order.h"

namespace armilla {
namespace {

// Of the library's rings and of its trees, up and down, in an all-reduce. Each of the ranks stands for
// `inside` members of its own.
double ring_latency(const CollectiveProtocol& protocol, std::int64_t ranks, std::int64_t inside) {
  const double chain = static_cast<double>(inside - 1) * in_seconds(protocol.chain);
  return 2 * static_cast<double>(ranks - 1) * (in_seconds(protocol.step) + chain);
}
double tree_latency(const CollectiveProtocol& protocol, std::int64_t ranks, std::int64_t inside) {
  const double chain = static_cast<double>(inside - 1) * in_seconds(protocol.chain);
  return 2 * (std::log2(static_cast<double>(ranks)) * in_seconds(protocol.level) + chain);
}

// With so many members an all-to-all exchanges messages at once, in rounds of a step each: NCCL has 32
// channels for them on H100 nodes, two for each member (NCCL_DEBUG=INFO says so, ncclTopoComputeP2pChannels
// in src/graph/paths.cc sets them). Taken for all machines.
constexpr std::int64_t kPeersAtOnce = 16;
double exchange_latency(const CollectiveProtocol& protocol, std::int64_t peers) {
  return static_cast<double>((peers + kPeersAtOnce - 1) / kPeersAtOnce) * in_seconds(protocol.step);
}

double library_latency(const CollectiveProtocol& protocol, CollectiveKind kind, std::int64_t ranks,
                       std::int64_t inside, Crossing crossing) {
  if (kind == CollectiveKind::all_to_all) return exchange_latency(protocol, (ranks - 1) * inside);
  const double rings = ring_latency(protocol, ranks, inside);
  if (kind != CollectiveKind::all_reduce) return rings / 2;
  const double trees = tree_latency(protocol, ranks, inside);
  if (crossing == Crossing::hierarchy) return std::min(rings, trees);
  return crossing == Crossing::trees ? trees : rings;
}

// What NCCL expects of trees where it chooses (src/graph/tuning.cc): of the rings' bandwidth, and of that by
// the size of an all-reduce, in powers of two from 64 bytes on. It is more wary of trees of some sizes than
// of the next smaller ones, and a call may take rings again, for twice the time, because it is longer.
struct ExpectedTrees {
  std::string_view protocol;
  double of_rings = 1;
  double ring_latency = 1;  // times, of what rings are expected to take beside bytes
  std::array<double, 23> by_size{};
};
constexpr std::array kExpectedTrees = {
    ExpectedTrees{"LL", 2 / 3.8, 1, {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
                                     .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1}},
    ExpectedTrees{
        "LL128", 1, 1, {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1}},
    ExpectedTrees{"Simple", .92, 1.4, {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                       .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}},
};

double expected_of_trees(const ExpectedTrees& expected, Bytes bytes) {
  constexpr int kFirst = 6;  // 64 bytes
  const int size = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes.value))) - 1 - kFirst;
  if (size < 0 || size >= static_cast<int>(expected.by_size.size())) return expected.of_rings;
  return expected.of_rings * expected.by_size[static_cast<std::size_t>(size)];
}

// Of an all-reduce of so many bytes, which take so many seconds on the wire. Of protocols with names of
// NCCL's as that chooses; of others by time.
bool prefers_trees(std::span<const CollectiveProtocol> protocols, std::int64_t ranks, std::int64_t inside,
                   Bytes bytes, double as_rings, double as_trees) {
  double rings = std::numeric_limits<double>::infinity(), trees = rings;
  for (const CollectiveProtocol& protocol : protocols) {
    const auto* const known = std::ranges::find(kExpectedTrees, protocol.name, &ExpectedTrees::protocol);
    const bool is_known = known != kExpectedTrees.end();
    const double launch = in_seconds(protocol.launch), slower = is_known ? known->ring_latency : 1;
    const double of_trees = is_known ? expected_of_trees(*known, bytes) : 1;
    rings =
        std::min(rings, launch + slower * ring_latency(protocol, ranks, inside) + as_rings / protocol.share);
    trees = std::min(trees,
                     launch + tree_latency(protocol, ranks, inside) + as_trees / (protocol.share * of_trees));
  }
  return trees < rings;
}

// Of a buffer, that a member of a ring sends on its way to all.
double share_sent(std::int64_t members) {
  return static_cast<double>(members - 1) / static_cast<double>(members);
}

std::int64_t members_inside(const GroupShape& shape, std::uint32_t dimension) {
  std::int64_t inside = 1;
  for (std::size_t d = 0; d < std::min<std::size_t>(dimension, shape.sizes.size()); ++d)
    inside *= shape.sizes[d];
  return inside;
}

// Bytes that the switch sends to the member that gets most: as many as one sends down where all do the same.
double most_from_switch(const Schedule& schedule) {
  std::vector<double> received(static_cast<std::size_t>(schedule.is_symmetric() ? 1 : schedule.ranks));
  for (std::int32_t member = 0; member < static_cast<std::int32_t>(received.size()); ++member) {
    const RankSchedule& of = schedule.of(member);
    for (const Step& step : of.steps) {
      if (step.leg != Leg::from_switch) continue;
      for (const Transfer& transfer : of.sends_of(step)) {
        const std::int32_t to = schedule.is_symmetric() ? 0 : schedule.peer(member, transfer);
        received[static_cast<std::size_t>(to)] += static_cast<double>(transfer.bytes.value);
      }
    }
  }
  return *std::ranges::max_element(received);
}

}  // namespace

CollectiveCall CollectiveLibrary::as_made(const CollectiveCall& call) const {
  if (call.kind != CollectiveKind::barrier || !options_.measured || !has_no_wish(options_)) return call;
  CollectiveCall made = call;
  made.kind = CollectiveKind::all_reduce;
  made.bytes = Bytes(4);
  return made;
}

std::uint32_t CollectiveLibrary::flat_rings(CollectiveKind kind, const GroupShape& shape) const {
  const bool goes_round = kind != CollectiveKind::all_to_all && kind != CollectiveKind::barrier;
  if (!goes_round || !has_no_wish(options_)) return 1;
  return std::min(kMostRings, most_rings(shape));
}

// Between N nodes a hierarchy carries (N - 1) / N of a member's share; NCCL's rings, one per NIC, pass all n
// ranks and carry (n - 1) / n of it. Its trees carry all of it, between two nodes half; an all-reduce takes
// them where that is faster, or where the switches inside reduce (NVLSTree).
Crossing CollectiveLibrary::cross(CollectivePhase& phase, const CollectiveCall& call, Bytes bytes,
                                  const GroupShape& shape, AlgorithmPicks taken) const {
  Crossing crossing = Crossing::hierarchy;
  if (!options_.measured || !has_no_wish(options_) || bytes < Bytes(1)) return crossing;
  const Dimension& dimension = machine_.dimensions[phase.dimension];
  const std::int64_t inside = members_inside(shape, phase.dimension), nodes = shape.sizes[phase.dimension];
  const Algorithm& chosen = choices_.taken(phase.kind, phase.dimension, taken);
  if (inside == 1 || dimension.protocols.empty() || chosen.in_switch()) return crossing;
  // The library has rings alone for them, through all of which pass all bytes.
  if (phase.kind == CollectiveKind::broadcast || phase.kind == CollectiveKind::reduce) return Crossing::rings;
  // Which carries a tree's bytes as it is.
  if (chosen.name() == kForOtherNumbers)
    return phase.kind == CollectiveKind::all_reduce ? Crossing::trees : crossing;
  const double hierarchy = share_sent(nodes), ring = share_sent(shape.ranks);
  const double tree = nodes == 2 ? hierarchy : 1;
  if (phase.kind == CollectiveKind::all_reduce) {
    // Rings or trees are chosen for the whole call.
    const double chunks = static_cast<double>(call.bytes.value) / static_cast<double>(bytes.value);
    const double seconds = 2 * chunks * static_cast<double>(phase.bytes.value) / dimension.bandwidth.value;
    // All-reduces are what the members inside reduce and gather for.
    const bool reduced_inside =
        shape.sizes.front() > 1 && choices_.taken(CollectiveKind::reduce_scatter, 0, taken).in_switch();
    const bool climbs = reduced_inside || prefers_trees(dimension.protocols, nodes, inside, call.bytes,
                                                        seconds * ring, seconds * tree);
    crossing = climbs ? Crossing::trees : Crossing::rings;
  } else if (phase.kind == CollectiveKind::reduce_scatter || phase.kind == CollectiveKind::all_gather) {
    crossing = Crossing::rings;
  }
  if (crossing == Crossing::hierarchy) return crossing;
  const double crosses = crossing == Crossing::trees ? tree : ring;
  phase.bytes = Bytes(std::llround(static_cast<double>(phase.bytes.value) * crosses / hierarchy));
  return crossing;
}

// What the fastest protocol for a phase costs beyond its schedule. Flat rings cross from node to node on the
// dimension above, each with its share of the bytes; the steps inside nodes are messages of their own.
BeyondSchedule CollectiveLibrary::beyond(const PlannedPhase& phase, const GroupShape& shape) const {
  const bool flat = phase.dimension == kAllDimensions;
  const std::uint32_t crossed = flat ? 1 : phase.dimension;
  const std::int64_t inside = flat ? 1 : members_inside(shape, phase.dimension);
  const std::int64_t ranks = flat ? nodes_in(shape) : phase.schedule->ranks;
  const Dimension& dimension = machine_.dimensions[crossed];
  const bool by_switch = dimension.in_switch && phase.algorithm == dimension.in_switch->name;
  const CollectiveProtocol plain{"", Time(0), Time(0)};
  const std::span<const CollectiveProtocol> protocols = by_switch ? std::span(&*dimension.in_switch, 1)
                                                        : options_.measured && !dimension.protocols.empty()
                                                            ? std::span(dimension.protocols)
                                                            : std::span(&plain, 1);
  // Of the dimension's bandwidth: what the network moves the schedule's bytes with.
  const double moved = knows_dimensions_ ? phase.attained : 1;
  // The root of a reduction sends nothing.
  const RankSchedule& member =
      phase.schedule->of(phase.kind == CollectiveKind::reduce ? phase.schedule->ranks - 1 : 0);
  double sent = 0, from_switch = 0;
  for (const Step& step : member.steps) {
    double& bytes = step.leg == Leg::from_switch ? from_switch : sent;
    for (const Transfer& transfer : member.sends_of(step)) bytes += static_cast<double>(transfer.bytes.value);
  }
  if (from_switch > 0) from_switch = most_from_switch(*phase.schedule);
  double bytes = std::max(sent, from_switch);
  if (phase.algorithm == "bidirectional-ring") bytes /= 2;
  if (flat) bytes /= flat_rings(phase.kind, shape);
  const Crossing crossing = flat ? Crossing::rings : phase.crossing;
  std::optional<BeyondSchedule> least;
  for (const CollectiveProtocol& protocol : protocols) {
    const double steps = by_switch ? in_seconds(protocol.step)
                                   : library_latency(protocol, phase.kind, ranks, inside, crossing);
    const double slower = 1 / (protocol.share * phase.attained) - 1 / moved;
    const BeyondSchedule own{in_seconds(protocol.launch), steps, bytes * slower / dimension.bandwidth.value};
    if (!least || own.total() < least->total()) least = own;
  }
  return least.value_or(BeyondSchedule{});
}

// The library's steps from node to node count the network's latency, which messages of the schedule take as
// well. Those of an exchange are of its kernel.
bool CollectiveLibrary::steps_hold_latency(const PlannedPhase& phase) const {
  if (phase.dimension == kAllDimensions || phase.dimension == 0 || phase.kind == CollectiveKind::all_to_all)
    return false;
  const Dimension& dimension = machine_.dimensions[phase.dimension];
  const bool by_switch = dimension.in_switch && phase.algorithm == dimension.in_switch->name;
  return options_.measured && has_no_wish(options_) && !dimension.protocols.empty() && !by_switch;
}

// What of the call's time that latency is.
double CollectiveLibrary::latency_between_nodes(const CollectivePlan& plan) const {
  ChunkLoads loads = loads_of(plan, machine_);
  const std::span<const ChunkLoads> ways(&loads, 1);
  const std::int64_t count = options_.chunks.value_or(choose_chunks(ways, options_.active_chunks));
  const double all = estimate_chunks(ways, count, options_.active_chunks).total;
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    if (steps_hold_latency(plan.phases[p])) loads[p].latency = 0;
  }
  return all - estimate_chunks(ways, count, options_.active_chunks).total;
}

// One kernel does all phases. Chunks pass the root's block while others pass the rest; sums are given back
// while others go out.
BeyondSchedule CollectiveLibrary::beyond(const CollectivePlan& plan, const GroupShape& shape) const {
  BeyondSchedule all;
  double between_nodes = 0;
  double of_root_block = 0, of_others = 0, given_back = 0;
  for (const PlannedPhase& phase : plan.phases) {
    const bool flat = phase.dimension == kAllDimensions;
    if (flat && (nodes_in(shape) < 2 || phase.in_trees)) continue;
    const BeyondSchedule own = beyond(phase, shape);
    all.launch = std::max(all.launch, own.launch);
    all.steps += own.steps;
    if (steps_hold_latency(phase)) between_nodes += own.steps;
    double& bytes = phase.members == PhaseMembers::root_block     ? of_root_block
                    : phase.members == PhaseMembers::other_blocks ? of_others
                    : phase.queue != 0 && !flat                   ? given_back
                                                                  : all.bytes;
    bytes += own.bytes;
  }
  if (between_nodes > 0) all.steps -= std::clamp(latency_between_nodes(plan), 0.0, between_nodes);
  all.bytes = std::max(all.bytes + std::max(of_root_block, of_others), given_back);
  return all;
}

}  // namespace armilla
