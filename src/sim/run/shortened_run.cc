#include "sim/run/shortened_run.h"

namespace armilla {

ShortenedRun::ShortenedRun(const ShortenedPlay& play, bool drifts)
    : NativeRun(play),
      memoised_(play, play.known_plays, context_, groups_, runner_, walker_),
      periods_(walker_.states(), recorder_, queue_),
      time_fold_(play, drifts, context_,
                 {queue_, *network_, walker_, periods_, recorder_, messenger_, runner_, memoised_}) {
  // Behind the run itself: they look at what turns have done.
  if (memoised_.may_perform()) queue_.add_observer(memoised_);
  if (time_fold_.is_looking()) queue_.add_observer(time_fold_);
}

Result ShortenedRun::result() {
  memoised_.count_messages();
  Result result = NativeRun::result();
  result.events += time_fold_.events();
  return result;
}

Result played(const ShortenedPlay& play, Result (ShortenedRun::*told)()) {
  const auto told_by = [&](ShortenedRun&& run) {
    run.play();
    return (run.*told)();
  };
  try {
    return told_by(ShortenedRun(play));
  } catch (const ClocksDisagree&) {
    return told_by(ShortenedRun(play, false));
  }
}

}  // namespace armilla
