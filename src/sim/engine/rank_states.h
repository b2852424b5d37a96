// What the ranks of a run are at in their programs: which nodes are waited for, ready, under way or done. The
// walker (sim/engine/rank_walker.h) moves them on; who looks for repetition sees them from the periods that
// they are in, and takes periods out (sim/fold/walked_periods.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "sim/engine/successors.h"
#include "sim/plan/rank_classes.h"

namespace armilla {

struct RankStates {
  static constexpr std::size_t kLanes = 4;
  static constexpr std::uint32_t kDone = UINT32_MAX;

  // Of a rank's nodes in a stretch.
  struct Waiting {
    std::vector<std::uint32_t> left;  // per node as far as needed: dependences that are not done, or kDone
    std::uint32_t reached = 0;        // nothing has happened to (local) nodes from here on
  };
  struct Rank {
    std::vector<Waiting> waiting;  // per stretch
    std::uint32_t first_left = 0;  // all nodes before it are done
    std::uint32_t stretch = 0;     // that it is in
    std::uint32_t behind = 0;      // of so many loops a node is done that a node behind waits for
    std::array<std::vector<std::uint32_t>, kLanes> ready;  // per lane, a heap with the smallest id on top
    std::uint8_t lanes_ready = 0;                          // a bit per lane with ready nodes,
    std::uint8_t lanes_busy = 0;                           // per lane that is occupied
    std::uint32_t nodes_left = 0;
    std::uint32_t program = 0;
    std::uint32_t successors = 0;     // of its program's nodes
    std::uint64_t collectives = 0;    // issued so far
    std::vector<std::uint32_t> held;  // nodes that wait for nothing but the host
    Time last_held{-1};               // when the latest of them began to
    Time host_shift;  // how much later the host is, seen from what was left out, and for what it waited
    std::uint32_t awaited = kDone;              // the next node that the host stops at
    std::uint32_t passed = 0;                   // nodes before it that it stopped at last
    std::vector<std::uint32_t> beyond;          // nodes behind `awaited` that wait for nothing but the host
    std::vector<std::int32_t> held_processors;  // by calls under way, in ascending order
    std::uint32_t chain = kDone;                // the first computation of the chain under way
    std::uint32_t computing = kDone;            // the node that computes, where calls may hold processors,
    Time work_left, paced_since, compute_end;   // how long it had to compute then, alone; and when it ends
    std::uint32_t nodes_left_out = 0;
    Time left_out;                 // how much later its ends are in a whole run
    std::size_t next_watched = 0;  // of its program's watched ends, the first that was not looked at
  };

  // `chains`: of computations are one event.
  RankStates(const Graph& graph, const RankClasses& classes, bool chains);
  // What the nodes of a rank wait for before anything has happened.
  void begin(Rank& rank) const;

  const Program& program_of(std::int32_t rank) const {
    return graph.programs[ranks[static_cast<std::size_t>(rank)].program];
  }
  const std::vector<Stretch>& stretches_of(const Rank& rank) const { return stretches[rank.program]; }
  // Where a node of the whole program is.
  const Stretch& stretch_at(const Rank& rank, std::uint32_t node) const {
    const Stretch* stretch = stretches_of(rank).data();
    while (node >= stretch->behind) ++stretch;
    return *stretch;
  }
  const Stretch& stretch_of(const Rank& rank) const { return stretches_of(rank)[rank.stretch]; }
  const Successors& successors_of(const Rank& rank) const { return successors[rank.successors]; }
  std::uint32_t written_node(const Rank& rank, std::uint32_t node) const {
    const Stretch& stretch = stretch_at(rank, node);
    return stretch.written(node - stretch.skipped);
  }
  std::uint32_t written_node(std::int32_t rank, std::uint32_t node) const {
    return written_node(ranks[static_cast<std::size_t>(rank)], node);
  }
  // All nodes, but for what was left out.
  std::uint32_t length_of(const Rank& rank) const {
    const Stretch& last = stretches_of(rank).back();
    return last.skipped + last.loop.end;
  }
  // That the rank is in, of its stretch; -1: of none.
  std::int64_t period_of(const Rank& rank) const {
    const Stretch& stretch = stretch_of(rank);
    const Loop& loop = stretch.loop;
    const std::uint32_t local = rank.first_left - stretch.skipped;
    return local < loop.first || loop.period == 0 ? -1 : (local - loop.first) / loop.period;
  }
  // From where a state is seen that is to be compared with a later one, each rank from the period that it is
  // in: where the node is, and how many collectives the rank has issued since the one of this number.
  std::int64_t place(std::int32_t number, std::uint32_t node) const {
    const Rank& rank = ranks[static_cast<std::size_t>(number)];
    return std::int64_t{node} - period_of(rank) * stretch_of(rank).loop.period;
  }
  std::int64_t age(std::int32_t rank, std::uint64_t sequence) const {
    return static_cast<std::int64_t>(ranks[static_cast<std::size_t>(rank)].collectives - sequence);
  }

  // What the node waits for; to change it, of a node in the stretch.
  std::uint32_t waiting(const Rank& rank, std::uint32_t node) const;
  std::uint32_t& waiting_at(Rank& rank, const Stretch& stretch, std::uint32_t node) const {
    Waiting& waiting = rank.waiting[stretch.number];
    const std::uint32_t local = node - stretch.skipped;
    if (local - stretch.start >= waiting.left.size()) extend(rank, stretch, waiting, local);
    waiting.reached = std::max(waiting.reached, local + 1);
    return waiting.left[local - stretch.start];
  }
  // When the host has issued a node that it issues.
  Time issued_at(const Rank& rank, std::uint32_t node) const;
  // From this node on, the first call that the host stops at.
  std::uint32_t next_awaited(const Rank& rank, std::uint32_t from) const;

  const Graph& graph;
  std::vector<Successors> successors;           // programs in a row with equal dependences have the same
  std::vector<std::vector<Stretch>> stretches;  // per program
  std::vector<Rank> ranks;                      // simulated
  bool has_loops = false;
  bool entered_period = false;  // the first rank has, since somebody looked

 private:
  void extend(const Rank& rank, const Stretch& stretch, Waiting& waiting, std::uint32_t local) const;
};

}  // namespace armilla
