// What the rank walker needs of whoever executes collectives, and what that tells the walker. Two classes do:
// CollectiveRunner by schedules (native), AstraEngine by ASTRA-sim's streams. MemoisedCollectives stands in
// front of the first.
#pragma once

#include <cstdint>

#include "ir/result.h"

namespace armilla {

class CollectiveExecutor {
 public:
  virtual ~CollectiveExecutor() = default;
  // `rank` reaches a collective node of its program; `sequence`: how many it had reached before.
  virtual void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence) = 0;
  // How long the call lasts beyond the end of its schedule, seen from `rank`.
  virtual Time beyond(std::int32_t rank, std::uint32_t call) {
    static_cast<void>(rank), static_cast<void>(call);
    return Time(0);
  }
  // For a rank that is stuck in the collective `node`: a member that has not issued it, or -1 when all have.
  virtual std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const = 0;
};

class CollectiveClient {
 public:
  virtual ~CollectiveClient() = default;
  virtual void collective_started(std::int32_t rank, std::uint32_t node) = 0;
  virtual void collective_finished(std::int32_t rank, std::uint32_t node) = 0;
  // A phase of a chunk is over, now or, where all of the collective is told at once, before.
  // Flat algorithms have the index after the last dimension.
  virtual void chunk_finished(std::int32_t rank, const ChunkInterval& phase) = 0;
  // Whether anybody wants to know of the rank's.
  virtual bool keeps_chunks(std::int32_t rank) const = 0;
};

// From where a state is seen that is to be compared with a later one: each rank from the period
// that it is in.
class Viewpoint {
 public:
  virtual ~Viewpoint() = default;
  virtual std::int64_t place(std::int32_t rank, std::uint32_t node) const = 0;
  // How many collectives the rank has issued since the one of this number.
  virtual std::int64_t age(std::int32_t rank, std::uint64_t sequence) const = 0;
};

}  // namespace armilla
