// What all parts of a run share, and what they tell each other.
#pragma once

#include <cstdint>
#include <vector>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "ir/result.h"
#include "network/network.h"
#include "sim/engine/order.h"
#include "sim/plan/rank_classes.h"

namespace armilla {

struct Channel;

// Who looks on while simulated ranks issue collectives and send what is matched (sim/engine/messenger.h).
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void issues(std::int32_t /*rank*/, std::uint32_t /*family*/) {}
  // A collective node of its program is over, as far as its messages go.
  virtual void ends(std::int32_t /*rank*/, std::uint32_t /*node*/) {}
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
  const Peers& peers;
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

// What the rank walker needs of whoever executes collectives: NativeRun, which hands them to
// CollectiveRunner, or AstraEngine. Both tell the walker themselves what comes of it.
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

}  // namespace armilla
