// The chunk scheduler: which waiting chunks a rank works on next, by queue: each communicator has one for
// each dimension, so that chunks wait for those of their own communicator only, as NCCL's kernels do; what
// different communicators send shares the links. Passive: asked for what may start, told what finished; ties
// are broken in the comparator, so equal runs make equal choices.
//
// A started chunk is never interrupted. The runner starts chunks beyond the limit where holding them back
// could only delay or stop the run: one that has to receive before it sends, one whose messages arrive while
// it waits, and the oldest when nothing else moves. ASTRA-sim's queues are apart (sim/astra/astra_queues.h
// says why).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "event/state_digest.h"
#include "ir/collective.h"

namespace armilla {

struct WaitingChunk {
  std::uint32_t run = 0;      // the runner's name for the chunk
  std::uint32_t member = 0;   // who waits, within the run
  std::uint32_t phase = 0;    // so that an entry that was started otherwise is recognised as stale
  std::uint64_t issued = 0;   // how many collectives the rank had issued before this one
  std::int32_t priority = 0;  // of the collective
  std::uint32_t chunk = 0;    // within the collective
};

class ChunkScheduler {
 public:
  ChunkScheduler(std::size_t ranks, std::int64_t active_limit, ChunkOrder order);

  // The number of a rank's queue of this name, made when first asked for. All below name queues by number.
  std::uint32_t queue(std::int32_t rank, std::uint32_t name);
  // Queues the rank has used so far, by ascending name.
  std::size_t queues(std::int32_t rank) const {
    return ranks_[static_cast<std::size_t>(rank)].by_name.size();
  }
  std::uint32_t queue_at(std::int32_t rank, std::size_t place) const {
    return ranks_[static_cast<std::size_t>(rank)].by_name[place];
  }
  // Whether `next` takes one out of that queue, or of any of the rank's.
  bool has_next(std::int32_t rank, std::uint32_t queue) const { return has_next(at(rank, queue)); }
  bool has_next(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)].with_next > 0; }
  void add(std::int32_t rank, std::uint32_t queue, const WaitingChunk& chunk);
  // Takes the first waiting chunk out, if the queue has a slot for it. The caller starts it, or says `drop`
  // if it is stale.
  std::optional<WaitingChunk> next(std::int32_t rank, std::uint32_t queue);
  void drop(std::int32_t rank, std::uint32_t queue) { finished(rank, queue); }
  // A waiting chunk is started without having been asked for; its entry goes stale.
  void start_beyond_limit(std::int32_t rank, std::uint32_t queue) {
    change(rank, queue, [](Queue& here) { ++here.active; });
  }
  void finished(std::int32_t rank, std::uint32_t queue) {
    change(rank, queue, [](Queue& here) { --here.active; });
  }
  // Slots in use. Entries that are not stale are what waits: its owner knows.
  void add_state(StateDigest& state) const;

 private:
  struct Queue {
    std::uint32_t name = 0;
    std::vector<WaitingChunk> waiting;  // a binary heap
    std::int64_t active = 0;
  };
  struct RankQueues {
    std::vector<Queue> queues;           // by number
    std::vector<std::uint32_t> by_name;  // their numbers, by ascending name
    std::int32_t with_next = 0;          // queues that `next` takes one out of
  };
  bool has_next(const Queue& here) const { return !here.waiting.empty() && here.active < active_limit_; }
  template <class Change>
  void change(std::int32_t rank, std::uint32_t queue, const Change& change) {
    RankQueues& known = ranks_[static_cast<std::size_t>(rank)];
    Queue& here = known.queues[queue];
    const bool before = has_next(here);
    change(here);
    known.with_next += (has_next(here) ? 1 : 0) - (before ? 1 : 0);
  }
  const Queue& at(std::int32_t rank, std::uint32_t queue) const {
    return ranks_[static_cast<std::size_t>(rank)].queues[queue];
  }

  std::int64_t active_limit_;
  ChunkOrder order_;
  std::vector<RankQueues> ranks_;
};

}  // namespace armilla
