// A native run with what leaves work out and changes nothing: collectives whose outcome is known are looked
// up (sim/memo/memoised_collectives.h), and what repeats is counted instead of played (sim/fold/time_fold.h).
// The third, folding of ranks, is in what it is given (RankClasses).
#pragma once

#include <cstdint>

#include "sim/engine/native_run.h"
#include "sim/fold/time_fold.h"
#include "sim/fold/walked_periods.h"
#include "sim/memo/lone_plays.h"
#include "sim/memo/memoised_collectives.h"

namespace armilla {

struct ShortenedPlay : NativePlay {
  KnownPlays& known_plays;
};

class ShortenedRun final : public NativeRun {
 public:
  // `drifts`: also stages that drift apart are folded in time. Throws Error as NativeRun does.
  explicit ShortenedRun(const ShortenedPlay& play, bool drifts = true);

  // As NativeRun's, with what was left out.
  Result result() override;

 private:
  void issue(std::int32_t rank, std::uint32_t node, std::uint32_t call, std::uint64_t sequence) override {
    memoised_.issue(rank, node, call, sequence);
  }
  void take_turn_of_pass(std::int32_t rank) override { memoised_.take_turn(rank); }
  void has_started() override { memoised_.round_over(); }
  void is_unstuck() override {
    memoised_.round_over();
    time_fold_.round_over();
  }
  Digest describe(std::uint32_t target, std::uint64_t argument) const override {
    return time_fold_.describe(target, argument);
  }

  MemoisedCollectives memoised_;
  WalkedPeriods periods_;
  TimeFold time_fold_;
};

// What is played, `told` of it. Where stages that drift apart prove not to be foldable in time
// (sim/fold/drift_fold.h), it is played anew without that.
Result played(const ShortenedPlay& play, Result (ShortenedRun::*told)());

}  // namespace armilla
