#include "sim/plan/plan_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units_text.h"
#include "collective/cables.h"
#include "network/topology.h"
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

std::uint32_t PlanMaker::number(const GroupShape& shape) {
  const auto [found, fresh] = shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
  if (fresh) shapes_.push_back(shape);
  return found->second;
}

const MemberOrder* PlanMaker::order_of(std::uint32_t shape, std::uint32_t ring) {
  const auto [found, fresh] = member_orders_.try_emplace(shape);
  if (fresh) found->second = orders_of_rings(shapes_[shape], given_.machine.dimensions.front().cables);
  const MemberOrder& order = found->second[ring];
  // None for rank order, so that the groups of most jobs need no look-up for every message.
  return std::ranges::is_sorted(order.member_at) ? nullptr : &order;
}

// Those of the Rings are rotated. Other kinds of collectives load all links alike in any order, or have
// one that works.
std::vector<std::vector<std::uint32_t>> PlanMaker::orders(CollectiveKind kind,
                                                          const GroupShape& shape) const {
  if (shape.sizes.empty()) return std::vector<std::vector<std::uint32_t>>(library_.flat_rings(kind, shape));
  std::vector<std::uint32_t> order(shape.sizes.size()), rings;
  for (std::uint32_t d = 0; d < order.size(); ++d) {
    order[d] = d;
    if (shape.sizes[d] > 1 && passes_others(given_.machine.dimensions[d])) rings.push_back(d);
  }
  std::vector<std::vector<std::uint32_t>> found = {order};
  const bool rotates = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
                       kind == CollectiveKind::all_gather;
  if (!rotates || given_.options.decomposition != Decomposition::multi_axis) return found;
  for (std::size_t shift = 1; shift < rings.size(); ++shift) {
    for (std::size_t i = 0; i < rings.size(); ++i) order[rings[i]] = rings[(i + shift) % rings.size()];
    found.push_back(order);
  }
  return found;
}

double PlanMaker::attained(std::uint32_t shape, std::uint32_t dimension, CollectiveKind kind) {
  const Dimension& whole = given_.machine.dimensions[dimension];
  if (whole.cables.empty()) return 1;
  const auto [found, fresh] = attained_.try_emplace({shape, dimension, kind});
  if (fresh) {
    const Bandwidth rate = attained_on_cables(whole, shapes_[shape].places[dimension], kind,
                                              given_.machine.device.host_bandwidth);
    found->second = rate.value / whole.bandwidth.value;
  }
  return found->second;
}

const Schedule& PlanMaker::schedule(const Algorithm& algorithm, const ScheduleRequest& request) {
  const ScheduleKey key{&algorithm,          request.kind, request.ranks,
                        request.bytes.value, request.root, request.chunk};
  const auto found = schedules_.find(key);
  if (found != schedules_.end()) return found->second;
  return schedules_.emplace(key, algorithm.schedule(request)).first->second;
}

CollectivePlan PlanMaker::make(const CollectiveCall& call, std::uint32_t shape_number, Bytes bytes,
                               const ChunkWay& way, AlgorithmPicks taken) {
  const GroupShape& shape = shapes_[shape_number];
  CollectiveCall of_chunk = call;
  if (call.kind != CollectiveKind::barrier) of_chunk.bytes = bytes;
  if (const CollectiveCall made = library_.as_made(of_chunk, shape.ranks); made.kind != call.kind) {
    CollectivePlan plan = make(made, shape_number, made.bytes, way, taken);
    // Each link's bytes are those of the whole, latencies and protocols the library's of the call itself.
    if (call.takes_turns) {
      for (PlannedPhase& phase : plan.phases) phase.kind = call.kind;
    }
    return plan;
  }
  if (call.root < 0 || call.root >= shape.ranks) {
    throw Error("collective", fmt::format("{} over {} has no member {} to be its root", name_of(call.kind),
                                          typed_count(shape.ranks, "rank"), call.root));
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
    const Algorithm& chosen = choices_.taken(phase.kind, dimension, serves ? 0 : taken);
    ScheduleRequest request{phase.kind, static_cast<std::int32_t>(size),     phase.bytes,
                            root,       static_cast<std::int32_t>(way.turn), false};
    // Smaller blocks than a quarter of what a link moves in a message's latency, of two links, only wait.
    if (dimension != kAllDimensions) {
      const Dimension& own = given_.machine.dimensions[dimension];
      request.least_block = Bytes(std::llround(in_seconds(own.latency) / 2 * own.bandwidth.value));
    }
    const bool climbs = chosen.in_switch() && given_.network.grows_trees;
    request.tree = climbs;
    if (climbs) request.chunk = 0;
    const Schedule& made = schedule(chosen, request);
    if (const auto wished = choices_.replaced(phase.kind, dimension)) {
      const bool performs =
          Algorithm(*wished, given_.options.algorithms_where).performs(phase.kind);  // it was not for that
      substitutions_.insert(
          fmt::format("algorithm '{}' {} {}: '{}' is used instead", *wished,
                      performs ? "runs in switches, none of which serves" : "cannot perform",
                      name_of(phase.kind), chosen.name()));
    }
    PlannedPhase& planned =
        plan.phases.emplace_back(PlannedPhase{dimension, phase.kind, phase.members, &made, chosen.name()});
    planned.in_trees = climbs;
    return planned;
  };
  if (shape.ranks < 2) return plan;
  if (given_.options.decomposition == Decomposition::flat || shape.sizes.empty()) {
    const MemberOrder* const order =
        library_.flat_rings(call.kind, shape) > 1 ? order_of(shape_number, way.order) : nullptr;
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
    const Crossing crossing = library_.cross(phase, call, bytes, shape, taken);
    PlannedPhase& planned =
        add(phase.dimension, phase, shape.sizes[phase.dimension], plan.root[phase.dimension]);
    planned.crossing = crossing;
    planned.attained = attained(shape_number, phase.dimension, phase.kind);
    // Rings take several ways at once; what other algorithms send takes the cables between its ends.
    const bool on_rings = planned.algorithm == "ring" && phase.kind != CollectiveKind::all_to_all;
    if (on_rings && !given_.machine.dimensions[phase.dimension].cables.empty())
      planned.share = static_cast<float>(planned.attained);
    // NCCL's NVLSTree gives back the sums on channels of their own.
    const bool gives_back =
        call.kind == CollectiveKind::all_reduce && phase.kind == CollectiveKind::all_gather;
    if (gives_back && choices_.taken(phase.kind, phase.dimension, taken).in_switch())
      planned.queue = static_cast<std::uint32_t>(given_.machine.dimensions.size());
  }
  return plan;
}

std::vector<CollectivePhase> PlanMaker::phases_of(const CollectiveCall& call, Bytes bytes,
                                                  const GroupShape& shape, const ChunkWay& way,
                                                  AlgorithmPicks taken) const {
  if ((taken & AlgorithmChoices::kOverAllLines) != 0)
    return decompose_over_all_lines(call.kind, bytes, shape.sizes);
  const std::vector<CollectivePhase> phases = decompose(
      call.kind, bytes, shape.sizes, given_.options.decomposition, orders(call.kind, shape)[way.order]);
  if (!has_no_wish(given_.options)) return phases;
  // Where switches add up pieces and return them, some channels scatter while others gather: a phase each.
  std::vector<CollectivePhase> apart;
  for (const CollectivePhase& phase : phases) {
    const auto goes_by_pieces = [&](CollectiveKind kind) {
      return choices_.taken(kind, phase.dimension, taken).name() == kNvls;
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

bool PlanMaker::may_go_over_all_lines(CollectiveKind kind, const GroupShape& shape) const {
  if (!has_root(kind)) return false;
  if (!has_no_wish(given_.options)) return false;
  std::int64_t larger = 0;
  for (std::size_t d = 0; d < shape.sizes.size(); ++d) {
    if (shape.sizes[d] < 2) continue;
    if (passes_others(given_.machine.dimensions[d])) return false;
    ++larger;
  }
  return larger == 2;
}

}  // namespace armilla
