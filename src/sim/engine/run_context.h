// What all parts of a run share, and what they tell each other.
#pragma once

#include <cstdint>
#include <vector>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/result.h"
#include "network/network.h"
#include "sim/engine/order.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

struct Channel;

// Who looks on while simulated ranks issue collectives and send what is matched (sim/engine/messenger.h).
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void issues(std::int32_t /*rank*/, std::uint32_t /*family*/) {}
  // A message leaves, and is there.
  virtual void leaves(const Channel&) {}
  virtual void arrives(const Channel&) {}
  // A receive has to wait for its message, and one that waits gets it.
  virtual void waits(const Channel&) {}
  virtual void meets(const Channel&) {}
};

struct RunContext {
  const Graph& graph;
  const RankClasses& classes;
  EventQueue& queue;
  Order& order;
  Network& network;
  std::vector<RunObserver*>& observers;  // told in the order in which they were added; not owned
};

// A handler of the event queue and what to call it with.
struct Notice {
  std::uint32_t target = 0;
  std::uint64_t argument = 0;
};

// What the rank walker needs of whoever executes collectives: CollectiveRunner by schedules (native),
// AstraEngine by ASTRA-sim's streams. MemoisedCollectives stands in front of the first.
class CollectiveExecutor {
 public:
  virtual ~CollectiveExecutor() = default;
  // `rank` reaches a collective node of its program; `sequence`: how many it had reached before.
  virtual void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence) = 0;
  // How long the call lasts beyond the end of its schedule, seen from `rank`.
  virtual Time beyond(std::int32_t /*rank*/, std::uint32_t /*call*/) { return Time(0); }
  // For a rank that is stuck in the collective `node`: a member that has not issued it, or -1 when all have.
  virtual std::int32_t missing_member(std::int32_t rank, std::uint32_t node) const = 0;
};

// What that tells the walker, and asks it.
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
  // From where a state is seen that is to be compared with a later one, each rank from the period that it is
  // in: where the node is, and how many collectives the rank has issued since the one of this number.
  virtual std::int64_t place(std::int32_t rank, std::uint32_t node) const = 0;
  virtual std::int64_t age(std::int32_t rank, std::uint64_t sequence) const = 0;
};

}  // namespace armilla
