// Ranks that must behave identically are one class, and one of them is simulated for all.
//
// A class of ranks is exact when the colouring of sim/fold/rank_colours.h is: then the simulated ranks, their
// messages and the links of the lowest rank of every class form a quotient of the whole system that every
// rank's surroundings look like (a covering, as in Boldi and Vigna, "Fibrations of graphs", 2002), and a
// deterministic simulation whose ties do not depend on names runs the same on both.
//
// Simulated ranks are numbered from 0 in the order of their lowest real ranks. Members of a group meet in
// collectives; groups of one family whose members are of the same classes are one group of the quotient.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/study.h"
#include "network/message_links.h"

namespace armilla {

struct FoldedFamily {
  // One for all groups that look alike, a group class: simulated ranks.
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> group_of;   // per simulated rank, -1: in none
  std::vector<std::int32_t> member_of;  // per simulated rank, its place among the group's members
};

struct RankClasses {
  std::vector<std::int32_t> real;          // per simulated rank, the lowest rank of its class
  std::vector<std::int64_t> sizes;         // per simulated rank
  std::vector<std::int32_t> simulated_of;  // per rank
  std::vector<std::int32_t> stands_for;    // per rank, the lowest of its class; empty: each is its own
  std::vector<FoldedFamily> families;      // only what collectives need
  LinkClasses links;                       // of networks that have MessageLinks
  std::string_view why_whole;              // (nearly) every rank is simulated, where the network is to blame

  std::int32_t simulated() const { return static_cast<std::int32_t>(real.size()); }
  std::int32_t simulated_rank(std::int32_t rank) const {
    return simulated_of[static_cast<std::size_t>(rank)];
  }
  std::int32_t real_rank(std::int32_t simulated_rank) const {
    return real[static_cast<std::size_t>(simulated_rank)];
  }
};

// Every rank for itself.
RankClasses unfolded(const Graph& graph);
// The same, with all groups of a family in one, one after the other.
RankClasses with_joined_groups(const Graph& graph);
// Rank 0 for all.
RankClasses one_for_all(const Graph& graph);
// One group class of a family alone: its members, numbered anew, stand for whom they stood for. All other
// ranks, which do nothing, are said to be the first's.
RankClasses only_group(const RankClasses& classes, std::uint32_t family, std::uint32_t group_class);
// Ranks of equal colour. O(ranks x families).
RankClasses classes_of(const Graph& graph, std::span<const std::uint32_t> colours);

// What folding over dimensions relies on, and memoising (sim/memo/lone_groups.h): messages meet on links
// only, and ranks that do the same take the same time, which they never do with jitter.
bool may_fold(const Study& study);

}  // namespace armilla
