// What the planner's sources agree on when they choose how a call goes.
#pragma once

#include <string_view>

#include "ir/collective.h"

namespace armilla {

// What a Ring among so many members of a Switch may be slower than: in a logarithmic number of steps a power
// of two moves as few bytes; other numbers move no fewer in trees, which are for small messages.
inline constexpr std::string_view kForPowersOfTwo = "halving-doubling",
                                  kForOtherNumbers = "double-binary-tree";
// Of the algorithms in switches the one whose all-reduce is a reduce-scatter and an all-gather, which
// NVSwitches do, each alone: not in trees of several.
inline constexpr std::string_view kNvls = "nvls";

// Whether calls go as the library would have them.
inline bool has_no_wish(const CollectiveOptions& options) {
  return options.algorithms.empty() && options.algorithms_by_kind.empty() &&
         options.decomposition == Decomposition::multi_axis;
}

}  // namespace armilla
