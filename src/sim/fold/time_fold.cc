#include "sim/fold/time_fold.h"

#include "sim/engine/native_run.h"

namespace armilla {
namespace {

// What has not repeated for so long will not soon.
constexpr std::size_t kMostMoments = 4096;
// Then stages may drift apart.
constexpr std::size_t kManyMoments = 8;

bool may_repeat(const NativePlay& play) {
  return play.options.fold_time && play.graph.custom.empty() &&
         play.options.remote_memory.kind == RemoteMemoryKind::none &&
         !(play.study.what_if.jitter.deviation > 0);
}

}  // namespace

TimeFold::TimeFold(const NativePlay& play, bool drifts, const RunContext& context, const RunParts& parts)
    : parts_(parts),
      drift_(play, drifts, context, parts_),
      window_(play.options.window),
      is_looking_(parts.periods.has_loops() && may_repeat(play)) {}

// The network answers for its own events.
bool TimeFold::knows(std::uint32_t target) const {
  return target == parts_.walker.target() || target == parts_.messages.target() ||
         target == parts_.runner.target() || target == parts_.memoised.target();
}

Digest TimeFold::describe(std::uint32_t target, std::uint64_t argument) const {
  Digest digest;
  if (target == parts_.walker.target()) {
    digest = parts_.walker.describe(argument);
  } else if (target == parts_.messages.target()) {
    digest = parts_.messages.describe(
        argument, [&](const Notice& notice) { return describe(notice.target, notice.argument); });
  } else if (target == parts_.runner.target()) {
    digest = parts_.runner.describe(argument);
  } else if (target == parts_.memoised.target()) {
    digest = parts_.memoised.describe(argument);
  }
  return digest_of(target, digest.low, digest.high);
}

void TimeFold::look() {
  if (drift_.clocks_differ()) {
    moments_.clear();
    return;
  }
  if (const std::size_t loop = parts_.periods.loop(); loop != loop_) {
    loop_ = loop;
    is_over_ = false;
    moments_.clear();
    drift_.end();
  }
  if (is_over_ || !parts_.periods.is_inside() || parts_.periods.spare_periods() < 1) return;
  if (const std::size_t bounds = bounds_passed(); bounds != bounds_) {
    bounds_ = bounds;
    moments_.clear();
  }
  if (bounds_ > 0 && !is_behind_bounds()) return;
  const Time now = parts_.queue.now();
  StateDigest state;
  is_looking_ = parts_.network.add_state(state);
  is_over_ = moments_.size() >= kMostMoments;
  if (!is_looking_ || is_over_) return;
  parts_.periods.add_state(state);
  parts_.messages.add_state(state,
                            [&](const Notice& notice) { return describe(notice.target, notice.argument); });
  parts_.runner.add_state(state);
  parts_.memoised.add_state(state);
  parts_.queue.for_each_pending([&](const Event& event) {
    if (!knows(event.target)) return;
    const Digest what = describe(event.target, event.argument);
    state.add('z', event.time.value - now.value, what.low, what.high);
  });
  Moment moment{now,
                parts_.periods.period(),
                parts_.queue.handled(),
                parts_.recorder.sums(now),
                parts_.network.sums(),
                parts_.memoised.sums()};
  const auto [before, fresh] = moments_.try_emplace(state.value());
  if (!fresh) {
    const Moment& then = before->second;
    const std::int64_t periods = moment.period - then.period;
    const std::int64_t times =
        std::min(parts_.periods.spare_periods() / periods, times_before_bound(now - then.at));
    if (times > 0 && parts_.periods.hosts_repeat(then.at, now - then.at, periods)) {
      leave_out(then, moment, times);
      return;
    }
  }
  before->second = std::move(moment);
  if (fresh && moments_.size() == kManyMoments) drift_.begin(loop_);
}

void TimeFold::leave_out(const Moment& from, const Moment& until, std::int64_t times) {
  const std::int64_t periods = until.period - from.period;
  parts_.periods.leave_out(periods * times, (until.at - from.at) * times);
  parts_.recorder.repeat(from.ranks, until.ranks, {from.at, until.at, times});
  parts_.network.repeat(from.links, until.links, times);
  parts_.memoised.repeat(from.performed, until.performed, times);
  events_ += (until.events - from.events) * times;
  left_out_ += (until.at - from.at) * times;
  moments_.clear();  // `from` among them
  drift_.end();
  // Up to a bound of the window; behind it there is more to leave out.
  is_over_ = parts_.periods.spare_periods() < periods;
  is_looking_ = !is_over_ || !parts_.periods.is_last(loop_);
}

std::size_t TimeFold::bounds_passed() const {
  const Time now = later(parts_.queue.now(), left_out_);
  return (window_.from > Time(0) && window_.from <= now ? 1U : 0U) + (window_.until <= now ? 1U : 0U);
}

bool TimeFold::is_behind_bounds() const {
  const Time bound = bounds_ > 1 || window_.from == Time(0) ? window_.until : window_.from;
  return later(parts_.queue.now(), left_out_) > bound &&
         later(parts_.recorder.oldest_under_way(), left_out_) > bound;
}

std::int64_t TimeFold::times_before_bound(Time period) const {
  const Time now = later(parts_.queue.now(), left_out_);
  std::int64_t times = INT64_MAX;
  for (const Time at : {window_.from, window_.until}) {
    if (at > now && at < kEndOfTime)
      times = std::min(times, (at - now).value / std::max<std::int64_t>(period.value, 1) - 1);
  }
  return times;
}

}  // namespace armilla
