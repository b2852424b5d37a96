// What all parts of a run share, and how they tell each other that something is done.
#pragma once

#include <cstdint>

#include "event/event_queue.h"
#include "ir/graph.h"
#include "network/network.h"
#include "sim/engine/order.h"
#include "sim/fold/rank_classes.h"

namespace armilla {

struct RunContext {
  const Graph& graph;
  const RankClasses& classes;
  EventQueue& queue;
  Order& order;
  Network& network;
};

// A handler of the event queue and what to call it with.
struct Notice {
  std::uint32_t target = 0;
  std::uint64_t argument = 0;
};

}  // namespace armilla
