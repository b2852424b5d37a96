// The periods that ranks walk through in the loops of their programs (ir/graph.h): which one each is in, what
// of it has a state that may return, and how periods are left out, for who looks for repetition
// (sim/fold/time_fold.h, sim/fold/drift_fold.h).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "event/event_queue.h"
#include "event/state_digest.h"
#include "sim/engine/rank_states.h"
#include "sim/engine/recorder.h"

namespace armilla {

class WalkedPeriods {
 public:
  WalkedPeriods(RankStates& states, const Recorder& recorder, const EventQueue& queue)
      : states_(states), recorder_(recorder), queue_(queue) {}

  bool has_loops() const { return states_.has_loops; }
  // Whether the first rank has entered another period since this was last asked; and which one it is in, of
  // which loop.
  bool has_entered_period() { return std::exchange(states_.entered_period, false); }
  std::int64_t period() const { return states_.period_of(states_.ranks.front()); }
  std::size_t loop() const { return states_.ranks.front().stretch; }
  bool is_last(std::size_t loop) const {
    return loop + 2 >= states_.stretches_of(states_.ranks.front()).size();
  }
  std::int64_t period(std::int32_t rank) const {
    return states_.period_of(states_.ranks[static_cast<std::size_t>(rank)]);
  }
  // Whether a rank, or every rank that of the first, is inside of a loop: nothing in front of it is left,
  // nothing behind it has begun.
  bool is_inside(std::int32_t rank, std::size_t loop) const;
  bool is_inside() const;
  // Periods that no rank has come near, and what follows would not miss.
  std::int64_t spare_periods() const;
  // Whether the hosts of all ranks did in these periods what they will do in those that follow, since a
  // moment from which `passed` has passed: either they keep pace with their ranks exactly, or they are faster
  // and nobody has waited for them.
  bool hosts_repeat(Time since, Time passed, std::int64_t periods) const;
  bool host_repeats(std::int32_t rank, Time since, Time passed, std::int64_t periods) const;
  // These periods, which take each rank so long.
  void leave_out(std::int64_t periods, std::span<const Time> skipped);
  void leave_out(std::int64_t periods, Time skipped) {
    leave_out(periods, std::vector<Time>(states_.ranks.size(), skipped));
  }
  // From now on the rank is so much later than the clock; and whether it has nothing to do.
  void pause(std::int32_t rank, Time pause);
  bool is_idle(std::int32_t rank) const;
  // What ranks are at, each seen from the period that it is in; and what one is at.
  void add_state(StateDigest& state) const;
  void add_state(StateDigest& state, std::int32_t rank, std::int64_t from_period) const;

 private:
  RankStates& states_;
  const Recorder& recorder_;
  const EventQueue& queue_;
};

}  // namespace armilla
