#include "sim/collective_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "collective/decompose.h"
#include "network/topology.h"

namespace armilla {
namespace {

bool is_power_of_two(std::int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

// What a dimension does best when the user has no wish.
std::string_view natural_algorithm(CollectiveKind kind, const Dimension& dimension) {
  if (links_every_pair(dimension)) return "direct";
  if (passes_others(dimension)) return "ring";
  if (kind == CollectiveKind::all_to_all) return "direct";
  return is_power_of_two(dimension.size) ? "halving-doubling" : "ring";
}

bool has_window(const Schedule& schedule) {
  for (const RankSchedule& role : schedule.roles) {
    if (std::any_of(role.steps.begin(), role.steps.end(), [](const Step& step) { return step.window > 0; }))
      return true;
  }
  return false;
}

// Whether every member loads its links as every other does. Exchanges that pass others do not: on a Ring half
// of the members go up, half down.
bool looks_alike_from_everywhere(const Schedule& schedule, const Dimension& dimension) {
  return schedule.is_symmetric() && (schedule.addressing == Addressing::shift || !passes_others(dimension));
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

}  // namespace

bool takes_part(const CollectivePlan& plan, const PlannedPhase& phase, const GroupLayout& layout,
                std::int32_t rank) {
  if (!phase.only_root_lines) return true;
  for (std::uint32_t d = 0; d < phase.dimension; ++d) {
    if (layout.position(rank, d) != plan.root[d]) return false;
  }
  return true;
}

std::int32_t position_in(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank) {
  return phase.dimension == kAllDimensions ? layout.flat_position(rank)
                                           : layout.position(rank, phase.dimension);
}

CollectivePlanner::CollectivePlanner(const Machine& machine, const CollectiveOptions& options)
    : machine_(machine), options_(options) {
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
    std::vector<Algorithm>& chosen = algorithms_[kind];
    for (std::size_t d = 0; d < dimensions; ++d) {
      const Dimension& dimension = machine.dimensions[d];
      const std::string text =
          wish.empty() ? std::string(natural_algorithm(kind, dimension)) : wish[wish.size() == 1 ? 0 : d];
      chosen.emplace_back(text, where);
      // A general wish cannot suit every kind; where it does not apply, it is replaced, and said to be.
      if (!specific && !chosen.back().performs(kind)) {
        replaced_[{kind, static_cast<std::uint32_t>(d)}] = chosen.back().name();
        chosen.back() = Algorithm(natural_algorithm(kind, dimension), where);
      }
      require(chosen.back(), kind, where);
    }
    const bool has_wish = !wish.empty();
    Algorithm flat(has_wish ? wish.front() : "ring", where);
    if (!specific && !flat.performs(kind)) {
      replaced_[{kind, kAllDimensions}] = flat.name();
      flat = Algorithm("ring", where);
    }
    chosen.push_back(std::move(flat));
    require(chosen.back(), kind, where);
  }
}

const GroupLayout& CollectivePlanner::layout(const Graph& graph, std::uint32_t family, std::int32_t group) {
  const auto [found, fresh] = layouts_.try_emplace({family, group});
  if (fresh) {
    found->second = lay_out(graph.families[family].groups[static_cast<std::size_t>(group)], machine_);
    found->second.shape =
        shape({found->second.sizes(), static_cast<std::int64_t>(found->second.ranks.size())});
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
  const auto [found, fresh] =
      chunk_counts_.try_emplace({shape, call.kind, call.bytes.value, call.root, call.routing});
  if (fresh) {
    found->second = std::clamp<std::int64_t>(call.bytes.value, 1,
                                             choose_chunks(phase_loads(call, shape), options_.active_chunks));
  }
  return found->second;
}

std::int64_t CollectivePlanner::sides(const CollectiveCall& call) const {
  return std::clamp<std::int64_t>(call.bytes.value, 1,
                                  std::min<std::int64_t>(2, options_.chunks.value_or(2)));
}

// None of flat algorithms, whose messages cross several dimensions.
std::vector<PhaseLoad> CollectivePlanner::phase_loads(const CollectiveCall& call, std::uint32_t shape) {
  std::vector<PhaseLoad> loads;
  const CollectivePlan whole = make_plan(call, shapes_[shape], call.bytes, 0);
  for (const PlannedPhase& phase : whole.phases) {
    if (phase.dimension == kAllDimensions) return {};
    loads.push_back(phase_load(*phase.schedule, phase.dimension, machine_.dimensions[phase.dimension]));
  }
  return loads;
}

Time CollectivePlanner::describe_chunks(const CollectiveCall& call, std::uint32_t shape,
                                        CollectiveRecord& record) {
  constexpr double kMuchFaster = 0.9;
  record.chunks = chunks(call, shape);
  const std::vector<PhaseLoad> loads = phase_loads(call, shape);
  record.limit = CollectiveLimit::latency;
  if (loads.empty()) return Time(0);
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

const Algorithm& CollectivePlanner::algorithm(CollectiveKind kind, std::uint32_t dimension) const {
  const std::vector<Algorithm>& chosen = algorithms_.at(kind);
  return dimension == kAllDimensions ? chosen.back() : chosen[dimension];
}

const Schedule& CollectivePlanner::schedule(const Algorithm& algorithm, const ScheduleRequest& request) {
  const ScheduleKey key{&algorithm,          request.kind, request.ranks,
                        request.bytes.value, request.root, request.chunk};
  const auto found = schedules_.find(key);
  if (found != schedules_.end()) return found->second;
  return schedules_.emplace(key, algorithm.schedule(request)).first->second;
}

CollectivePlan CollectivePlanner::make_plan(const CollectiveCall& call, const GroupShape& shape, Bytes bytes,
                                            std::int64_t chunk) {
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
                       std::int32_t root) {
    const Algorithm& chosen = algorithm(phase.kind, dimension);
    const ScheduleRequest request{phase.kind, static_cast<std::int32_t>(size),  phase.bytes,
                                  root,       static_cast<std::int32_t>(chunk), false};
    const Schedule& made = schedule(chosen, request);
    const auto wished = replaced_.find({phase.kind, dimension});
    if (wished != replaced_.end()) {
      substitutions_.insert(fmt::format("algorithm '{}' cannot perform {}: '{}' is used instead",
                                        wished->second, name_of(phase.kind), chosen.name()));
    }
    plan.phases.push_back(
        {dimension, phase.kind, phase.only_root_lines, has_window(made), &made, chosen.name()});
  };
  if (shape.ranks < 2) return plan;
  if (options_.decomposition == Decomposition::flat || shape.sizes.empty()) {
    add(kAllDimensions, {0, call.kind, bytes, false}, shape.ranks, call.root);
    return plan;
  }
  std::vector<CollectivePhase> phases = decompose(call.kind, bytes, shape.sizes, options_.decomposition);
  if (call.routing.experts > 0) route_tokens(phases, call.routing, shape);
  for (const CollectivePhase& phase : phases) {
    add(phase.dimension, phase, shape.sizes[phase.dimension], plan.root[phase.dimension]);
  }
  return plan;
}

const CollectivePlan& CollectivePlanner::plan(const CollectiveCall& call, std::uint32_t shape,
                                              std::int64_t chunk) {
  const Bytes bytes = chunk_bytes(call, chunk, chunks(call, shape));
  const std::int64_t side = chunk % 2;  // trees alternate (ScheduleRequest::chunk)
  const PlanKey key{shape, call.kind, bytes.value, call.root, side, call.routing};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_.emplace(key, make_plan(call, shapes_[shape], bytes, side)).first->second;
}

std::string CollectivePlanner::describe(const CollectivePlan& plan) const {
  std::string text;
  for (const PlannedPhase& phase : plan.phases) {
    if (!text.empty()) text += ", ";
    if (plan.phases.size() > 1) text += fmt::format("{} ", name_of(phase.kind));
    text += phase.algorithm;
    if (phase.dimension != kAllDimensions) {
      text += fmt::format(" on {}", machine_.dimensions[phase.dimension].name);
    } else if (machine_.dimensions.size() > 1) {
      text += " over all dimensions";
    }
  }
  return text;
}

Time CollectivePlanner::overhead(const CollectiveCall& call, std::uint32_t shape) {
  if (!options_.measured || call.custom >= 0 || call.kind == CollectiveKind::barrier) return Time(0);
  const auto [found, fresh] =
      overheads_.try_emplace({shape, call.kind, call.bytes.value, call.root, call.routing});
  if (fresh) found->second = measure_overhead(call, shape);
  return found->second;
}

// Steps of the library's rings, or of its trees, up and down, where these are fewer.
double library_steps(CollectiveKind kind, std::int32_t ranks) {
  const double ring = ranks - 1;
  if (kind == CollectiveKind::all_to_all) return 1;
  if (kind != CollectiveKind::all_reduce) return ring;
  return std::min(2 * ring, 4 * std::log2(static_cast<double>(ranks)));
}

Time CollectivePlanner::measure_overhead(const CollectiveCall& call, std::uint32_t shape) {
  double launch = 0, rest = 0;
  for (const PlannedPhase& phase : make_plan(call, shapes_[shape], call.bytes, 0).phases) {
    if (phase.dimension == kAllDimensions) continue;
    const Dimension& dimension = machine_.dimensions[phase.dimension];
    const RankSchedule& member = phase.schedule->of(0);
    double bytes = 0;
    for (const Transfer& transfer : member.sends) bytes += static_cast<double>(transfer.bytes.value);
    double least = std::numeric_limits<double>::infinity(), own_launch = 0;
    for (const CollectiveProtocol& protocol : dimension.protocols) {
      const double beyond = in_seconds(protocol.step) * library_steps(phase.kind, phase.schedule->ranks) +
                            bytes * (1 / protocol.share - 1) / dimension.bandwidth.value;
      if (in_seconds(protocol.launch) + beyond >= least) continue;
      least = in_seconds(protocol.launch) + beyond;
      own_launch = in_seconds(protocol.launch);
    }
    if (dimension.protocols.empty()) continue;
    // One kernel does all phases.
    launch = std::max(launch, own_launch);
    rest += least - own_launch;
  }
  return from_seconds(launch + rest);
}

MemberTraffic CollectivePlanner::traffic_per_member(const CollectiveCall& call, std::uint32_t shape) {
  MemberTraffic total;
  const std::int64_t count = chunks(call, shape);
  for (std::int64_t side = 0; side < std::min<std::int64_t>(2, count); ++side) {
    MemberTraffic per_chunk;
    for (const PlannedPhase& phase : plan(call, shape, side).phases) {
      const Schedule& schedule = *phase.schedule;
      const std::int32_t members = schedule.is_symmetric() ? 1 : schedule.ranks;
      MemberTraffic sent;
      for (std::int32_t m = 0; m < members; ++m) {
        sent.messages += static_cast<double>(schedule.of(m).sends.size());
        for (const Transfer& transfer : schedule.of(m).sends)
          sent.bytes += static_cast<double>(transfer.bytes.value);
      }
      per_chunk.messages += sent.messages / members;
      per_chunk.bytes += sent.bytes / members;
    }
    const auto chunks_of_side = static_cast<double>((count + 1 - side) / 2);
    total.messages += per_chunk.messages * chunks_of_side;
    total.bytes += per_chunk.bytes * chunks_of_side;
  }
  return total;
}

Time CollectivePlanner::link_limit(const CollectiveCall& call, const GroupLayout& layout) {
  const CallKey key{&layout, call.kind, call.bytes.value, call.root, call.routing};
  const auto [found, fresh] = link_limits_.try_emplace(key);
  if (fresh) found->second = measure_link_limit(call, layout);
  return found->second;
}

Time CollectivePlanner::measure_link_limit(const CollectiveCall& call, const GroupLayout& layout) {
  // Every transfer is routed; beyond this the limit is not worth the wait and stays unknown.
  constexpr double kMostTransfers = 2e7;
  double transfers = 0;
  const std::int64_t count = chunks(call, layout.shape);
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    for (const PlannedPhase& phase : plan(call, layout, chunk).phases)
      transfers += static_cast<double>(phase.schedule->ranks) *
                   static_cast<double>(phase.schedule->of(0).sends.size());
    if (transfers > kMostTransfers) return Time(0);
  }
  const Topology topology(machine_);
  std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, Bytes>
      carried;  // by (dimension, owner, number)
  const std::int32_t first = layout.ranks.front();
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    for (const PlannedPhase& phase : plan(call, layout, chunk).phases) {
      const bool flat = phase.dimension == kAllDimensions;
      const bool symmetric =
          !flat && looks_alike_from_everywhere(*phase.schedule, machine_.dimensions[phase.dimension]);
      const std::int32_t members = symmetric ? 1 : phase.schedule->ranks;
      const std::int32_t here = position_in(phase, layout, first);
      for (std::int32_t position = 0; position < members; ++position) {
        const auto at_position = [&](std::int32_t p) { return rank_at(phase, layout, first, here, p); };
        for (const Transfer& transfer : phase.schedule->of(position).sends) {
          const Message message{at_position(position), at_position(phase.schedule->peer(position, transfer)),
                                transfer.bytes, phase.dimension};
          Position at = topology.start(message);
          while (at.hops_left > 0) {
            const LinkId link = topology.advance(message, at);
            // Where all members do the same, the links a message crosses carry as much of the others as this
            // one's own do of it.
            Bytes& sum = carried[{link.dimension, symmetric ? 0 : link.owner, link.number}];
            sum = saturating_add(sum, transfer.bytes);
          }
        }
      }
    }
  }
  Time limit;
  for (const auto& [link, bytes] : carried) {
    limit = std::max(limit, time_to_move(bytes, machine_.dimensions[std::get<0>(link)].bandwidth));
  }
  return limit;
}

}  // namespace armilla
