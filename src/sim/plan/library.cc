#include "sim/plan/library.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/plan/chunk_count.h"
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

// What NCCL expects of its rings over NVLink where it chooses (src/graph/tuning.cc), in seconds; of what the
// rings attain, LL moves at most 87.7 of 240 GB/s on an A100, 141 of 371 on an H100, 282 of 722 on a B200.
// Calls that it misjudges take longer than by another protocol.
struct ExpectedRings {
  std::string_view protocol;
  double launch = 0, step = 0, share = 1;
};
constexpr std::array kExpectedRings = {ExpectedRings{"LL", 6.6e-6, 0.6e-6, .38},
                                       ExpectedRings{"LL128", 14e-6, 1.9e-6, .92},
                                       ExpectedRings{"Simple", 8.4e-6, 3.4e-6, 1}};
constexpr std::string_view kLowLatency = "LL", kSimple = "Simple";

// Sends and receives are of a kernel of their own; a machine may have this protocol for them, which
// nothing else takes. Messages of an all-to-all within a node go by LL up to some size
// (NCCL_P2P_LL_THRESHOLD, src/enqueue.cc), each on one channel, of which LL moves so much (fitted to A100,
// H100, B200 and GB200 alike).
constexpr std::string_view kSendReceive = "SendRecv";
constexpr double kLongestLowLatency = 16384;
constexpr double kLowLatencyChannel = 5e9;  // bytes per second

using Protocols = std::span<const CollectiveProtocol>;

const CollectiveProtocol* find_protocol(Protocols protocols, std::string_view name) {
  const auto found = std::ranges::find(protocols, name, &CollectiveProtocol::name);
  return found == protocols.end() ? nullptr : &*found;
}

// The one that an exchange takes; none: whatever is fastest.
const CollectiveProtocol* exchange_protocol(Protocols protocols, bool low_latency) {
  const CollectiveProtocol* taken = low_latency ? find_protocol(protocols, kLowLatency) : nullptr;
  if (taken == nullptr) taken = find_protocol(protocols, kSendReceive);
  return taken != nullptr ? taken : find_protocol(protocols, kSimple);
}

// Likewise of rings of all of a call's members, within a node of NVSwitches; `attained` bytes per second.
const CollectiveProtocol* ring_protocol(Protocols protocols, CollectiveKind kind, std::int64_t ranks,
                                        Bytes bytes, double attained) {
  const bool all_reduces = kind == CollectiveKind::all_reduce, rooted = has_root(kind);
  const double steps = rooted ? 1 : static_cast<double>(ranks - 1) * (all_reduces ? 2 : 1);
  const double sent = rooted ? 1 : steps / static_cast<double>(ranks);
  const CollectiveProtocol* taken = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveProtocol& protocol : protocols) {
    if (protocol.name == kSendReceive) continue;
    const auto* const known = std::ranges::find(kExpectedRings, protocol.name, &ExpectedRings::protocol);
    if (known == kExpectedRings.end()) return nullptr;
    const double expected = known->launch + steps * known->step +
                            sent * static_cast<double>(bytes.value) / (attained * known->share);
    if (expected >= least) continue;
    least = expected;
    taken = &protocol;
  }
  return taken;
}

double library_latency(const CollectiveProtocol& protocol, CollectiveKind kind, std::int64_t ranks,
                       std::int64_t inside, Crossing crossing) {
  if (kind == CollectiveKind::all_to_all) return exchange_latency(protocol, (ranks - 1) * inside);
  // What goes down one chain of all members goes in pieces, each of which is there before it goes on: NCCL
  // counts a step of the network's for every member, those inside nodes as well (src/graph/tuning.cc,
  // ncclFuncReduce and ncclFuncBroadcast of rings).
  if (has_root(kind)) return static_cast<double>(ranks * inside - 1) * in_seconds(protocol.step);
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
  double of_limit = 1;      // of what a channel's trees are expected to carry at most
  double ring_latency = 1;  // times, of what rings are expected to take beside bytes
  std::array<double, 23> by_size{};
};
constexpr std::array kExpectedTrees = {
    ExpectedTrees{"LL", 2 / 3.8, 2 / 3.8, 1, {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
                                              .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1}},
    ExpectedTrees{"LL128", 1, 1, 1, {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                     .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1}},
    ExpectedTrees{"Simple", .92, 1, 1.4, {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                          .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}},
};

double expected_by_size(const ExpectedTrees& expected, Bytes bytes) {
  constexpr int kFirst = 6;  // 64 bytes
  const int size = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes.value))) - 1 - kFirst;
  if (size < 0 || size >= static_cast<int>(expected.by_size.size())) return 1;
  return expected.by_size[static_cast<std::size_t>(size)];
}

// How long so many bytes of a device take up and down its trees, one after the other, as fast as NCCL expects
// of them at most (perChMaxTreeBws in src/graph/tuning.cc); 0: no less than on the links.
double least_in_trees(const Dimension& dimension, std::int64_t ranks, double bytes) {
  const Bandwidth most = ranks == 2 ? dimension.trees_of_two : dimension.trees_of_more;
  return most.value > 0 ? 2 * bytes / most.value : 0;
}

// Of an all-reduce of so many bytes, which take so many seconds on the wire, as trees never less than
// `least`. Of protocols with names of NCCL's as that chooses; of others by time.
bool prefers_trees(std::span<const CollectiveProtocol> protocols, std::int64_t ranks, std::int64_t inside,
                   Bytes bytes, double as_rings, double as_trees, double least) {
  double rings = std::numeric_limits<double>::infinity(), trees = rings;
  for (const CollectiveProtocol& protocol : protocols) {
    if (protocol.name == kSendReceive) continue;
    const auto* const known = std::ranges::find(kExpectedTrees, protocol.name, &ExpectedTrees::protocol);
    const bool is_known = known != kExpectedTrees.end();
    const double launch = in_seconds(protocol.launch), slower = is_known ? known->ring_latency : 1;
    const double share = protocol.share * (is_known ? expected_by_size(*known, bytes) : 1);
    const double wire =
        is_known ? std::max(as_trees / known->of_rings, least / known->of_limit) : std::max(as_trees, least);
    rings =
        std::min(rings, launch + slower * ring_latency(protocol, ranks, inside) + as_rings / protocol.share);
    trees = std::min(trees, launch + tree_latency(protocol, ranks, inside) + wire / share);
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

// Of a call whose members all stand in one line of a dimension. A ring hands on n - 1 of n blocks, an
// all-reduce twice, and the last that comes only goes to memory; members of an all-to-all copy their own.
// Between nodes, or in switches, thread blocks do so while they wait for others.
double moved_within(const PlannedPhase& phase, const Dimension& dimension, Bytes bytes,
                    const GroupShape& shape) {
  const std::int64_t ranks = phase.schedule->ranks;
  if (!(dimension.own_block.value > 0) || ranks != shape.ranks) return 0;
  switch (phase.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return static_cast<double>(bytes.value) / static_cast<double>(ranks) / dimension.own_block.value;
    default:
      return 0;
  }
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

CollectiveCall CollectiveLibrary::as_made(const CollectiveCall& call, std::int64_t members) const {
  if (call.kind == CollectiveKind::broadcast && call.takes_turns && members > 1) {
    CollectiveCall made = call;
    made.kind = CollectiveKind::all_gather;
    made.bytes = Bytes(std::llround(static_cast<double>(call.bytes.value) / share_sent(members)));
    return made;
  }
  if (call.kind != CollectiveKind::barrier || !given_.options.measured || !has_no_wish(given_.options))
    return call;
  CollectiveCall made = call;
  made.kind = CollectiveKind::all_reduce;
  made.bytes = Bytes(4);
  return made;
}

std::uint32_t CollectiveLibrary::flat_rings(CollectiveKind kind, const GroupShape& shape) const {
  const bool goes_round = kind != CollectiveKind::all_to_all && kind != CollectiveKind::barrier;
  if (!goes_round || !has_no_wish(given_.options)) return 1;
  return std::min(kMostRings, most_rings(shape));
}

// Between N nodes a hierarchy carries (N - 1) / N of a member's share; NCCL's rings, one per NIC, pass all n
// ranks and carry (n - 1) / n of it. Its trees carry all of it, between two nodes half; an all-reduce takes
// them where that is faster, or where the switches inside reduce (NVLSTree).
Crossing CollectiveLibrary::cross(CollectivePhase& phase, const CollectiveCall& call, Bytes bytes,
                                  const GroupShape& shape, AlgorithmPicks taken) const {
  Crossing crossing = Crossing::hierarchy;
  if (!given_.options.measured || !has_no_wish(given_.options) || bytes < Bytes(1)) return crossing;
  const Dimension& dimension = given_.machine.dimensions[phase.dimension];
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
    const double of_device = chunks * static_cast<double>(phase.bytes.value);
    const double seconds = 2 * of_device / dimension.bandwidth.value;
    // All-reduces are what the members inside reduce and gather for.
    const bool reduced_inside =
        shape.sizes.front() > 1 && choices_.taken(CollectiveKind::reduce_scatter, 0, taken).in_switch();
    const bool climbs =
        reduced_inside || prefers_trees(dimension.protocols, nodes, inside, call.bytes, seconds * ring,
                                        seconds * tree, least_in_trees(dimension, nodes, of_device));
    crossing = climbs ? Crossing::trees : Crossing::rings;
  } else if (phase.kind == CollectiveKind::reduce_scatter || phase.kind == CollectiveKind::all_gather) {
    crossing = Crossing::rings;
  }
  if (crossing == Crossing::hierarchy) return crossing;
  const double crosses = crossing == Crossing::trees ? tree : ring;
  phase.bytes = Bytes(std::llround(static_cast<double>(phase.bytes.value) * crosses / hierarchy));
  return crossing;
}

// What each protocol that a phase may take costs beyond its schedule. Flat rings cross from node to node on
// the dimension above, each with its share of the bytes; the steps inside nodes are messages of their own.
std::vector<BeyondSchedule> CollectiveLibrary::ways(const PlannedPhase& phase, Bytes all,
                                                    const GroupShape& shape) const {
  const bool flat = phase.dimension == kAllDimensions;
  const std::uint32_t crossed = flat ? 1 : phase.dimension;
  const std::int64_t inside = flat ? 1 : members_inside(shape, phase.dimension);
  const std::int64_t ranks = flat ? nodes_in(shape) : phase.schedule->ranks;
  const Dimension& dimension = given_.machine.dimensions[crossed];
  const bool by_switch = dimension.in_switch && phase.algorithm == dimension.in_switch->name;
  const CollectiveProtocol plain{"", Time(0), Time(0)};
  const std::span<const CollectiveProtocol> protocols =
      by_switch                                                 ? std::span(&*dimension.in_switch, 1)
      : given_.options.measured && !dimension.protocols.empty() ? std::span(dimension.protocols)
                                                                : std::span(&plain, 1);
  // Of the dimension's bandwidth: what the network moves the schedule's bytes with.
  const double moved = given_.network.over_dimensions ? phase.attained : 1;
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
  const double within = given_.options.measured && !flat && !by_switch && !phase.in_trees
                            ? moved_within(phase, dimension, all, shape)
                            : 0;
  const bool exchanges = phase.kind == CollectiveKind::all_to_all;
  const double message = static_cast<double>(all.value) / static_cast<double>(shape.ranks);
  const bool low_latency = exchanges && crossed == 0 && message <= kLongestLowLatency;
  const bool by_nvlink = crossed == 0 && ranks == shape.ranks && dimension.cables.empty();
  const CollectiveProtocol* const only =
      by_switch   ? nullptr
      : exchanges ? exchange_protocol(protocols, low_latency)
      : by_nvlink ? ring_protocol(protocols, phase.kind, ranks, all, dimension.bandwidth.value)
                  : nullptr;
  const Crossing crossing = flat ? Crossing::rings : phase.crossing;
  std::vector<BeyondSchedule> found;
  for (const CollectiveProtocol& protocol : protocols) {
    if (only != nullptr ? &protocol != only : !exchanges && protocol.name == kSendReceive) continue;
    const double steps = by_switch ? in_seconds(protocol.step)
                                   : library_latency(protocol, phase.kind, ranks, inside, crossing);
    const double slower = 1 / (protocol.share * phase.attained) - 1 / moved;
    double moving = bytes * slower / dimension.bandwidth.value;
    if (low_latency && protocol.name == kLowLatency) moving = message / kLowLatencyChannel;
    found.push_back({in_seconds(protocol.launch), steps, moving, within});
  }
  return found;
}

// The library's steps from node to node count the network's latency, which messages of the schedule take as
// well. Those of an exchange are of its kernel.
bool CollectiveLibrary::steps_hold_latency(const PlannedPhase& phase) const {
  if (phase.dimension == kAllDimensions || phase.dimension == 0 || phase.kind == CollectiveKind::all_to_all)
    return false;
  const Dimension& dimension = given_.machine.dimensions[phase.dimension];
  const bool by_switch = dimension.in_switch && phase.algorithm == dimension.in_switch->name;
  return given_.options.measured && has_no_wish(given_.options) && !dimension.protocols.empty() && !by_switch;
}

// What of the call's time that latency is.
double CollectiveLibrary::latency_between_nodes(const CollectivePlan& plan) const {
  ChunkLoads loads = loads_of(plan, given_.machine);
  const std::span<const ChunkLoads> ways(&loads, 1);
  const std::int64_t count =
      given_.options.chunks.value_or(choose_chunks(ways, given_.options.active_chunks));
  const double all = estimate_chunks(ways, count, given_.options.active_chunks).total;
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    if (steps_hold_latency(plan.phases[p])) loads[p].latency = loads[p].latency_behind = 0;
  }
  return all - estimate_chunks(ways, count, given_.options.active_chunks).total;
}

// One kernel does all phases, by the protocols that together take least: one that starts late costs nothing
// where another phase does so anyway. Chunks pass the root's block while others pass the rest; sums are given
// back while others go out.
BeyondSchedule CollectiveLibrary::beyond(const CollectivePlan& plan, Bytes bytes,
                                         const GroupShape& shape) const {
  std::vector<std::pair<const PlannedPhase*, std::vector<BeyondSchedule>>> phases;
  std::vector<double> launches;
  for (const PlannedPhase& phase : plan.phases) {
    if (phase.dimension == kAllDimensions && (nodes_in(shape) < 2 || phase.in_trees)) continue;
    std::vector<BeyondSchedule> own = ways(phase, bytes, shape);
    if (own.empty()) continue;
    for (const BeyondSchedule& way : own) launches.push_back(way.launch);
    phases.emplace_back(&phase, std::move(own));
  }
  const bool holds_latency =
      std::ranges::any_of(phases, [&](const auto& phase) { return steps_hold_latency(*phase.first); });
  const double held = holds_latency ? latency_between_nodes(plan) : 0;
  const auto with_launch = [&](double launch) {
    std::optional<BeyondSchedule> all = BeyondSchedule{launch};
    double between_nodes = 0;
    double of_root_block = 0, of_others = 0, given_back = 0;
    for (const auto& [phase, own] : phases) {
      const BeyondSchedule* least = nullptr;
      for (const BeyondSchedule& way : own) {
        const auto behind = [](const BeyondSchedule& of) { return of.total() - of.launch; };
        if (way.launch <= launch && (least == nullptr || behind(way) < behind(*least))) least = &way;
      }
      if (least == nullptr) return std::optional<BeyondSchedule>();
      all->steps += least->steps;
      all->within += least->within;
      if (steps_hold_latency(*phase)) between_nodes += least->steps;
      double& moving = phase->members == PhaseMembers::root_block                ? of_root_block
                       : phase->members == PhaseMembers::other_blocks            ? of_others
                       : phase->queue != 0 && phase->dimension != kAllDimensions ? given_back
                                                                                 : all->bytes;
      moving += least->bytes;
    }
    if (between_nodes > 0) all->steps -= std::clamp(held, 0.0, between_nodes);
    all->bytes = std::max(all->bytes + std::max(of_root_block, of_others), given_back);
    return all;
  };
  std::optional<BeyondSchedule> least;
  for (const double launch : launches) {
    const std::optional<BeyondSchedule> all = with_launch(launch);
    if (all && (!least || all->total() < least->total())) least = all;
  }
  return least.value_or(BeyondSchedule{});
}

}  // namespace armilla
