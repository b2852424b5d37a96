// What follows from the dependences of a program's written nodes, and where its loops (ir/graph.h) lie: what
// the walker of ranks looks up at every node. Ranks of one program share it, as do programs of equal
// dependences. Cost: O(nodes + dependences) per loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace armilla {

// Who waits for a node: a program's dependences the other way round (CSR), in ascending order. 4 bytes per
// node and dependence.
class Dependents {
 public:
  // `first`: where the dependences of each node begin in `dependence`, and where the last one's end.
  Dependents(std::span<const std::uint32_t> first, std::span<const std::uint32_t> dependence)
      : first_(first.size()), node_(dependence.size()) {
    for (const std::uint32_t node : dependence) ++first_[node];
    std::exclusive_scan(first_.begin(), first_.end(), first_.begin(), std::uint32_t{0});
    // `first_` is where the next dependent of a node goes: in the end, where those of the node behind it
    // begin.
    for (std::uint32_t node = 0; node + 1 < first.size(); ++node) {
      for (std::uint32_t i = first[node]; i < first[node + 1]; ++i) node_[first_[dependence[i]]++] = node;
    }
    std::shift_right(first_.begin(), first_.end(), 1);
    first_.front() = 0;
  }

  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(node_).subspan(first_[node], first_[node + std::size_t{1}] - first_[node]);
  }

 private:
  std::vector<std::uint32_t> first_, node_;
};

// Nodes up to the end of a loop, from the end of the one before, or those behind the last one. A node is
// called `local` by its number in a program in which all loops before this one are as they are written.
struct Stretch {
  Loop loop;                  // shorter by what was left out; behind the last one empty, at the end
  std::uint32_t start = 0;    // the first node
  std::uint32_t skipped = 0;  // nodes of loops before it that are not written
  std::uint32_t behind = 0;   // the first node of the whole program behind it
  std::uint32_t number = 0;   // among the program's

  std::uint32_t written(std::uint32_t local) const {
    return local < loop.end ? local : loop.end - loop.period + (local - loop.end) % loop.period;
  }
};
std::vector<Stretch> stretches_in(const Program& program);

// A computation, which may be part of a chain (sim/engine/rank_walker.h).
bool computes(const Program& program, std::uint32_t node);
// Whether of any two nodes on the device the one with the larger id waits for the other. O(nodes +
// dependences).
bool computes_in_order(const Program& program);

// Of a program's written nodes.
struct Successors {
  // Of a loop.
  struct Reach {
    std::uint32_t back = 0;       // no node of its last written period depends on one before
    std::uint32_t ends_from = 0;  // no node behind it does on one of the loop before
    std::int64_t issues_in_period = 0;
    bool awaits_in_period = false;
  };
  Successors(const Graph& graph, const Program& program, const std::vector<Stretch>& stretches, bool chains);
  Dependents dependents;
  // Of the host up to the node, or the first of its parts; empty where it is ahead always.
  std::vector<std::int64_t> issues;
  std::vector<bool> continues;  // computations whose chain goes on with the next node; empty: none does
  std::vector<bool> awaited;    // what the host stops at; empty where there is nothing
  std::vector<Reach> reaches;   // per stretch

 private:
  Reach reach_of(const Graph& graph, const Program& program, const Loop& loop) const;
  void find_chains(const Program& program, const std::vector<Stretch>& stretches);
};

// Whether what is known of nodes' successors is the same of both.
bool same_successors(const Graph& graph, const Program& a, const Program& b, bool chains);

}  // namespace armilla
