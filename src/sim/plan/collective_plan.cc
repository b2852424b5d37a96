#include "sim/collective_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "collective/cables.h"
#include "network/topology.h"
#include "sim/plan/choice.h"
#include "sim/plan/member_order.h"

namespace armilla {
namespace {

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
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(std::min(call.bytes.value, options_.chunks.value_or(kTurns)), 1, kTurns));
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
  const auto [found, fresh] = member_orders_.try_emplace(shape);
  if (fresh) found->second = orders_of_rings(shapes_[shape], machine_.dimensions.front().cables);
  const MemberOrder& order = found->second[ring];
  return std::ranges::is_sorted(order.member_at) ? nullptr : &order;
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
      if (phase.dimension == kAllDimensions && !phase.in_trees) return {{}};
    }
    loads[order] = loads_of(plan);
  }
  return loads;
}

// Trees over all dimensions are about as fast as the last.
std::uint32_t CollectivePlanner::crossed_by(const PlannedPhase& phase) const {
  return std::min(phase.dimension, static_cast<std::uint32_t>(machine_.dimensions.size()) - 1);
}

ChunkLoads CollectivePlanner::loads_of(const CollectivePlan& plan) const {
  ChunkLoads loads;
  for (const PlannedPhase& phase : plan.phases) {
    Dimension attained;
    const std::uint32_t crossed = crossed_by(phase);
    const Dimension* dimension = &machine_.dimensions[crossed];
    if (phase.attained != 1) {
      attained = *dimension;
      attained.bandwidth.value *= phase.attained;
      dimension = &attained;
    }
    PhaseLoad& load = loads.emplace_back(phase_load(*phase.schedule, crossed, *dimension));
    // Links and queues of others than the root's block.
    if (phase.members == PhaseMembers::other_blocks)
      load.dimension += static_cast<std::uint32_t>(machine_.dimensions.size());
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
    found->second.push_back({order, turns[order]++ % kTurns});
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
    ScheduleRequest request{phase.kind, static_cast<std::int32_t>(size),     phase.bytes,
                            root,       static_cast<std::int32_t>(way.turn), false};
    // Smaller blocks than a quarter of what a link moves in a message's latency, of two links, only wait.
    if (dimension != kAllDimensions) {
      const Dimension& own = machine_.dimensions[dimension];
      request.least_block = Bytes(std::llround(in_seconds(own.latency) / 2 * own.bandwidth.value));
    }
    const bool climbs = chosen.in_switch() && grows_trees_;
    request.tree = climbs;
    if (climbs) request.chunk = 0;
    const Schedule& made = schedule(chosen, request);
    const auto wished = replaced_.find({phase.kind, dimension});
    if (wished != replaced_.end()) {
      const bool performs =
          Algorithm(wished->second, options_.algorithms_where).performs(phase.kind);  // it was not for that
      substitutions_.insert(
          fmt::format("algorithm '{}' {} {}: '{}' is used instead", wished->second,
                      performs ? "runs in switches, and there are none that reduce for" : "cannot perform",
                      name_of(phase.kind), chosen.name()));
    }
    PlannedPhase& planned =
        plan.phases.emplace_back(PlannedPhase{dimension, phase.kind, phase.members, &made, chosen.name()});
    planned.in_trees = climbs;
    return planned;
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
  const std::vector<CollectivePhase> phases =
      decompose(call.kind, bytes, shape.sizes, options_.decomposition, orders(call.kind, shape)[way.order]);
  if (!has_no_wish(options_)) return phases;
  // Where switches add up pieces and return them, some channels scatter while others gather: a phase each.
  std::vector<CollectivePhase> apart;
  for (const CollectivePhase& phase : phases) {
    const auto goes_by_pieces = [&](CollectiveKind kind) {
      return algorithm(kind, phase.dimension, taken).name() == kInPieces;
    };
    if (phase.kind != CollectiveKind::all_reduce || !goes_by_pieces(phase.kind) ||
        !goes_by_pieces(CollectiveKind::reduce_scatter) || !goes_by_pieces(CollectiveKind::all_gather)) {
      apart.push_back(phase);
      continue;
    }
    apart.push_back({phase.dimension, CollectiveKind::reduce_scatter, phase.bytes});
    apart.push_back({phase.dimension, CollectiveKind::all_gather, phase.bytes});
  }
  return apart;
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

std::string CollectivePlanner::describe(const CollectiveCall& call, std::uint32_t shape) {
  const CollectivePlan& first = plan(call, shape, 0);
  std::string text;
  for (const PlannedPhase& phase : first.phases) {
    if (!text.empty()) text += ", ";
    if (first.phases.size() > 1) text += fmt::format("{} ", name_of(phase.kind));
    text += phase.algorithm;
    if (phase.in_trees) text += " in trees of switches";
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

}  // namespace armilla
