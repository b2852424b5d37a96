// One iteration of the steady state, cut out of several that ran in a row without a flush between them
// (pipedream-2bw).
//
// Its time is what the last iteration adds, once that is what each of the later half adds, and once every
// rank computes as much in the window as in one iteration: ranks that nobody waits for may get ahead for a
// while. So many iterations are played. Where that never comes, as with jitter, it is the mean of the later
// half. The iteration is a window of that length in the middle of the run, far from warm-up and drain: busy
// times of ranks are those in it (SimulationOptions::window), intervals are cut at its bounds, and a
// collective belongs to it when it ends in it; it may have begun before (a negative time). Bytes and busy
// times of links are equal shares of the run's. Cost: up to five times that of the longest run; O(intervals +
// links) for the cut.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/result.h"

namespace armilla {

inline constexpr std::int64_t kFewestIterations = 4, kMostIterations = 16;

struct SteadyState {
  std::int64_t iterations = kFewestIterations;
  Time end;     // of all of them
  Time period;  // of one
  bool settled = true;
  TimeWindow window() const {
    const Time from = Time((end - period).value / 2);
    return {from, from + period};
  }
};
// `end_of` is the time that so many iterations in a row take; `is_even` tells whether all ranks compute as
// much in the window as in every iteration, on average.
SteadyState find_steady_state(const std::function<Time(std::int64_t)>& end_of,
                              const std::function<bool(const SteadyState&)>& is_even);
// Whether every rank computes as much in a window as in one of so many iterations, on average.
bool is_equal_share(const Result& in_window, const Result& all, std::int64_t iterations);

// Leaves of `result`, which was played with that window, what belongs to it. Messages and events stay those
// simulated.
void keep_window(Result& result, const TimeWindow& whole, std::int64_t iterations);

}  // namespace armilla
