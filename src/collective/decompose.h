// Collectives over several dimensions as a sequence of one-dimensional phases (hierarchical collectives).
//
//   all-reduce, bandwidth aware  reduce-scatter on dims 0..last-1, all-reduce on the last, all-gather back
//                                down: the bytes shrink by each dimension's size on the way up (ASTRA-sim's
//                                localBWAware; BlueConnect, Cho et al. 2019)
//   all-reduce, multi-axis       as bandwidth aware, in the order of the dimensions that is given; so
//                                reduce-scatter and all-gather. Chunks in the rotations of a torus's axes
//                                load all of them at once (as Themis orders phases, Rashidi et al., ISCA
//                                2022; all axes of a TPU: Austin et al., "How to Scale Your Model", 2025)
//   all-reduce, baseline         an all-reduce of all bytes on each dimension
//   reduce-scatter, all-to-all   dimensions ascending; all-gather descending
//   reduce                       ascending, in the lines that contain the root's lower coordinates; broadcast
//                                descending
//   barrier                      ascending, of nothing
//   over all lines               of two dimensions, a broadcast from a root's block, whose members each send
//                                their piece to those of the other blocks, where it is gathered; a reduction
//                                the other way. As many lines as a block has members share what goes between
//                                blocks, as NCCL's rings, one per NIC
//
// After a reduce-scatter in ascending order the member with coordinates (c0, c1, ...) holds the piece whose
// number has c0 as its most significant digit, then c1: the digits of its rank reversed. The all-gather
// starts from there. An all-to-all regroups the blocks it holds by the destination's next coordinate between
// two phases, at no cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"

namespace armilla {

// Who takes part in a phase: all, those whose lower coordinates equal the root's, or those whose higher ones
// do, or do not.
enum class PhaseMembers : std::uint8_t { all, root_lines, root_block, other_blocks };

struct CollectivePhase {
  std::uint32_t dimension = 0;
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;  // in the convention of ir/collective.h, for the one-dimensional collective
  PhaseMembers members = PhaseMembers::all;
};

// `sizes` of the dimensions, innermost first; those of size 1 get no phase. `order`: all dimensions, in that
// in which an all-reduce or reduce-scatter takes them and an all-gather takes them backwards; empty:
// ascending, as all others take them. Throws Error for a size below 1 and for Decomposition::flat.
std::vector<CollectivePhase> decompose(CollectiveKind kind, Bytes bytes, std::span<const std::int64_t> sizes,
                                       Decomposition decomposition,
                                       std::span<const std::uint32_t> order = {});

// A broadcast or reduction over all lines; empty where not exactly two dimensions are larger than 1.
std::vector<CollectivePhase> decompose_over_all_lines(CollectiveKind kind, Bytes bytes,
                                                      std::span<const std::int64_t> sizes);

// That a collective's phases may have, in whatever way it is decomposed, its own first.
std::vector<CollectiveKind> kinds_of_phases(CollectiveKind kind);

}  // namespace armilla
