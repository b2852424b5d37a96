// Ranks whose programs turn out equal share one, and equal calls are stored once.
//
// Imported traces name groups rank by rank; once the groups are families (ir/graph.h), the traces of an SPMD
// job often are the same program. Programs that differ in the ids their files show stay apart.
// Cost: one pass over all nodes for a hash, and comparisons of programs with equal hashes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace armilla {

// Returns the numbers, before merging, of the programs that are left. Only programs that `may_merge` says yes
// to (first, later) are merged; roles do not count.
std::vector<std::uint32_t> merge_equal_programs(
    Graph& graph, const std::function<bool(std::uint32_t, std::uint32_t)>& may_merge);

}  // namespace armilla
