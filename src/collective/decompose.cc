#include "collective/decompose.h"

#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace armilla {
namespace {

struct Level {
  std::uint32_t dimension;
  std::int64_t size;
  Bytes bytes;  // left of the buffer once it has been scattered over the levels below
};

std::vector<Level> levels_of(Bytes bytes, std::span<const std::int64_t> sizes,
                             std::span<const std::uint32_t> order) {
  std::vector<Level> levels;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t d = order.empty() ? i : order[i];
    if (sizes[d] < 1) throw Error("collective", "a dimension has no ranks", "sizes must be at least 1");
    // Nothing moves along it.
    if (sizes[d] == 1) continue;
    levels.push_back({static_cast<std::uint32_t>(d), sizes[d], bytes});
    // Rounded up: the largest piece that a member has left is what takes longest.
    bytes = Bytes(ceil_divide(bytes.value, sizes[d]));
  }
  return levels;
}

std::vector<CollectivePhase> bandwidth_aware_all_reduce(const std::vector<Level>& levels) {
  std::vector<CollectivePhase> phases;
  const std::size_t last = levels.size() - 1;
  for (std::size_t i = 0; i < last; ++i)
    phases.push_back({levels[i].dimension, CollectiveKind::reduce_scatter, levels[i].bytes});
  phases.push_back({levels[last].dimension, CollectiveKind::all_reduce, levels[last].bytes});
  for (std::size_t i = last; i-- > 0;)
    phases.push_back({levels[i].dimension, CollectiveKind::all_gather, levels[i].bytes});
  return phases;
}

}  // namespace

std::vector<CollectivePhase> decompose(CollectiveKind kind, Bytes bytes, std::span<const std::int64_t> sizes,
                                       Decomposition decomposition, std::span<const std::uint32_t> order) {
  if (decomposition == Decomposition::flat)
    throw Error("collective", "a flat collective has no phases", "use its algorithm on the whole group");
  const std::vector<Level> levels = levels_of(bytes, sizes, order);
  if (levels.empty()) return {};
  if (kind == CollectiveKind::all_reduce && decomposition != Decomposition::baseline)
    return bandwidth_aware_all_reduce(levels);

  const bool shrinks = kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
  const bool rooted = kind == CollectiveKind::reduce || kind == CollectiveKind::broadcast;
  const bool descending = kind == CollectiveKind::all_gather || kind == CollectiveKind::broadcast;
  std::vector<CollectivePhase> phases;
  for (const Level& level : levels) {
    // Only the lines that hold the root's lower coordinates, as a reduction leaves its sums there and a
    // broadcast finds its data there.
    const bool lower_levels = level.dimension != levels.front().dimension;
    const Bytes phase_bytes = kind == CollectiveKind::barrier ? Bytes(0) : shrinks ? level.bytes : bytes;
    phases.push_back({level.dimension, kind, phase_bytes,
                      rooted && lower_levels ? PhaseMembers::root_lines : PhaseMembers::all});
  }
  if (descending) return {phases.rbegin(), phases.rend()};
  return phases;
}

std::vector<CollectivePhase> decompose_over_all_lines(CollectiveKind kind, Bytes bytes,
                                                      std::span<const std::int64_t> sizes) {
  const std::vector<Level> levels = levels_of(bytes, sizes, {});
  if (levels.size() != 2) return {};
  const auto [inner, outer] = std::pair(levels[0], levels[1]);
  if (kind == CollectiveKind::reduce) {
    return {{inner.dimension, CollectiveKind::reduce_scatter, bytes, PhaseMembers::other_blocks},
            {outer.dimension, kind, outer.bytes},
            {inner.dimension, kind, bytes, PhaseMembers::root_block}};
  }
  return {{inner.dimension, kind, bytes, PhaseMembers::root_block},
          {outer.dimension, kind, outer.bytes},
          {inner.dimension, CollectiveKind::all_gather, bytes, PhaseMembers::other_blocks}};
}

std::vector<CollectiveKind> kinds_of_phases(CollectiveKind kind) {
  using enum CollectiveKind;
  switch (kind) {
    case all_reduce:
      return {kind, reduce_scatter, all_gather};
    case reduce:
      return {kind, reduce_scatter};
    case broadcast:
      return {kind, all_gather};
    case barrier:  // a library's is an all-reduce
      return {kind, all_reduce, reduce_scatter, all_gather};
    case reduce_scatter:
    case all_gather:
    case all_to_all:
      break;
  }
  return {kind};
}

}  // namespace armilla
