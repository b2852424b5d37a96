// In which queue of its rank a stream waits, and when its turn comes, as in ASTRA-sim. Per rank and queue
// a list of streams in order of priority; the first few run. Passive: asked for what may begin, told what
// has finished.
//
// Sources: astra-sim 2.x Sys.cc (insert_stream, get_priority), QueueLevels.cc, IntraDimensionScheduling; 1.0
// likewise. Native chunks have a scheduler of their own (sim/engine/chunk_scheduler.h): there a comparator
// orders the queue, here a place is found by a walk from the front whose stopping rule is no order
// (smallest-first passes whatever is in its last phase but one, "RG" looks at pairs), so that one heap could
// not be exact.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/slots.h"
#include "ir/formats/system_layer.h"
#include "ir/graph.h"
#include "sim/astra/astra_streams.h"

namespace armilla {

class AstraQueues {
 public:
  // `levels`: logical dimensions. `streams` by their ids; it may grow.
  AstraQueues(const SystemLayer& system, std::size_t ranks, std::size_t levels,
              const Blocks<AstraStream>& streams);

  // Of the rank's next collective.
  std::int32_t priority_of(std::int32_t rank, const CollectiveCall& call);
  // A queue of the phase's level, and whether its messages go anticlockwise.
  std::pair<std::uint32_t, bool> allocate(std::int32_t rank, const AstraPhase& phase);

  // A stream waits in its queue for its current phase.
  void add(std::uint32_t id);
  // One that may begin; the caller begins it.
  std::optional<std::uint32_t> next(std::int32_t rank, std::uint32_t queue);
  // One that ran leaves the list; its place is free once it has finished.
  void take_out(std::int32_t rank, std::uint32_t queue, std::uint32_t id);
  void finished(std::int32_t rank, std::uint32_t queue) { --at(rank, queue).running; }

 private:
  struct Queue {
    std::vector<std::uint32_t> streams;  // the running ones first
    std::int64_t running = 0;
  };
  struct Allocator {  // of a level's queues, as ASTRA-sim's QueueLevelHandler
    std::int32_t any = 0, first = 0, second = 0;
  };
  struct Rank {
    std::vector<Queue> queues;
    std::vector<Allocator> allocators;  // per level
    std::int32_t priority = 0;
  };

  Queue& at(std::int32_t rank, std::uint32_t queue) {
    return ranks_[static_cast<std::size_t>(rank)].queues[queue];
  }
  bool goes_before(const AstraStream& waiting, const AstraStream& stream) const;

  const SystemLayer& system_;
  const Blocks<AstraStream>& streams_;
  std::int64_t running_limit_;
  std::vector<Rank> ranks_;
};

}  // namespace armilla
