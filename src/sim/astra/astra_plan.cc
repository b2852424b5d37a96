#include "sim/astra/astra_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "collective/algorithm.h"
#include "network/astra_network.h"
#include "sim/astra/themis.h"

namespace armilla {
namespace {

std::int32_t log2_of(std::int64_t n) {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint64_t>(n))) - 1;
}

std::vector<double> bandwidths_of(const SystemLayer& system, const std::vector<std::size_t>& physical) {
  std::vector<double> bandwidths;
  for (const std::size_t d : physical) {
    const StreamDimension& dimension = system.dimensions[d];
    bandwidths.push_back(system.semantics == Semantics::astra1 ? astra1_bandwidth(dimension)
                                                               : dimension.bandwidth);
  }
  return bandwidths;
}

}  // namespace

std::int64_t final_bytes(const AstraPhase& phase) {
  if (phase.method == AstraMethod::double_binary_tree) return phase.bytes;
  if (phase.kind == CollectiveKind::reduce_scatter) return phase.bytes / phase.ranks;
  if (phase.kind == CollectiveKind::all_gather) {
    std::int64_t bytes = 0;
    // Saturates: an all-gather over many dimensions of a mistyped size must not wrap round to something
    // plausible.
    return __builtin_mul_overflow(phase.bytes, phase.ranks, &bytes) ? INT64_MAX : bytes;
  }
  return phase.bytes;
}

AstraPlanner::AstraPlanner(const SystemLayer& system) : system_(system) {
  std::int64_t stride = 1;
  const auto add = [&](std::size_t dimension, std::int64_t size) {
    sizes_.push_back(size);
    strides_.push_back(stride);
    physical_.push_back(dimension);
    stride *= size;
  };
  for (std::size_t d = 0; d < system.dimensions.size(); ++d) {
    const std::int64_t size = system.dimensions[d].size;
    if (static_cast<std::int32_t>(d) == system.split_dimension) {
      add(d, system.split_first);
      add(d, size / system.split_first);
    } else {
      add(d, size);
    }
  }
  if (system.inter_dimension == InterDimensionOrder::themis ||
      system.inter_dimension == InterDimensionOrder::themis_flex) {
    themis_ = std::make_unique<Themis>(sizes_, bandwidths_of(system, physical_),
                                       system.inter_dimension == InterDimensionOrder::themis_flex,
                                       system.gap_denominator);
  }
}

AstraPlanner::~AstraPlanner() = default;

AstraPlanner::ChunkSizes AstraPlanner::chunk_sizes(const CollectiveCall& call,
                                                   std::int64_t group_size) const {
  ChunkSizes sizes{call.bytes.value, 0};
  // Its size counts the result; what is cut into chunks is what a rank puts in.
  if (call.kind == CollectiveKind::all_gather) sizes.total /= group_size;
  sizes.chunk = sizes.total / system_.splits;
  const std::int64_t world = rank_count(system_);
  // ASTRA-sim 2 raises chunks to a byte for each rank, but for all-gathers.
  const bool raises = system_.semantics != Semantics::astra1 && call.kind != CollectiveKind::all_gather;
  if (raises && world > sizes.chunk) {
    sizes.chunk = world;
    sizes.total = system_.splits * world;
  }
  // ASTRA-sim loops for ever on less than one byte per chunk.
  sizes.chunk = std::max<std::int64_t>(sizes.chunk, 1);
  sizes.total = std::max<std::int64_t>(sizes.total, 1);
  return sizes;
}

void AstraPlanner::first_rank_issues(Time now) {
  // Loads are those of the collectives issued at one moment; a later one finds idle links.
  if (!themis_ || now == last_issue_) return;
  themis_->forget_loads();
  last_issue_ = now;
}

std::vector<StreamAlgorithm> AstraPlanner::algorithms(CollectiveKind kind) const {
  const auto found = system_.algorithms.find(kind);
  return found == system_.algorithms.end() ? std::vector<StreamAlgorithm>{} : found->second;
}

std::vector<std::size_t> AstraPlanner::dimension_order(CollectiveKind kind, std::uint32_t mask,
                                                       std::int64_t chunk, std::int64_t& remaining,
                                                       std::int64_t& bytes) {
  std::vector<std::size_t> order(sizes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The mirror image of a reduce-scatter: the outermost dimension first, while a chunk still is small, as
  // outer links are the slow ones.
  if (kind == CollectiveKind::all_gather) std::reverse(order.begin(), order.end());
  if (themis_ && kind != CollectiveKind::all_to_all) {
    Themis::Choice choice = themis_->next_chunk(kind, mask, chunk, remaining);
    bytes = choice.bytes;
    remaining -= bytes;
    return std::move(choice.order);
  }
  if (system_.inter_dimension == InterDimensionOrder::round_robin) {
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(turn_), order.end());
    turn_ = (turn_ + 1) % sizes_.size();
  }
  // ASTRA-sim 2 makes the last chunk as large as the others, 1.0 as small as it is.
  bytes = system_.semantics == Semantics::astra1 ? std::min(chunk, remaining) : chunk;
  remaining -= std::min(chunk, remaining);
  return order;
}

std::vector<AstraPhase> AstraPlanner::next_chunk(const CollectiveCall& call, std::uint32_t mask,
                                                 std::int64_t group_size, std::int64_t chunk,
                                                 std::int64_t& remaining) {
  std::vector<AstraPhase> phases;
  if (call.custom >= 0) {
    remaining = 0;
    AstraPhase& phase = phases.emplace_back();
    phase.method = AstraMethod::custom;
    phase.kind = call.kind;
    phase.dimension = kFlatPhase;
    phase.ranks = static_cast<std::int32_t>(group_size);
    phase.bytes = call.bytes.value;
    return phases;
  }
  const std::vector<StreamAlgorithm> named = algorithms(call.kind);
  const bool native_kind = call.kind == CollectiveKind::all_reduce ||
                           call.kind == CollectiveKind::reduce_scatter ||
                           call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::all_to_all;
  const bool flat = std::any_of(named.begin(), named.end(), [](const StreamAlgorithm& a) { return a.flat; });
  const bool aware =
      call.kind == CollectiveKind::all_reduce && system_.decomposition != Decomposition::baseline;
  if (!native_kind || mask == 0 || flat) {
    std::int64_t bytes = system_.semantics == Semantics::astra1 ? std::min(chunk, remaining) : chunk;
    remaining -= std::min(chunk, remaining);
    if (group_size == 1) return phases;
    StreamAlgorithm algorithm;
    if (!named.empty() && (flat || named.size() == 1)) algorithm = named.front();
    AstraPhase phase = make_phase(call.kind, algorithm, kFlatPhase, group_size, bytes,
                                  aware ? QueueShare::first : QueueShare::any, mask == 0);
    // ASTRA-sim has algorithms for four kinds alone: the others take Armilla's own schedules.
    if (!native_kind) use_schedule(phase, algorithms_that_perform(call.kind).front(), call.root);
    phases.push_back(phase);
    return phases;
  }
  std::int64_t bytes = 0;
  const std::vector<std::size_t> order = dimension_order(call.kind, mask, chunk, remaining, bytes);
  return grid_phases(call.kind, mask, order, bytes);
}

// A list of algorithms shorter than the dimensions leaves the outer ones out, as in ASTRA-sim.
std::vector<AstraPhase> AstraPlanner::grid_phases(CollectiveKind kind, std::uint32_t mask,
                                                  const std::vector<std::size_t>& order, std::int64_t bytes) {
  const std::vector<StreamAlgorithm> named = algorithms(kind);
  std::vector<std::size_t> used;
  for (const std::size_t d : order) {
    // The file names algorithms per physical dimension; both halves of a split one have the same.
    if (takes_part(d, mask) && physical_[d] < named.size()) used.push_back(d);
  }
  std::vector<AstraPhase> phases;
  const auto add = [&](CollectiveKind phase_kind, std::size_t d, QueueShare share) {
    phases.push_back(make_phase(phase_kind, named[physical_[d]], static_cast<std::int32_t>(d), sizes_[d],
                                bytes, share, false));
    bytes = final_bytes(phases.back());
  };
  if (kind != CollectiveKind::all_reduce || system_.decomposition == Decomposition::baseline) {
    for (const std::size_t d : used) add(kind, d, QueueShare::any);
    return phases;
  }
  const bool halves = system_.semantics != Semantics::astra1;
  const QueueShare up = halves ? QueueShare::first : QueueShare::any;
  const QueueShare down = halves ? QueueShare::second : QueueShare::any;
  // Themis gives every dimension a reduce-scatter and an all-gather; otherwise the last one turns round at
  // once.
  const std::size_t turning = themis_ ? used.size() : used.empty() ? 0 : used.size() - 1;
  for (std::size_t i = 0; i < turning; ++i) add(CollectiveKind::reduce_scatter, used[i], up);
  if (turning < used.size()) add(CollectiveKind::all_reduce, used[turning], up);
  for (std::size_t i = turning; i-- > 0;) add(CollectiveKind::all_gather, used[i], down);
  return phases;
}

AstraPhase AstraPlanner::make_phase(CollectiveKind kind, const StreamAlgorithm& algorithm,
                                    std::int32_t dimension, std::int64_t ranks, std::int64_t bytes,
                                    QueueShare share, bool local) {
  AstraPhase phase;
  phase.local = local;
  phase.kind = kind;
  phase.dimension = dimension;
  if (dimension != kFlatPhase) phase.stride = strides_[static_cast<std::size_t>(dimension)];
  phase.share = share;
  phase.ranks = static_cast<std::int32_t>(ranks);
  phase.bytes = bytes;
  choose_method(phase, algorithm);
  return phase;
}

void AstraPlanner::choose_method(AstraPhase& phase, const StreamAlgorithm& algorithm) {
  const std::int32_t n = phase.ranks;
  const bool reduces_all = phase.kind == CollectiveKind::all_reduce;
  // `bytes` and `variant`: what else the method's schedules differ in.
  const auto use = [&](AstraMethod method, std::int64_t bytes, std::int32_t variant, const auto& make) {
    phase.method = method;
    const auto [made, fresh] = schedules_.try_emplace({method, phase.kind, n, bytes, variant});
    if (fresh) made->second = make();
    phase.schedule = &made->second;
  };
  switch (algorithm.kind) {
    case StreamAlgorithmKind::ring:
      phase.each = phase.kind == CollectiveKind::all_gather ? phase.bytes : phase.bytes / n;
      phase.sends = reduces_all ? 2 * (n - 1) : n - 1;
      // Every block is passed on to its receiver hop by hop, 1 + 2 + ... + (n - 1) messages of each rank.
      if (phase.kind == CollectiveKind::all_to_all)
        phase.sends =
            static_cast<std::int32_t>(std::min<std::int64_t>(std::int64_t{n} * (n - 1) / 2, INT32_MAX));
      use(AstraMethod::ring, 0, 0, [&] { return astra_ring(phase.kind, n, phase.sends); });
      return;
    case StreamAlgorithmKind::direct: {
      phase.each = phase.kind == CollectiveKind::all_gather ? phase.bytes : phase.bytes / n;
      phase.sends = reduces_all ? 2 * (n - 1) : n - 1;
      const std::int32_t window = algorithm.window > 0 ? std::min(algorithm.window, n - 1) : n - 1;
      use(AstraMethod::direct, phase.local ? 1 : 0, window,
          [&] { return astra_direct(phase.kind, n, phase.sends, window, phase.local); });
      return;
    }
    case StreamAlgorithmKind::halving_doubling:
      if (!is_power_of_two(n) || phase.kind == CollectiveKind::all_to_all) {
        const bool performs = phase.kind != CollectiveKind::all_to_all;
        notes_.insert(fmt::format(
            "halvingDoubling {}: {}",
            performs ? fmt::format("among {} ranks, not a power of two", n) : std::string("of an all-to-all"),
            performs ? "the ranks beyond the power of two join by an extra step before and after"
                     : "direct is used, as halving-doubling cannot"));
        use_schedule(phase, performs ? "halving-doubling" : "direct");
        return;
      }
      phase.sends = (reduces_all ? 2 : 1) * log2_of(n);
      use(AstraMethod::halving_doubling, phase.bytes, 0,
          [&] { return astra_halving_doubling(phase.kind, n, phase.bytes); });
      return;
    case StreamAlgorithmKind::double_binary_tree: {
      if (!is_power_of_two(n)) {
        notes_.insert(fmt::format(
            "doubleBinaryTree among {} ranks, not a power of two: a tree of any size is used", n));
        use_schedule(phase, reduces_all ? "double-binary-tree" : "ring");
        return;
      }
      if (!reduces_all) {
        notes_.insert(fmt::format("doubleBinaryTree in {}: a whole all-reduce runs, as in ASTRA-sim",
                                  name_of(phase.kind)));
      }
      phase.each = phase.bytes;
      // The two trees of a double binary tree take turns, chunk by chunk: where one has a leaf the other has
      // an inner node.
      const bool first_is_root = trees_[{phase.kind, phase.dimension}]++ % 2 == 1;
      use(AstraMethod::double_binary_tree, 0, first_is_root ? 1 : 0,
          [&] { return astra_tree(n, first_is_root); });
      return;
    }
  }
}

void AstraPlanner::use_schedule(AstraPhase& phase, std::string_view algorithm, std::int32_t root) {
  std::int64_t bytes = phase.bytes;
  if (phase.kind == CollectiveKind::all_gather) bytes = final_bytes(phase);  // schedules count the output
  const auto [made, fresh] = native_schedules_.try_emplace(
      {phase.kind, std::string(algorithm), phase.ranks, bytes, root, phase.each});
  if (fresh) {
    made->second = astra_scheduled(Algorithm(algorithm, "collective algorithm")
                                       .schedule({phase.kind, phase.ranks, Bytes(bytes), root, 0, false}),
                                   phase.each);
  }
  phase.method = AstraMethod::scheduled;
  phase.schedule = &made->second;
}

}  // namespace armilla
