// How long the computations of every rank take: the cost model of its device, times what a study says of slow
// ranks and jitter (ir/what_if.h), rounded once to picoseconds.
//
// Jitter: factor = exp(s z - s^2 / 2) with s^2 = ln(1 + deviation^2) and z standard normal: lognormal with
// mean 1. z comes from two uniform numbers (Box and Muller 1958) that are a hash of (seed, rank, node), so it
// does not depend on the order of the simulation. Only nodes of the device lane are scaled.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/what_if.h"
#include "sim/plan/rank_classes.h"

namespace armilla {

// Of every rank; the product where ranges overlap. Empty: all 1.
std::vector<double> time_factors(const WhatIf& what_if, std::int64_t ranks);

class ComputeTimes {
 public:
  // Of a graph whose computations are all of a fixed length, scaled by nothing: ASTRA-sim's.
  ComputeTimes() : is_plain_(true) {}
  // `costs`: of every device number.
  ComputeTimes(const Graph& graph, const Machine& machine, const WhatIf& what_if,
               std::span<const CostModel* const> costs, const RankClasses& classes);

  // Of simulated ranks.
  Time of_work(std::int32_t rank, std::uint32_t node, std::uint64_t work) const {
    return of_delay(rank, node, work_times_[ranks_[static_cast<std::size_t>(rank)].device][work]);
  }
  // That blocks of threads of a simulated rank's device are dealt to; 0: not known.
  std::int64_t processors(std::int32_t rank) const {
    return ranks_.empty() ? 0 : ranks_[static_cast<std::size_t>(rank)].processors;
  }
  Time of_delay(std::int32_t rank, std::uint32_t node, Time time) const {
    return is_plain_ ? time : scaled(rank, node, time);
  }

 private:
  struct Rank {
    std::uint32_t device = 0;
    std::int32_t real = 0;
    double factor = 1;
    std::int64_t processors = 0;
  };
  Time scaled(std::int32_t rank, std::uint32_t node, Time time) const;

  std::vector<std::vector<Time>> work_times_;  // [device][work]
  std::vector<Rank> ranks_;
  Jitter jitter_;
  bool is_plain_;
};

}  // namespace armilla
