#include "sim/collective_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "collective/cables.h"
#include "collective/decompose.h"
#include "network/topology.h"
#include "sim/plan/link_limit.h"
#include "sim/plan/member_order.h"

namespace armilla {
namespace {

bool is_power_of_two(std::int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// What a dimension does best when the user has no wish.
std::string_view natural_algorithm(CollectiveKind kind, const Dimension& dimension) {
  if (links_every_pair(dimension)) return "direct";
  if (passes_others(dimension)) return "bidirectional-ring";
  if (kind == CollectiveKind::all_to_all) return "direct";
  if (!dimension.cables.empty()) return "ring";
  return is_power_of_two(dimension.size) ? "halving-doubling" : "ring";
}

// What a Ring among so many members of a Switch may be slower than: in a logarithmic number of steps a power
// of two moves as few bytes; other numbers move no fewer in trees, which are for small messages.
constexpr std::string_view kForPowersOfTwo = "halving-doubling", kForOtherNumbers = "double-binary-tree";

bool suits(const Algorithm& algorithm, std::int64_t members) {
  if (algorithm.name() == kForPowersOfTwo) return is_power_of_two(members);
  return algorithm.name() != kForOtherNumbers || !is_power_of_two(members);
}

// Whether every one of so many members loads its links as every other does, and no others. Exchanges that
// pass others do not: on a Ring half of the members go up, half down; and where the members are but some of a
// Ring, their messages pass links of the rest.
bool looks_alike_from_everywhere(const Schedule& schedule, std::size_t members, const Dimension& dimension) {
  if (!schedule.is_symmetric() || !passes_others(dimension)) return schedule.is_symmetric();
  return schedule.addressing == Addressing::shift && static_cast<std::int64_t>(members) == dimension.size;
}

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

double library_latency(const CollectiveProtocol& protocol, CollectiveKind kind, std::int64_t ranks,
                       std::int64_t inside, Crossing crossing) {
  if (kind == CollectiveKind::all_to_all) return in_seconds(protocol.step);
  const double rings = ring_latency(protocol, ranks, inside);
  if (kind != CollectiveKind::all_reduce) return rings / 2;
  const double trees = tree_latency(protocol, ranks, inside);
  if (crossing == Crossing::hierarchy) return std::min(rings, trees);
  return crossing == Crossing::trees ? trees : rings;
}

// Of an all-reduce whose bytes take so many seconds on the wire.
bool prefers_trees(std::span<const CollectiveProtocol> protocols, std::int64_t ranks, std::int64_t inside,
                   double as_rings, double as_trees) {
  double rings = std::numeric_limits<double>::infinity(), trees = rings;
  for (const CollectiveProtocol& protocol : protocols) {
    const double launch = in_seconds(protocol.launch);
    rings = std::min(rings, launch + ring_latency(protocol, ranks, inside) + as_rings / protocol.share);
    trees = std::min(trees, launch + tree_latency(protocol, ranks, inside) + as_trees / protocol.share);
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

// Whether calls go as the library would have them.
bool has_no_wish(const CollectiveOptions& options) {
  return options.algorithms.empty() && options.algorithms_by_kind.empty() &&
         options.decomposition == Decomposition::multi_axis;
}

// Tokens cross a dimension once for all ranks behind it: of H_0 copies for ranks only H_d go to blocks of
// ranks with equal coordinates from d on. Outwards first on the way to the experts, last on the way back.
void route_tokens(std::vector<CollectivePhase>& phases, const ExpertRouting& routing,
                  const GroupShape& shape) {
  const double copies = expected_blocks(routing, shape.ranks);
  for (CollectivePhase& phase : phases) {
    std::int64_t blocks = 1;
    for (std::size_t d = phase.dimension; d < shape.sizes.size(); ++d) blocks *= shape.sizes[d];
    const double share = expected_blocks(routing, blocks) / copies;
    phase.bytes = Bytes(std::llround(static_cast<double>(phase.bytes.value) * share));
  }
  if (routing.to_experts) std::reverse(phases.begin(), phases.end());
}

// Throws unless the algorithm performs the kind; asked here so that a wrong choice fails before anything is
// simulated.
void require(const Algorithm& algorithm, CollectiveKind kind, const std::string& where) {
  if (algorithm.performs(kind)) return;
  throw Error(where, fmt::format("algorithm '{}' cannot perform {}", algorithm.name(), name_of(kind)),
              fmt::format("algorithms that can: {}", fmt::join(algorithms_that_perform(kind), ", ")));
}

// Likewise unless there is a switch for an algorithm that needs one.
void require_switch(const Algorithm& algorithm, bool has_switch, bool legs, const std::string& where) {
  if (!algorithm.in_switch() || (has_switch && legs)) return;
  throw Error(
      where,
      legs ? fmt::format("algorithm '{}' runs in the switch of a Switch, and there is none", algorithm.name())
           : fmt::format("algorithm '{}' runs in switches, and the network has none that reduce",
                         algorithm.name()),
      legs ? "name another algorithm for dimensions of other kinds and for flat collectives"
           : "choose an analytical network, or another algorithm");
}

}  // namespace

bool has_cables(const Machine& machine) {
  return std::any_of(machine.dimensions.begin(), machine.dimensions.end(),
                     [](const Dimension& dimension) { return !dimension.cables.empty(); });
}

GroupShape shape_of(const GroupLayout& layout, const Machine& machine) {
  GroupShape shape{layout.sizes(), static_cast<std::int64_t>(layout.ranks.size())};
  if (!layout.is_grid()) place_in_nodes(layout.ranks, machine, shape.in_nodes);
  if (!has_cables(machine) || !layout.is_grid()) return shape;
  shape.places = layout.coordinates;
  for (std::size_t d = 0; d < shape.places.size(); ++d) {
    if (machine.dimensions[d].cables.empty()) shape.places[d].clear();
  }
  return shape;
}

bool takes_part(const CollectivePlan& plan, const PlannedPhase& phase, const GroupLayout& layout,
                std::int32_t rank) {
  if (phase.members == PhaseMembers::all) return true;
  const auto agrees = [&](std::size_t first, std::size_t end) {
    for (std::size_t d = first; d < end; ++d) {
      if (layout.position(rank, static_cast<std::uint32_t>(d)) != plan.root[d]) return false;
    }
    return true;
  };
  if (phase.members == PhaseMembers::root_lines) return agrees(0, phase.dimension);
  return agrees(phase.dimension + 1, plan.root.size()) == (phase.members == PhaseMembers::root_block);
}

std::int32_t position_in(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank) {
  if (phase.dimension != kAllDimensions) return layout.position(rank, phase.dimension);
  const std::int32_t position = layout.flat_position(rank);
  return phase.order == nullptr ? position : phase.order->position_of[static_cast<std::size_t>(position)];
}

CollectivePlanner::CollectivePlanner(const Machine& machine, const CollectiveOptions& options,
                                     bool knows_dimensions)
    : machine_(machine), options_(options), knows_dimensions_(knows_dimensions) {
  constexpr std::int64_t kMostChunks = 1 << 16;
  if (options.chunks && (*options.chunks < 1 || *options.chunks > kMostChunks)) {
    throw Error("collectives.chunks", fmt::format("{} chunks", *options.chunks),
                fmt::format("between 1 and {}", kMostChunks));
  }
  if (options.active_chunks < 1) {
    throw Error("collectives.active_chunks", fmt::format("{} active chunks", options.active_chunks),
                "at least 1");
  }
  const std::size_t dimensions = machine.dimensions.size();
  for (const CollectiveKind kind : kCollectiveKinds) {
    const auto own = options.algorithms_by_kind.find(kind);
    const bool specific = own != options.algorithms_by_kind.end();
    const std::vector<std::string>& wish = specific ? own->second : options.algorithms;
    const std::string where = where_of(options, kind);
    const bool flat_list = options.decomposition == Decomposition::flat && wish.size() > 1;
    if (flat_list || (wish.size() > 1 && wish.size() != dimensions && dimensions > 0)) {
      throw Error(where,
                  fmt::format("names {} algorithms for {} dimension{}{}", wish.size(), dimensions,
                              dimensions == 1 ? "" : "s", flat_list ? " taken as one" : ""),
                  flat_list ? "name one" : "name one for all dimensions, or one for each");
    }
    std::vector<Choice>& chosen = algorithms_[kind];
    // A general wish cannot suit every kind and dimension; where it does not apply, it is replaced,
    // and said to be.
    const auto choose = [&](const std::string& text, std::uint32_t number, std::string_view natural,
                            bool has_switch) {
      Algorithm wished(text, where);
      if (!specific &&
          (!wished.performs(kind) || (wished.in_switch() && !(has_switch && knows_dimensions)))) {
        replaced_[{kind, number}] = wished.name();
        wished = Algorithm(natural, where);
      }
      require(wished, kind, where);
      require_switch(wished, has_switch, knows_dimensions, where);
      chosen.push_back({std::move(wished)});
    };
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      const Dimension& dimension = machine.dimensions[d];
      const std::string_view natural = natural_algorithm(kind, dimension);
      const auto add = [&](Algorithm other) {
        chosen.back().others.push_back(std::move(other));
        chooses_by_size_ = true;
      };
      const bool has_switch = dimension.kind == DimensionKind::switched;
      choose(wish.empty() ? std::string(natural) : wish[wish.size() == 1 ? 0 : d], d, natural, has_switch);
      if (!wish.empty()) continue;
      if (natural == "ring" && dimension.cables.empty()) {
        for (const std::string_view name : {kForPowersOfTwo, kForOtherNumbers}) {
          Algorithm other{std::string(name), where};
          // Within a node, whose protocols are known, the library's trees are chains.
          const bool chains = name == kForOtherNumbers && d == 0 && !dimension.protocols.empty();
          if (other.performs(kind) && !chains) add(std::move(other));
        }
      }
      // Trees of a power of two move the bytes of a broadcast or a reduction as often as they have
      // levels, rings once.
      if (natural == kForPowersOfTwo && (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce))
        add(Algorithm("ring", where));
      if (!dimension.in_switch || !knows_dimensions) continue;
      Algorithm in_switch(dimension.in_switch->name, machine.name);
      require_switch(in_switch, has_switch && in_switch.in_switch(), knows_dimensions, machine.name);
      if (!in_switch.performs(kind)) continue;
      add(std::move(in_switch));
    }
    choose(wish.empty() ? "ring" : wish.front(), kAllDimensions, "ring", false);
  }
  chooses_by_size_ = chooses_by_size_ || (dimensions > 1 && has_no_wish(options));
}

const GroupLayout& CollectivePlanner::layout(const Graph& graph, std::uint32_t family, std::int32_t group) {
  const auto [found, fresh] = layouts_.try_emplace({family, group});
  if (fresh) {
    found->second = lay_out(graph.families[family].groups[static_cast<std::size_t>(group)], machine_);
    found->second.shape = shape(shape_of(found->second, machine_));
  }
  return found->second;
}

std::uint32_t CollectivePlanner::shape(const GroupShape& shape) {
  const auto [found, fresh] = shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
  if (fresh) shapes_.push_back(shape);
  return found->second;
}

std::int64_t CollectivePlanner::chunks(const CollectiveCall& call, std::uint32_t shape) {
  if (options_.chunks) return std::clamp<std::int64_t>(call.bytes.value, 1, *options_.chunks);
  const auto [found, fresh] = chunk_counts_.try_emplace(key_of(call, shape));
  if (fresh) {
    const std::int64_t rings = flat_rings(call.kind, shapes_[shape]);
    const std::int64_t all_rings = (kFewestChunks + rings - 1) / rings * rings;
    found->second = std::clamp<std::int64_t>(
        call.bytes.value, 1,
        rings > 1 ? all_rings : choose_chunks(phase_loads(call, shape), options_.active_chunks));
  }
  return found->second;
}

std::uint32_t CollectivePlanner::turns(const CollectiveCall& call) const {
  return call.bytes > Bytes(1) && options_.chunks.value_or(2) > 1 ? 2 : 1;
}

std::int64_t CollectivePlanner::size_class(const CollectiveCall& call) const {
  return chooses_by_size_ ? call.bytes.value : turns(call);
}

std::vector<const CollectivePlan*> CollectivePlanner::possible_plans(const CollectiveCall& call,
                                                                     std::uint32_t shape) {
  std::vector<const CollectivePlan*> possible;
  const Bytes bytes = chunk_bytes(call, 0, chunks(call, shape));
  for (std::uint32_t order = 0; order < orders(call.kind, shapes_[shape]).size(); ++order) {
    for (std::uint32_t turn = 0; turn < turns(call); ++turn)
      possible.push_back(&plan(call, shape, bytes, {order, turn}));
  }
  return possible;
}

std::uint32_t CollectivePlanner::flat_rings(CollectiveKind kind, const GroupShape& shape) const {
  const bool goes_round = kind != CollectiveKind::all_to_all && kind != CollectiveKind::barrier;
  if (!goes_round || !has_no_wish(options_)) return 1;
  return std::min(kMostRings, most_rings(shape));
}

const MemberOrder* CollectivePlanner::order_of(std::uint32_t shape, std::uint32_t ring) {
  const auto [found, fresh] = member_orders_.try_emplace({shape, ring});
  if (fresh) found->second = order_of_ring(shapes_[shape], ring);
  return std::ranges::is_sorted(found->second.member_at) ? nullptr : &found->second;
}

// Those of the Rings are rotated. Other kinds of collectives load all links alike in any order, or have
// one that works.
std::vector<std::vector<std::uint32_t>> CollectivePlanner::orders(CollectiveKind kind,
                                                                  const GroupShape& shape) const {
  if (shape.sizes.empty()) return std::vector<std::vector<std::uint32_t>>(flat_rings(kind, shape));
  std::vector<std::uint32_t> order(shape.sizes.size()), rings;
  for (std::uint32_t d = 0; d < order.size(); ++d) {
    order[d] = d;
    if (shape.sizes[d] > 1 && passes_others(machine_.dimensions[d])) rings.push_back(d);
  }
  std::vector<std::vector<std::uint32_t>> found = {order};
  const bool rotates = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
                       kind == CollectiveKind::all_gather;
  if (!rotates || options_.decomposition != Decomposition::multi_axis) return found;
  for (std::size_t shift = 1; shift < rings.size(); ++shift) {
    for (std::size_t i = 0; i < rings.size(); ++i) order[rings[i]] = rings[(i + shift) % rings.size()];
    found.push_back(order);
  }
  return found;
}

// None of flat algorithms, whose messages cross several dimensions.
std::vector<ChunkLoads> CollectivePlanner::phase_loads(const CollectiveCall& call, std::uint32_t shape) {
  std::vector<ChunkLoads> loads(orders(call.kind, shapes_[shape]).size());
  for (std::uint32_t order = 0; order < loads.size(); ++order) {
    const CollectivePlan plan = make_plan(call, shape, call.bytes, {order, 0}, picks(call, shape));
    for (const PlannedPhase& phase : plan.phases) {
      if (phase.dimension == kAllDimensions) return {{}};
    }
    loads[order] = loads_of(plan);
  }
  return loads;
}

ChunkLoads CollectivePlanner::loads_of(const CollectivePlan& plan) const {
  ChunkLoads loads;
  for (const PlannedPhase& phase : plan.phases) {
    Dimension attained;
    const Dimension* dimension = &machine_.dimensions[phase.dimension];
    if (phase.attained != 1) {
      attained = *dimension;
      attained.bandwidth.value *= phase.attained;
      dimension = &attained;
    }
    PhaseLoad& load = loads.emplace_back(phase_load(*phase.schedule, phase.dimension, *dimension));
    // Links of others than the root's block, which is as busy.
    if (phase.members == PhaseMembers::other_blocks) load.busy = load.free_out = load.free_in = 0;
  }
  return loads;
}

double CollectivePlanner::attained(std::uint32_t shape, std::uint32_t dimension, CollectiveKind kind) {
  const Dimension& whole = machine_.dimensions[dimension];
  if (whole.cables.empty()) return 1;
  const auto [found, fresh] = attained_.try_emplace({shape, dimension, kind});
  if (fresh) {
    const Bandwidth rate =
        attained_on_cables(whole, shapes_[shape].places[dimension], kind, machine_.device.host_bandwidth);
    found->second = rate.value / whole.bandwidth.value;
  }
  return found->second;
}

const std::vector<CollectivePlanner::Way>& CollectivePlanner::ways(const CollectiveCall& call,
                                                                   std::uint32_t shape) {
  const auto [found, fresh] = ways_.try_emplace(key_of(call, shape));
  if (!fresh) return found->second;
  const std::uint32_t rings = flat_rings(call.kind, shapes_[shape]);
  for (std::uint32_t chunk = 0; rings > 1 && chunk < chunks(call, shape); ++chunk)
    found->second.push_back({chunk % rings, 0});
  if (rings > 1) return found->second;
  std::vector<std::uint32_t> turns;
  for (const std::uint32_t order : share_out(phase_loads(call, shape), chunks(call, shape))) {
    turns.resize(std::max<std::size_t>(turns.size(), order + 1));
    found->second.push_back({order, turns[order]++ % 2});
  }
  return found->second;
}

Time CollectivePlanner::describe_chunks(const CollectiveCall& call, std::uint32_t shape,
                                        CollectiveRecord& record) {
  constexpr double kMuchFaster = 0.9;
  record.chunks = chunks(call, shape);
  const std::vector<ChunkLoads> loads = phase_loads(call, shape);
  record.limit = CollectiveLimit::latency;
  if (loads.front().empty()) return Time(0);
  const ChunkEstimate own = estimate_chunks(loads, record.chunks, options_.active_chunks);
  record.limit = own.delay;
  const std::int64_t better = choose_chunks(loads, options_.active_chunks);
  if (estimate_chunks(loads, better, options_.active_chunks).total < kMuchFaster * own.total)
    record.better_chunks = better;
  return later(from_seconds(own.total), overhead(call, shape));
}

Bytes CollectivePlanner::chunk_bytes(const CollectiveCall& call, std::int64_t chunk,
                                     std::int64_t count) const {
  return Bytes(call.bytes.value / count + (chunk < call.bytes.value % count ? 1 : 0));
}

const Algorithm& CollectivePlanner::algorithm(CollectiveKind kind, std::uint32_t dimension,
                                              Picks picks) const {
  const std::vector<Choice>& chosen = algorithms_.at(kind);
  if (dimension == kAllDimensions) return chosen.back().usual;
  const std::size_t pick = picks >> (kPickBits * dimension) & kMostOthers;
  // In turn: a dimension may have phases of other kinds, which have a choice less.
  return pick == 0 || pick > chosen[dimension].others.size() ? chosen[dimension].usual
                                                             : chosen[dimension].others[pick - 1];
}

const Schedule& CollectivePlanner::schedule(const Algorithm& algorithm, const ScheduleRequest& request) {
  const ScheduleKey key{&algorithm,          request.kind, request.ranks,
                        request.bytes.value, request.root, request.chunk};
  const auto found = schedules_.find(key);
  if (found != schedules_.end()) return found->second;
  return schedules_.emplace(key, algorithm.schedule(request)).first->second;
}

CollectivePlan CollectivePlanner::make_plan(const CollectiveCall& call, std::uint32_t shape_number,
                                            Bytes bytes, const Way& way, Picks taken) {
  if (const CollectiveCall made = as_made(call); made.kind != call.kind)
    return make_plan(made, shape_number, made.bytes, way, taken);
  const GroupShape& shape = shapes_[shape_number];
  if (call.root < 0 || call.root >= shape.ranks) {
    throw Error("collective", fmt::format("{} over {} ranks has no member {} to be its root",
                                          name_of(call.kind), shape.ranks, call.root));
  }
  CollectivePlan plan;
  // Members of a grid come in rank order: the root's number in mixed radix.
  std::int64_t rest = call.root;
  for (const std::int64_t size : shape.sizes) {
    plan.root.push_back(static_cast<std::int32_t>(rest % size));
    rest /= size;
  }
  const auto add = [&](std::uint32_t dimension, const CollectivePhase& phase, std::int64_t size,
                       std::int32_t root) -> PlannedPhase& {
    // What serves other blocks has choices of its own kind, and takes the usual one.
    const bool serves = phase.members == PhaseMembers::other_blocks;
    const Algorithm& chosen = algorithm(phase.kind, dimension, serves ? 0 : taken);
    const ScheduleRequest request{phase.kind, static_cast<std::int32_t>(size),     phase.bytes,
                                  root,       static_cast<std::int32_t>(way.turn), false};
    const Schedule& made = schedule(chosen, request);
    const auto wished = replaced_.find({phase.kind, dimension});
    if (wished != replaced_.end()) {
      substitutions_.insert(fmt::format("algorithm '{}' cannot perform {}: '{}' is used instead",
                                        wished->second, name_of(phase.kind), chosen.name()));
    }
    return plan.phases.emplace_back(PlannedPhase{dimension, phase.kind, phase.members, &made, chosen.name()});
  };
  if (shape.ranks < 2) return plan;
  if (options_.decomposition == Decomposition::flat || shape.sizes.empty()) {
    const MemberOrder* const order =
        flat_rings(call.kind, shape) > 1 ? order_of(shape_number, way.order) : nullptr;
    const std::int32_t root =
        order == nullptr ? call.root : order->position_of[static_cast<std::size_t>(call.root)];
    PlannedPhase& flat = add(kAllDimensions, {0, call.kind, bytes}, shape.ranks, root);
    flat.order = order;
    flat.queue = way.order;
    return plan;
  }
  std::vector<CollectivePhase> phases = phases_of(call, bytes, shape, way, taken);
  if (call.routing.experts > 0) route_tokens(phases, call.routing, shape);
  for (CollectivePhase& phase : phases) {
    const Crossing crossing = cross_as_the_library(phase, call, bytes, shape, taken);
    PlannedPhase& planned =
        add(phase.dimension, phase, shape.sizes[phase.dimension], plan.root[phase.dimension]);
    planned.crossing = crossing;
    planned.attained = attained(shape_number, phase.dimension, phase.kind);
    // Rings take several ways at once; what other algorithms send takes the cables between its ends.
    const bool on_rings = planned.algorithm == "ring" && phase.kind != CollectiveKind::all_to_all;
    if (on_rings && !machine_.dimensions[phase.dimension].cables.empty())
      planned.share = static_cast<float>(planned.attained);
    // NCCL's NVLSTree gives back the sums on channels of their own.
    const bool gives_back =
        call.kind == CollectiveKind::all_reduce && phase.kind == CollectiveKind::all_gather;
    if (gives_back && algorithm(phase.kind, phase.dimension, taken).in_switch())
      planned.queue = static_cast<std::uint32_t>(machine_.dimensions.size());
  }
  return plan;
}

std::vector<CollectivePhase> CollectivePlanner::phases_of(const CollectiveCall& call, Bytes bytes,
                                                          const GroupShape& shape, const Way& way,
                                                          Picks taken) const {
  if ((taken & kOverAllLines) != 0) return decompose_over_all_lines(call.kind, bytes, shape.sizes);
  return decompose(call.kind, bytes, shape.sizes, options_.decomposition,
                   orders(call.kind, shape)[way.order]);
}

bool CollectivePlanner::may_go_over_all_lines(CollectiveKind kind, const GroupShape& shape) const {
  if (kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce) return false;
  if (!has_no_wish(options_)) return false;
  std::int64_t larger = 0;
  for (std::size_t d = 0; d < shape.sizes.size(); ++d) {
    if (shape.sizes[d] < 2) continue;
    if (passes_others(machine_.dimensions[d])) return false;
    ++larger;
  }
  return larger == 2;
}

CollectiveCall CollectivePlanner::as_made(const CollectiveCall& call) const {
  if (call.kind != CollectiveKind::barrier || !options_.measured || !has_no_wish(options_)) return call;
  CollectiveCall made = call;
  made.kind = CollectiveKind::all_reduce;
  made.bytes = Bytes(4);
  return made;
}

const CollectivePlan& CollectivePlanner::plan(const CollectiveCall& call, std::uint32_t shape,
                                              std::int64_t chunk) {
  const Way way = ways(call, shape)[static_cast<std::size_t>(chunk)];
  return plan(call, shape, chunk_bytes(call, chunk, chunks(call, shape)), way);
}

const CollectivePlan& CollectivePlanner::plan(const CollectiveCall& call, std::uint32_t shape, Bytes bytes,
                                              const Way& way) {
  const Picks taken = picks(call, shape);
  const PlanKey key{{shape, call.kind, bytes.value, call.root, call.routing}, way, taken, call.bytes};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(key, make_plan(call, shape, bytes, way, taken)).first->second;
}

std::vector<std::pair<const CollectivePlan*, std::int64_t>> CollectivePlanner::plans(
    const CollectiveCall& call, std::uint32_t shape) {
  std::vector<std::pair<const CollectivePlan*, std::int64_t>> found;
  for (std::int64_t chunk = 0; chunk < chunks(call, shape); ++chunk) {
    const CollectivePlan* const own = &plan(call, shape, chunk);
    const auto known = std::ranges::find(found, own, [](const auto& entry) { return entry.first; });
    known == found.end() ? static_cast<void>(found.emplace_back(own, 1)) : static_cast<void>(++known->second);
  }
  return found;
}

// Of the whole call, so that all chunks of it go alike.
CollectivePlanner::Picks CollectivePlanner::picks(const CollectiveCall& call, std::uint32_t shape_number) {
  if (const CollectiveCall made = as_made(call); made.kind != call.kind) return picks(made, shape_number);
  const GroupShape& shape = shapes_[shape_number];
  if (!chooses_by_size_ || options_.decomposition == Decomposition::flat || shape.sizes.empty()) return 0;
  const auto [found, fresh] = picks_.try_emplace(key_of(call, shape_number));
  if (fresh) found->second = fastest(call, shape_number);
  return found->second;
}

std::vector<CollectivePlanner::Picks> CollectivePlanner::possible_picks(const CollectiveCall& call,
                                                                        const GroupShape& shape) const {
  // Of machines of very many dimensions, not all.
  constexpr std::size_t kMostPossible = 256;
  std::vector<Picks> possible = {0};
  std::uint32_t seen = 0;
  for (const CollectivePhase& phase : phases_of(call, call.bytes, shape, {}, 0)) {
    if (possible.size() > kMostPossible) break;
    // Both ways of a dimension, in and out, go alike.
    if ((seen >> phase.dimension & 1) != 0) continue;
    seen |= std::uint32_t{1} << phase.dimension;
    const Choice& choice = algorithms_.at(phase.kind)[phase.dimension];
    const std::size_t usual = possible.size();
    for (Picks pick = 1; pick <= choice.others.size(); ++pick) {
      if (!suits(choice.others[pick - 1], shape.sizes[phase.dimension])) continue;
      for (std::size_t i = 0; i < usual; ++i)
        possible.push_back(possible[i] | pick << kPickBits * phase.dimension);
    }
  }
  const std::size_t in_root_lines = may_go_over_all_lines(call.kind, shape) ? possible.size() : 0;
  for (std::size_t i = 0; i < in_root_lines; ++i) possible.push_back(possible[i] | kOverAllLines);
  return possible;
}

// As NCCL chooses: by the time that each is expected to take, here of all bytes in as many chunks as are
// best. In the switch only what the busiest link carries less of: of a reduce-scatter or an all-gather alone
// there is nothing to gain (NCCL's model, too, has NVLS below the ring there), of both together there is; but
// a barrier carries nothing.
CollectivePlanner::Picks CollectivePlanner::fastest(const CollectiveCall& call, std::uint32_t shape_number) {
  const GroupShape shape = shapes_[shape_number];
  const std::vector<Picks> possible = possible_picks(call, shape);
  if (possible.size() == 1) return 0;
  double least = std::numeric_limits<double>::infinity();
  Picks found = 0;
  const auto busy_on = [](const ChunkLoads& loads, std::uint32_t dimension) {
    double busy = 0, free_out = 0, free_in = 0;
    for (const PhaseLoad& load : loads) {
      if (load.dimension != dimension) continue;
      busy += load.busy;
      free_out += load.free_out;
      free_in += load.free_in;
    }
    return busy - std::min(free_out, free_in);
  };
  ChunkLoads usual;
  for (const Picks taken : possible) {
    const CollectivePlan plan = make_plan(call, shape_number, call.bytes, {}, taken);
    const ChunkLoads loads = loads_of(plan);
    if (taken == 0) usual = loads;
    const bool gains = std::ranges::all_of(plan.phases, [&](const PlannedPhase& phase) {
      const std::optional<CollectiveProtocol>& in_switch = machine_.dimensions[phase.dimension].in_switch;
      if (taken == 0 || !in_switch || phase.algorithm != in_switch->name) return true;
      return call.kind == CollectiveKind::barrier ||
             busy_on(loads, phase.dimension) < busy_on(usual, phase.dimension);
    });
    if (!gains) continue;
    const std::span<const ChunkLoads> ways(&loads, 1);
    const std::int64_t count = options_.chunks.value_or(choose_chunks(ways, options_.active_chunks));
    const double seconds = estimate_chunks(ways, count, options_.active_chunks).total +
                           (options_.measured ? beyond(plan, shape).total() : 0);
    if (seconds >= least) continue;
    least = seconds;
    found = taken;
  }
  return found;
}

// Between N nodes a hierarchy carries (N - 1) / N of a member's share; NCCL's rings, one per NIC, pass all n
// ranks and carry (n - 1) / n of it. Its trees carry all of it, between two nodes half; an all-reduce takes
// them where that is faster, or where the switches inside reduce (NVLSTree).
Crossing CollectivePlanner::cross_as_the_library(CollectivePhase& phase, const CollectiveCall& call,
                                                 Bytes bytes, const GroupShape& shape, Picks taken) const {
  Crossing crossing = Crossing::hierarchy;
  if (!options_.measured || !has_no_wish(options_) || bytes < Bytes(1)) return crossing;
  const Dimension& dimension = machine_.dimensions[phase.dimension];
  const std::int64_t inside = members_inside(shape, phase.dimension), nodes = shape.sizes[phase.dimension];
  const Algorithm& chosen = algorithm(phase.kind, phase.dimension, taken);
  if (inside == 1 || dimension.protocols.empty() || chosen.in_switch() || chosen.name() == kForOtherNumbers)
    return crossing;
  const double hierarchy = share_sent(nodes), ring = share_sent(shape.ranks);
  const double tree = nodes == 2 ? hierarchy : 1;
  if (phase.kind == CollectiveKind::all_reduce) {
    // Rings or trees are chosen for the whole call.
    const double chunks = static_cast<double>(call.bytes.value) / static_cast<double>(bytes.value);
    const double seconds = 2 * chunks * static_cast<double>(phase.bytes.value) / dimension.bandwidth.value;
    // All-reduces are what the members inside reduce and gather for.
    const bool reduced_inside =
        shape.sizes.front() > 1 && algorithm(CollectiveKind::reduce_scatter, 0, taken).in_switch();
    const bool climbs =
        reduced_inside || prefers_trees(dimension.protocols, nodes, inside, seconds * ring, seconds * tree);
    crossing = climbs ? Crossing::trees : Crossing::rings;
  } else if (phase.kind == CollectiveKind::reduce_scatter || phase.kind == CollectiveKind::all_gather) {
    crossing = Crossing::rings;
  }
  if (crossing == Crossing::hierarchy) return crossing;
  const double crosses = crossing == Crossing::trees ? tree : ring;
  phase.bytes = Bytes(std::llround(static_cast<double>(phase.bytes.value) * crosses / hierarchy));
  return crossing;
}

std::string CollectivePlanner::describe(const CollectiveCall& call, std::uint32_t shape) {
  const CollectivePlan& first = plan(call, shape, 0);
  std::string text;
  for (const PlannedPhase& phase : first.phases) {
    if (!text.empty()) text += ", ";
    if (first.phases.size() > 1) text += fmt::format("{} ", name_of(phase.kind));
    text += phase.algorithm;
    if (phase.dimension != kAllDimensions) {
      text += fmt::format(" on {}", machine_.dimensions[phase.dimension].name);
      if (phase.members == PhaseMembers::root_block) text += " (the root's)";
      if (phase.members == PhaseMembers::other_blocks) text += " (the others')";
      if (phase.crossing == Crossing::rings) text += " (as rings)";
      if (phase.crossing == Crossing::trees) text += " (as trees)";
    } else if (machine_.dimensions.size() > 1) {
      text += " over all dimensions";
    }
  }
  std::set<std::uint32_t> taken;
  for (const Way& way : ways(call, shape)) taken.insert(way.order);
  const bool is_flat = !first.phases.empty() && first.phases.front().dimension == kAllDimensions;
  if (taken.size() > 1 && is_flat) text += fmt::format(", {} of them", taken.size());
  if (taken.size() > 1 && !is_flat) text += fmt::format("; chunks in {} orders", taken.size());
  return text;
}

Time CollectivePlanner::overhead(const CollectiveCall& call, std::uint32_t shape) {
  return from_seconds(beyond(call, shape).total());
}

Time CollectivePlanner::held_by_protocol(const CollectiveCall& call, std::uint32_t shape) {
  return from_seconds(beyond(call, shape).bytes);
}

const CollectivePlanner::Beyond& CollectivePlanner::beyond(const CollectiveCall& call, std::uint32_t shape) {
  static constexpr Beyond kNothing{};
  if (call.custom >= 0 || as_made(call).kind == CollectiveKind::barrier) return kNothing;
  if (!options_.measured && (knows_dimensions_ || !has_cables(machine_))) return kNothing;
  const auto [found, fresh] = beyond_.try_emplace(key_of(call, shape));
  if (fresh)
    found->second = beyond(make_plan(call, shape, call.bytes, {}, picks(call, shape)), shapes_[shape]);
  return found->second;
}

// What the fastest protocol for a phase costs beyond its schedule.
CollectivePlanner::Beyond CollectivePlanner::beyond(const PlannedPhase& phase,
                                                    const GroupShape& shape) const {
  const std::int64_t inside = members_inside(shape, phase.dimension);
  const Dimension& dimension = machine_.dimensions[phase.dimension];
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
  double bytes = 0;
  for (const Step& step : member.steps) {
    for (const Transfer& transfer : member.sends_of(step))
      bytes += step.leg == Leg::from_switch ? 0 : static_cast<double>(transfer.bytes.value);
  }
  if (phase.algorithm == "bidirectional-ring") bytes /= 2;
  std::optional<Beyond> least;
  for (const CollectiveProtocol& protocol : protocols) {
    const double steps =
        by_switch ? in_seconds(protocol.step)
                  : library_latency(protocol, phase.kind, phase.schedule->ranks, inside, phase.crossing);
    const double slower = 1 / (protocol.share * phase.attained) - 1 / moved;
    const Beyond own{in_seconds(protocol.launch), steps, bytes * slower / dimension.bandwidth.value};
    if (!least || own.total() < least->total()) least = own;
  }
  return least.value_or(Beyond{});
}

// One kernel does all phases.
CollectivePlanner::Beyond CollectivePlanner::beyond(const CollectivePlan& plan,
                                                    const GroupShape& shape) const {
  Beyond all;
  for (const PlannedPhase& phase : plan.phases) {
    if (phase.dimension == kAllDimensions) continue;
    const Beyond own = beyond(phase, shape);
    all.launch = std::max(all.launch, own.launch);
    all.steps += own.steps;
    all.bytes += own.bytes;
  }
  return all;
}

MemberTraffic CollectivePlanner::traffic_per_member(const CollectiveCall& call, std::uint32_t shape) {
  MemberTraffic total;
  for (const auto& [plan, times] : plans(call, shape)) {
    for (const PlannedPhase& phase : plan->phases) {
      const Schedule& schedule = *phase.schedule;
      const std::int32_t members = schedule.is_symmetric() ? 1 : schedule.ranks;
      MemberTraffic sent;
      for (std::int32_t m = 0; m < members; ++m) {
        sent.messages += static_cast<double>(schedule.of(m).sends.size());
        for (const Transfer& transfer : schedule.of(m).sends)
          sent.bytes += static_cast<double>(transfer.bytes.value);
      }
      total.messages += sent.messages / members * static_cast<double>(times);
      total.bytes += sent.bytes / members * static_cast<double>(times);
    }
  }
  return total;
}

Time CollectivePlanner::link_limit(const CollectiveCall& call, const GroupLayout& layout) const {
  std::uint32_t reducing = 0;
  for (std::uint32_t d = 0; d < machine_.dimensions.size(); ++d) {
    if (machine_.dimensions[d].in_switch || algorithms_.at(call.kind)[d].usual.in_switch())
      reducing |= std::uint32_t{1} << d;
  }
  return least_time_on_links(call, layout, machine_, reducing, has_no_wish(options_));
}

Time CollectivePlanner::busiest_link(const CollectiveCall& call, const GroupLayout& layout) {
  const CallKey key{&layout, call.kind, call.bytes.value, call.root, call.routing};
  const auto [found, fresh] = busiest_links_.try_emplace(key);
  if (fresh) found->second = measure_busiest_link(call, layout);
  return found->second;
}

Time CollectivePlanner::measure_busiest_link(const CollectiveCall& call, const GroupLayout& layout) {
  // Every transfer is routed; beyond this the limit is not worth the wait and stays unknown.
  constexpr double kMostTransfers = 2e7;
  double transfers = 0;
  const auto all = plans(call, layout.shape);
  for (const auto& [plan, times] : all) {
    for (const PlannedPhase& phase : plan->phases)
      transfers += static_cast<double>(phase.schedule->ranks) *
                   static_cast<double>(phase.schedule->of(0).sends.size());
    if (transfers > kMostTransfers) return Time(0);
  }
  const Topology topology(machine_);
  struct Load {
    Bytes bytes;
    Bandwidth bandwidth;
  };
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, Load>
      carried;  // by (dimension, owner, number)
  const auto bandwidth_of = [&](const Message& message, std::uint32_t d) {
    const Dimension& dimension = machine_.dimensions[d];
    if (dimension.cables.empty()) return dimension.bandwidth;
    return message.share > 0
               ? Bandwidth(dimension.bandwidth.value * static_cast<double>(message.share))
               : pair_bandwidth(dimension, topology.coordinate(message.source, d),
                                topology.coordinate(message.destination, d), machine_.device.host_bandwidth);
  };
  for (const auto& [plan, times] : all) {
    for (const PlannedPhase& phase : plan->phases) {
      // Whose line of ranks stands for all.
      const auto one = std::ranges::find_if(
          layout.ranks, [&](std::int32_t rank) { return takes_part(*plan, phase, layout, rank); });
      if (one == layout.ranks.end()) continue;
      const std::int32_t first = *one;
      const bool flat = phase.dimension == kAllDimensions;
      const bool symmetric =
          !flat && (phase.share > 0 || machine_.dimensions[phase.dimension].cables.empty()) &&
          looks_alike_from_everywhere(*phase.schedule, layout.coordinates[phase.dimension].size(),
                                      machine_.dimensions[phase.dimension]);
      const std::int32_t members = symmetric ? 1 : phase.schedule->ranks;
      const std::int32_t here = position_in(phase, layout, first);
      for (std::int32_t position = 0; position < members; ++position) {
        const auto at_position = [&](std::int32_t p) { return rank_at(phase, layout, first, here, p); };
        const RankSchedule& role = phase.schedule->of(position);
        for (const Step& step : role.steps) {
          for (const Transfer& transfer : role.sends_of(step)) {
            Message message{at_position(position), at_position(phase.schedule->peer(position, transfer)),
                            saturating_multiply(transfer.bytes, times), phase.dimension};
            message.leg = step.leg;
            message.share = phase.share;
            Position at = topology.start(message);
            while (at.hops_left > 0) {
              const LinkId link = topology.advance(message, at);
              // Where all members do the same, the links a message crosses carry as much of the others as
              // this one's own do of it.
              Load& load = carried[{link.dimension, symmetric ? first : link.owner, link.number}];
              load.bytes = saturating_add(load.bytes, message.bytes);
              load.bandwidth = std::max(load.bandwidth, bandwidth_of(message, link.dimension));
            }
          }
        }
      }
    }
  }
  Time limit;
  for (const auto& [link, load] : carried) limit = std::max(limit, time_to_move(load.bytes, load.bandwidth));
  return limit;
}

}  // namespace armilla
