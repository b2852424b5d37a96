// Into how many chunks a collective is cut where the user does not say: enough for its phases on different
// dimensions to overlap, few enough for the latencies of their steps not to add up.
//
// With C the call's bytes, N chunks and a of them at a time on a dimension, a phase p costs a chunk about
// l_p + b_p / N: its steps' latencies and, by the longest chain of messages, their bytes over the dimension's
// bandwidth; its busiest link is busy for w_p / N. The busiest dimension d bounds the call from below, its
// own chunks after those of the phases before it and before those of the phases after it:
//
//   T(N) = max over d of  [ smooth max(W_d, N / a (L_d + B_d / N)) + (B_d - W_d) / N
//                      + sum of (l_p + (1 + (a - 1) / 4) w_p / N) elsewhere ]
//
// (where phases use links the other way than others of theirs, W is that of the busier direction, and what it
// saves of a chunk's bytes waits for the a in flight; where chunks take the dimensions in different orders,
// W, L and B are means over the chunks, and the last sum is that of the order that has least of it; of an
// all-reduce up and down trees, B within the smooth maximum is 1 + (a - 1) / 4 times as long, since members
// find their links taken by other chunks: 4 GiB among 17 members of a Switch take 1.25 W)
//
// with a no more than N, W, L and B the sums over the phases on d, and `elsewhere` the phases before the
// first and after the last one on d; over all those of other dimensions where N is no more than a, for then
// all chunks are elsewhere at once. Where members begin with what they receive, as all but the root of a
// broadcast, N / a multiplies what the others take, and the rest is added once. The smooth maximum is
// that of the norm of order 8: where both are alike, chunks in flight leave gaps. The quarter, by which a
// chunk is delayed by those that travel with it, and the order are fitted.
//
// The count is the smallest power of two from 4 to 256 that comes within 2 % of the least T: within 1 % it
// would often be twice as many, and so the messages to play, for a third of a percent of the time. Where
// chunks take several orders, powers of two times their number are candidates, too, and the estimate is less
// sure: there it must be within 1 %. Simulated with each of the counts, 18 sizes from 64 KiB to 8 GiB, on
// machines as they are shipped:
// - 1,800 calls on 2, 3, 4, 8 and 16 nodes of dgx-a100, dgx-h100, dgx-b200, mi300x and dgx-1 (all-reduce,
//   all-gather, reduce-scatter, all-to-all) take 1.3 % longer than with the best count on average, 22 of them
//   more than 8 %, at worst 27 % (all-reduces of 8 MiB on 16 nodes of mi300x; 18 % on three of dgx-h100,
//   whose rail is nearly as busy as its NVLink, so that the quarter is too little);
// - 450 broadcasts on the same take 5.3 % longer, 65 of them more than 8 %, at worst 2.4 times as long
//   (128 MiB on 8 nodes of dgx-h100, where the algorithm changes with the chunks);
// - 504 calls on seven tori of TPUs (v4, v5e, v5p; 16 to 256 chips) take 1.2 % longer, 28 of them more than
//   8 %, at worst 22 % (all-reduce of 8 MiB among 256 of v4).
// An estimate: only the choice rests on it, never a time that is reported. Not modelled: other collectives on
// the same links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/schedule.h"
#include "ir/collective.h"
#include "ir/machine.h"
#include "sim/collective_plan.h"

namespace armilla {

// A phase of the whole call in one piece, in seconds.
struct PhaseLoad {
  std::uint32_t dimension = 0;
  double latency = 0;  // l: of the longest chain of messages
  double chain = 0;    // b: their bytes over the bandwidth
  double busy = 0;     // w: of the busiest link
  // What of `busy` a member's link out, or in, is free: what comes before or after may use it the other way.
  double free_out = 0, free_in = 0;
  bool up_and_down =
      false;  // trees: members send again after a while, when other chunks may have their links
  // Of latency and chain, what goes on when the members that send first have done all: those who only pass on
  // what comes hold no slot (sim/engine/chunk_scheduler.h), so that the next chunks have begun.
  double latency_behind = 0, chain_behind = 0;
  bool operator==(const PhaseLoad&) const = default;
};

// The phases of a chunk, in their order.
using ChunkLoads = std::vector<PhaseLoad>;

// The dimension of a phase that has one, or goes over a tree.
std::uint32_t crossed_by(const PlannedPhase& phase, const Machine& machine);

// O(steps and messages of one member) for symmetric schedules, of all members for others.
PhaseLoad phase_load(const Schedule& schedule, std::uint32_t number, const Dimension& dimension);
// Of a plan of all bytes of a call.
ChunkLoads loads_of(const CollectivePlan& plan, const Machine& machine);

struct ChunkEstimate {
  double total = 0;
  double latency = 0;  // of it, the latencies of steps, where bytes hide none of them
  CollectiveLimit delay = CollectiveLimit::latency;  // what costs most beside the bytes of the busiest link
};
// `ways`: the loads of the call for each of the orders that its chunks may take the dimensions in,
// at least one.
ChunkEstimate estimate_chunks(std::span<const ChunkLoads> ways, std::int64_t chunks, std::int64_t active);

// Which way each of `chunks` takes: the one that leaves the busiest dimension least to do after it, of equal
// ones the first (Themis's greedy choice, Rashidi et al., ISCA 2022, of loads known beforehand).
std::vector<std::uint32_t> share_out(std::span<const ChunkLoads> ways, std::int64_t chunks);

inline constexpr std::int64_t kFewestChunks = 4;
std::int64_t choose_chunks(std::span<const ChunkLoads> ways, std::int64_t active);

}  // namespace armilla
