#include "network/links/own_clock.h"

#include <algorithm>

namespace armilla {

void OwnClock::handle(std::uint64_t stamp) {
  if (stamp != stamp_) return;
  wake_tick_ = INT64_MAX;
  const Time now = queue_.now();
  const std::int64_t now_tick = last_tick_by(now);
  // Alone in its round, and in the one before: nobody has anything left to do at this moment.
  bool alone = last_alone_ == now && queue_.handled() == last_handled_ + 1;
  while (play_until(now_tick)) {
    deliver();
    alone = false;
  }
  if (!alone || queue_.next_time() == now) {
    last_alone_ = now;
    last_handled_ = queue_.handled();
    if (any_under_way()) wake_at(now_tick);
    return;
  }
  if (!any_under_way()) return;
  const Time next = queue_.next_time();
  const std::int64_t until = next == kEndOfTime ? INT64_MAX : last_tick_by(Time(next.value - 1));
  if (until > now_tick && play_until(until)) {
    wake_at(current_tick());
  } else {
    const std::int64_t tick = next_tick();
    if (tick == INT64_MAX) explain_standstill();
    wake_at(tick);
  }
}

void OwnClock::wake_at(std::int64_t tick) {
  if (tick >= wake_tick_) return;
  wake_tick_ = tick;
  queue_.schedule(std::max(queue_.now(), time_of(tick)), target_, ++stamp_);
}

}  // namespace armilla
