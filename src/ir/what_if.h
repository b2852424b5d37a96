// What-if: deviations of a job from the ideal machine, given in a study file's `what_if` section.
//
// Factors multiply times (compute) or bandwidths (links). Jitter draws one factor per rank and node, from a
// lognormal distribution whose mean is 1, by counter-based random numbers of (seed, rank, node): the same
// whatever the order of the simulation. Failures do not stop the simulated iteration; they enter the goodput
// (ir/derived/goodput.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/machine.h"

namespace armilla {

struct RankRange {
  std::int64_t first = 0, last = 0;  // both included
};

// "0-7" or "3": ranks whose computations take `time` times as long.
struct SlowRanks {
  RankRange ranks;
  double time = 1;
  std::string where = "what_if.ranks";  // where it was given
};

// Links that belong to `ranks` in a dimension: bandwidth times `bandwidth`, latency times `latency`. On a
// Switch, the links to and from the switch.
struct SlowLinks {
  std::uint32_t dimension = 0;
  RankRange ranks;
  double bandwidth = 1;
  double latency = 1;
  std::string where = "what_if.links";  // where it was given
};

struct Jitter {
  double deviation = 0;  // of the factor; 0: none
  std::uint64_t seed = 1;
};

// Durations in seconds (base/duration.h).
struct Failures {
  double mtbf_of_node = 0;  // mean time between failures of one node; 0: no failures
  std::int64_t ranks_per_node = 8;
  double checkpoint = 0;  // to write one, while training stands still
  double restart = 0;     // to notice, replace, reload
  double interval = 0;    // of training between checkpoints; 0: the optimum
  std::string interval_where = "what_if.failures.interval";  // where it was given
};

struct WhatIf {
  std::vector<SlowRanks> ranks;
  std::vector<SlowLinks> links;
  std::vector<DamagedLink> damage;  // of the machine's graph
  Jitter jitter;
  Failures failures;
  bool changes_simulation() const {
    return !ranks.empty() || !links.empty() || !damage.empty() || jitter.deviation > 0;
  }
};

}  // namespace armilla
