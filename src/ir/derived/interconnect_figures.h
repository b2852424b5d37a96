// What a graph of links can carry, and how far it is.
#pragma once

#include <cstdint>

#include "ir/interconnect.h"

namespace armilla {

struct InterconnectFigures {
  std::int64_t devices = 0, nics = 0, switches = 0, cables = 0;
  std::int32_t diameter = 0;      // most links on a shortest way between two devices
  bool diameter_is_exact = true;  // else of ways from some devices only: at least that
  // Most bandwidth that the first half of the devices, in rank order, can send to the rest with at once: the
  // least cut between them (Ford and Fulkerson 1956; Dinic 1970).
  Bandwidth bisection;
  // The same of the halves that are known to have the least: these, or those along the longest extent of the
  // graph. The least of all halves is hard to find.
  Bandwidth least_bisection;
  // Of the switches that have links away from the devices: the most bandwidth towards devices per bandwidth
  // away from them. 0: there are none.
  double oversubscription = 0;
};

// O(devices x cables) for the diameter, of 1024 devices where that is more than 10^9.
InterconnectFigures figures_of(const Interconnect& graph);

}  // namespace armilla
