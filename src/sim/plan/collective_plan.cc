#include "sim/collective_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "network/topology.h"
#include "sim/plan/algorithm_choices.h"
#include "sim/plan/chunk_count.h"
#include "sim/plan/library.h"
#include "sim/plan/member_order.h"
#include "sim/plan/plan_maker.h"

namespace armilla {

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

namespace {

// Itself. Throws Error for chunks that cannot be.
const CollectiveOptions& checked(const CollectiveOptions& options) {
  constexpr std::int64_t kMostChunks = 1 << 16;
  if (options.chunks && (*options.chunks < 1 || *options.chunks > kMostChunks)) {
    throw Error("collectives.chunks", fmt::format("{} chunks", *options.chunks),
                fmt::format("between 1 and {}", kMostChunks));
  }
  if (options.active_chunks < 1) {
    throw Error("collectives.active_chunks", fmt::format("{} active chunks", options.active_chunks),
                "at least 1");
  }
  return options;
}

}  // namespace

CollectivePlanner::CollectivePlanner(const Machine& machine, const CollectiveOptions& options,
                                     const NetworkPromises& network)
    : given_{machine, checked(options), network},
      choices_(std::make_unique<AlgorithmChoices>(given_)),
      library_(std::make_unique<CollectiveLibrary>(given_, *choices_)),
      maker_(std::make_unique<PlanMaker>(given_, *choices_, *library_)),
      // The library's rings and trees, too, are chosen by size.
      chooses_by_size_(choices_->are_several() || (machine.dimensions.size() > 1 && has_no_wish(options))) {}

CollectivePlanner::~CollectivePlanner() = default;

const std::set<std::string>& CollectivePlanner::substitutions() const {
  return maker_->substitutions();
}

const GroupLayout& CollectivePlanner::layout(const Graph& graph, std::uint32_t family, std::int32_t group) {
  const auto [found, fresh] = layouts_.try_emplace({family, group});
  if (fresh) {
    found->second = lay_out(graph.families[family].groups[static_cast<std::size_t>(group)], given_.machine);
    found->second.shape = shape(shape_of(found->second, given_.machine));
  }
  return found->second;
}

std::uint32_t CollectivePlanner::shape(const GroupShape& shape) {
  return maker_->number(shape);
}

bool CollectivePlanner::chooses_chunks(const CollectiveCall& call, std::uint32_t shape) const {
  return !given_.options.chunks && library_->flat_rings(call.kind, maker_->shape(shape)) <= 1;
}

std::int64_t CollectivePlanner::chunks(const CollectiveCall& call, std::uint32_t shape) {
  if (given_.options.chunks) return std::clamp<std::int64_t>(call.bytes.value, 1, *given_.options.chunks);
  const auto [found, fresh] = chunk_counts_.try_emplace(key_of(call, shape));
  if (fresh) {
    const std::int64_t rings = library_->flat_rings(call.kind, maker_->shape(shape));
    // As many chunks as rings, or a multiple: each ring gets as many.
    const std::int64_t all_rings = (kFewestChunks + rings - 1) / rings * rings;
    found->second = std::clamp<std::int64_t>(
        call.bytes.value, 1,
        chooses_chunks(call, shape) ? choose_chunks(phase_loads(call, shape), given_.options.active_chunks)
                                    : all_rings);
  }
  return found->second;
}

std::uint32_t CollectivePlanner::turns(const CollectiveCall& call) const {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::min(call.bytes.value, given_.options.chunks.value_or(kTurns)), 1, kTurns));
}

std::int64_t CollectivePlanner::size_class(const CollectiveCall& call) const {
  // Where algorithms are chosen by size, every size may have peers of its own.
  return chooses_by_size_ ? call.bytes.value : turns(call);
}

std::vector<const CollectivePlan*> CollectivePlanner::possible_plans(const CollectiveCall& call,
                                                                     std::uint32_t shape) {
  std::vector<const CollectivePlan*> possible;
  const Bytes bytes = chunk_bytes(call, 0, chunks(call, shape));
  for (std::uint32_t order = 0; order < maker_->orders(call.kind, maker_->shape(shape)).size(); ++order) {
    for (std::uint32_t turn = 0; turn < turns(call); ++turn)
      possible.push_back(&plan(call, shape, bytes, {order, turn}));
  }
  return possible;
}

// None of flat algorithms, whose messages cross several dimensions.
std::vector<ChunkLoads> CollectivePlanner::phase_loads(const CollectiveCall& call, std::uint32_t shape) {
  std::vector<ChunkLoads> loads(maker_->orders(call.kind, maker_->shape(shape)).size());
  for (std::uint32_t order = 0; order < loads.size(); ++order) {
    const CollectivePlan plan = maker_->make(call, shape, call.bytes, {order, 0}, picks(call, shape));
    for (const PlannedPhase& phase : plan.phases) {
      if (phase.dimension == kAllDimensions && !phase.in_trees) return {{}};
    }
    loads[order] = loads_of(plan, given_.machine);
  }
  return loads;
}

const std::vector<ChunkWay>& CollectivePlanner::ways(const CollectiveCall& call, std::uint32_t shape) {
  const auto [found, fresh] = ways_.try_emplace(key_of(call, shape));
  if (!fresh) return found->second;
  const std::uint32_t rings = library_->flat_rings(call.kind, maker_->shape(shape));
  for (std::uint32_t chunk = 0; rings > 1 && chunk < chunks(call, shape); ++chunk)
    // Flat rings take chunks in turn; each ring is an order of its own.
    found->second.push_back({chunk % rings, 0});
  if (rings > 1) return found->second;
  std::vector<std::uint32_t> turns;
  for (const std::uint32_t order : share_out(phase_loads(call, shape), chunks(call, shape))) {
    turns.resize(std::max<std::size_t>(turns.size(), order + 1));
    // Of an order's chunks each takes the turn after the one before, so that all turns are used alike.
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
  const ChunkEstimate own = estimate_chunks(loads, record.chunks, given_.options.active_chunks);
  record.limit = own.delay;
  // Advice is given only where it is worth a tenth.
  if (!chooses_chunks(call, shape)) {
    const std::int64_t better = choose_chunks(loads, given_.options.active_chunks);
    if (estimate_chunks(loads, better, given_.options.active_chunks).total < kMuchFaster * own.total)
      record.better_chunks = better;
  }
  return later(from_seconds(own.total), overhead(call, shape));
}

Bytes CollectivePlanner::chunk_bytes(const CollectiveCall& call, std::int64_t chunk,
                                     std::int64_t count) const {
  return Bytes(call.bytes.value / count + (chunk < call.bytes.value % count ? 1 : 0));
}

const CollectivePlan& CollectivePlanner::plan(const CollectiveCall& call, std::uint32_t shape,
                                              std::int64_t chunk) {
  const ChunkWay way = ways(call, shape)[static_cast<std::size_t>(chunk)];
  return plan(call, shape, chunk_bytes(call, chunk, chunks(call, shape)), way);
}

const CollectivePlan& CollectivePlanner::plan(const CollectiveCall& call, std::uint32_t shape, Bytes bytes,
                                              const ChunkWay& way) {
  const AlgorithmPicks taken = picks(call, shape);
  CallKey chunk(call);
  chunk.bytes = bytes;
  const PlanKey key{{shape, chunk}, way, taken, call.bytes};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(key, maker_->make(call, shape, bytes, way, taken)).first->second;
}

std::vector<std::pair<const CollectivePlan*, std::int64_t>> CollectivePlanner::plans(
    const CollectiveCall& call, std::uint32_t shape) {
  std::vector<std::pair<const CollectivePlan*, std::int64_t>> found;
  // Chunks are of two sizes at most and go few ways, each of which is looked up once.
  std::vector<std::tuple<Bytes, ChunkWay, std::size_t>> looked_up;
  const std::int64_t count = chunks(call, shape);
  const std::vector<ChunkWay>& ways_of_chunks = ways(call, shape);
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const Bytes bytes = chunk_bytes(call, chunk, count);
    const ChunkWay& way = ways_of_chunks[static_cast<std::size_t>(chunk)];
    const auto before = std::ranges::find_if(
        looked_up, [&](const auto& plan) { return std::get<0>(plan) == bytes && std::get<1>(plan) == way; });
    if (before != looked_up.end()) {
      ++found[std::get<2>(*before)].second;
      continue;
    }
    const CollectivePlan* const own = &plan(call, shape, bytes, way);
    const auto known = std::ranges::find(found, own, [](const auto& entry) { return entry.first; });
    looked_up.emplace_back(bytes, way, static_cast<std::size_t>(known - found.begin()));
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
      text += fmt::format(" on {}", given_.machine.dimensions[phase.dimension].name);
      if (phase.members == PhaseMembers::root_block) text += " (the root's)";
      if (phase.members == PhaseMembers::other_blocks) text += " (the others')";
      if (phase.crossing == Crossing::rings) text += " (as rings)";
      if (phase.crossing == Crossing::trees) text += " (as trees)";
    } else if (given_.machine.dimensions.size() > 1) {
      text += " over all dimensions";
    }
  }
  std::set<std::uint32_t> taken;
  for (const ChunkWay& way : ways(call, shape)) taken.insert(way.order);
  const bool is_flat = !first.phases.empty() && first.phases.front().dimension == kAllDimensions;
  if (taken.size() > 1 && is_flat) text += fmt::format(", {} of them", taken.size());
  if (taken.size() > 1 && !is_flat) text += fmt::format("; chunks in {} orders", taken.size());
  return text;
}

// Of the whole call, so that all chunks of it go alike.
AlgorithmPicks CollectivePlanner::picks(const CollectiveCall& call, std::uint32_t shape_number) {
  // What is made of other kinds is picked as what it is made of.
  const GroupShape& shape = maker_->shape(shape_number);
  if (const CollectiveCall made = library_->as_made(call, shape.ranks); made.kind != call.kind)
    return picks(made, shape_number);
  // Without a choice nothing is estimated, which is most of what planning costs.
  if (!chooses_by_size_ || given_.options.decomposition == Decomposition::flat || shape.sizes.empty())
    return 0;
  const auto [found, fresh] = picks_.try_emplace(key_of(call, shape_number));
  if (fresh) found->second = fastest(call, shape_number);
  return found->second;
}

std::vector<AlgorithmPicks> CollectivePlanner::possible_picks(const CollectiveCall& call,
                                                              const GroupShape& shape) const {
  std::vector<AlgorithmPicks> possible =
      choices_->possible(maker_->phases_of(call, call.bytes, shape, {}, 0), shape);
  const std::size_t in_root_lines = maker_->may_go_over_all_lines(call.kind, shape) ? possible.size() : 0;
  for (std::size_t i = 0; i < in_root_lines; ++i)
    possible.push_back(possible[i] | AlgorithmChoices::kOverAllLines);
  return possible;
}

// As NCCL chooses: by the time that each is expected to take, here of all bytes in as many chunks as are
// best. In the switch only what the busiest link carries less of, as of an all-reduce; but a barrier carries
// nothing. A reduce-scatter or an all-gather alone gains no bytes there, only steps, where rings are long:
// NCCL's model has them move all of the buffer by NVLS, (n - 1) / n of it round the ring, and leaves them to
// rings among several nodes without CollNet (src/graph/tuning.cc).
AlgorithmPicks CollectivePlanner::fastest(const CollectiveCall& call, std::uint32_t shape_number) {
  const GroupShape& shape = maker_->shape(shape_number);
  const std::vector<AlgorithmPicks> possible = possible_picks(call, shape);
  if (possible.size() == 1) return 0;
  double least = std::numeric_limits<double>::infinity();
  AlgorithmPicks found = 0;
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
  for (const AlgorithmPicks taken : possible) {
    const CollectivePlan plan = maker_->make(call, shape_number, call.bytes, {}, taken);
    const ChunkLoads loads = loads_of(plan, given_.machine);
    if (taken == 0) usual = loads;
    double alike = 0;  // seconds that NCCL counts for bytes where both carry as much
    const bool gains = std::ranges::all_of(plan.phases, [&](const PlannedPhase& phase) {
      const std::optional<CollectiveProtocol>& in_switch =
          given_.machine.dimensions[phase.dimension].in_switch;
      if (taken == 0 || !in_switch || phase.algorithm != in_switch->name) return true;
      const double busy = busy_on(loads, phase.dimension);
      if (call.kind == CollectiveKind::barrier || busy < busy_on(usual, phase.dimension)) return true;
      const bool scatters_or_gathers =
          phase.kind == CollectiveKind::reduce_scatter || phase.kind == CollectiveKind::all_gather;
      alike = busy / static_cast<double>(phase.schedule->ranks - 1);
      return scatters_or_gathers && plan.phases.size() == 1;
    });
    if (!gains) continue;
    const std::span<const ChunkLoads> ways(&loads, 1);
    const std::int64_t count =
        given_.options.chunks.value_or(choose_chunks(ways, given_.options.active_chunks));
    double seconds = estimate_chunks(ways, count, given_.options.active_chunks).total +
                     (given_.options.measured ? library_->beyond(plan, call.bytes, shape).total() : 0) +
                     alike;
    // Where the library's steps are taken for a schedule's, rings and what is played for them differ by no
    // more than what is estimated of chunks, and by how many messages there are to play.
    constexpr double kAboutAlike = 1.001;
    if (std::ranges::find(plan.phases, kForManyOthers, &PlannedPhase::algorithm) != plan.phases.end())
      seconds /= kAboutAlike;
    // The first of equals, which are listed in the order of preference.
    if (seconds >= least) continue;
    least = seconds;
    found = taken;
  }
  return found;
}

Time CollectivePlanner::overhead(const CollectiveCall& call, std::uint32_t shape) {
  return from_seconds(beyond(call, shape).total());
}

Time CollectivePlanner::held_by_protocol(const CollectiveCall& call, std::uint32_t shape) {
  return from_seconds(beyond(call, shape).bytes);
}

const BeyondSchedule& CollectivePlanner::beyond(const CollectiveCall& call, std::uint32_t shape) {
  static constexpr BeyondSchedule kNothing{};
  if (call.custom >= 0 || library_->as_made(call, 1).kind == CollectiveKind::barrier) return kNothing;
  if (!given_.options.measured && (given_.network.over_dimensions || !has_cables(given_.machine)))
    return kNothing;
  const auto [found, fresh] = beyond_.try_emplace(key_of(call, shape));
  if (fresh)
    found->second = library_->beyond(maker_->make(call, shape, call.bytes, {}, picks(call, shape)),
                                     call.bytes, maker_->shape(shape));
  return found->second;
}

Time CollectivePlanner::latency(const CollectiveCall& call, const GroupLayout& layout) {
  const std::vector<ChunkLoads> loads = phase_loads(call, layout.shape);
  const BeyondSchedule& own = beyond(call, layout.shape);
  double seconds = own.launch + own.steps;
  if (!loads.front().empty())
    return from_seconds(
        seconds + estimate_chunks(loads, chunks(call, layout.shape), given_.options.active_chunks).latency);
  // Of a flat call: of its steps, each from a member to the next, on average.
  const Topology topology(given_.machine);
  for (const PlannedPhase& phase : plan(call, layout, 0).phases) {
    double ways = 0;
    for (std::int32_t here = 0; here < phase.schedule->ranks; ++here) {
      const std::int32_t there = (here + 1) % phase.schedule->ranks;
      const Message message{rank_at(phase, layout, layout.ranks.front(), 0, here),
                            rank_at(phase, layout, layout.ranks.front(), 0, there), Bytes(1),
                            phase.dimension};
      topology.for_each_link(message, [&](const LinkId& link, const Position& /*beyond*/) {
        ways += in_seconds(given_.machine.dimensions[link.dimension].latency);
      });
    }
    Dimension flat;
    flat.kind = DimensionKind::switched;
    flat.bandwidth = Bandwidth(1);
    flat.latency = from_seconds(ways / phase.schedule->ranks / 2);  // of two links
    seconds += phase_load(*phase.schedule, 0, flat).latency;
  }
  // Chunks beyond what may be under way at once wait for a slot, and pay the latency once more.
  const double rounds =
      std::ceil(static_cast<double>(chunks(call, layout.shape)) /
                static_cast<double>(given_.options.active_chunks *
                                    library_->flat_rings(call.kind, maker_->shape(layout.shape))));
  return from_seconds(seconds * rounds);
}

}  // namespace armilla
