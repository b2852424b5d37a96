// Folding in time: a run whose whole state has been there before goes on as it did then. What lies between is
// counted as often as it still fits in, and left out.
//
// Programs with loops (ir/graph.h) are looked at whenever the first rank enters another period of its own, at
// the end of the round. The state is all that decides what happens next: of every rank which nodes have been
// waited for, are ready, under way or done; every event; messages and who waits for them; chunks, slots and
// collectives under way; when every link is free. It is seen from now, and of each rank from the period that
// it is in, so that two states are equal (as digests of 128 bits, event/state_digest.h) exactly when ranks,
// links and queues stand the same to each other. If all of a loop is still ahead but its periods in use, the
// rest of the program is the same, too, but for its length; then what followed the earlier moment follows
// this one:
//   run(n + k q periods) = run(n periods) with what lies between the moments k more times in its place,
// q being the periods between them. So the longest k q that no rank has come near is taken out of every loop,
// and sums, counters and ends grow by k times what they grew between the moments. The run goes on with what
// is left. Of programs with several loops (phases of a schedule, iterations without a flush) that is done in
// each of them, while all ranks are in it. Where no state has returned for long, stages may drift apart: they
// are looked at one by one, too (sim/fold/drift_fold.h).
//
// A window (SimulationOptions) cuts what is recorded, so that what is left out lies on one side of each of
// its bounds: at a bound the run is played on until nothing is under way that was then, and looked at again.
//
// Exact, as folding ranks is: a property test plays random jobs both ways. It needs that nothing depends on
// how often something has happened: no jitter, no custom collectives, no shared memory, and a network that
// knows its state (network/network.h). Otherwise, and where no state returns, everything is played. Cost: per
// period O(ranks x nodes under way + events + links).
#pragma once

#include <cstdint>
#include <map>

#include "event/event_queue.h"
#include "event/state_digest.h"
#include "network/network.h"
#include "sim/engine/recorder.h"
#include "sim/fold/drift_fold.h"
#include "sim/fold/run_parts.h"
#include "sim/memo/memoised_collectives.h"
#include "sim/simulate.h"

namespace armilla {

struct NativePlay;

class TimeFold final : public RoundObserver {
 public:
  // `drifts`: also folds stages that drift apart, one by one (sim/fold/drift_fold.h).
  TimeFold(const NativePlay& play, bool drifts, const RunContext& context, const RunParts& parts);
  TimeFold(const TimeFold&) = delete;
  TimeFold& operator=(const TimeFold&) = delete;

  bool is_looking() const { return is_looking_; }
  void round_over() override {
    // What happens then happened before, to collectives alone.
    if (parts_.memoised.is_catching_up()) return;
    if (drift_.is_looking() && drift_.round_over()) {
      moments_.clear();
      is_over_ = true;
    }
    if (is_looking_ && parts_.periods.has_entered_period()) look();
  }
  // What an event means, for digests: seen from now.
  Digest describe(std::uint32_t target, std::uint64_t argument) const;
  // That were left out.
  std::int64_t events() const { return events_; }

 private:
  // A moment of the run, and its sums so far.
  struct Moment {
    Time at;
    std::int64_t period = 0, events = 0;
    Recorder::Sums ranks;
    NetworkSums links;
    MemoisedCollectives::Sums performed;
  };
  void look();
  bool knows(std::uint32_t target) const;
  void leave_out(const Moment& from, const Moment& until, std::int64_t times);

  // Of the window, that are past.
  std::size_t bounds_passed() const;
  // Whether all that is under way began behind them.
  bool is_behind_bounds() const;
  // How often so much time may be left out before the next bound.
  std::int64_t times_before_bound(Time period) const;

  RunParts parts_;
  DriftFold drift_;
  TimeWindow window_;
  bool is_looking_;
  std::size_t loop_ = 0;    // that is looked at
  bool is_over_ = false;    // nothing more is left out of it
  std::size_t bounds_ = 0;  // that were past at the last look
  std::map<Digest, Moment> moments_;
  Time left_out_;
  std::int64_t events_ = 0;
};

}  // namespace armilla
