// The events of a packet simulation, by kind, and how much there is that can still move.
#pragma once

#include <cstdint>
#include <utility>

#include "network/packet/event_wheel.h"

namespace armilla::packets {

// Those from kTimer on are the transport's but kGoOn to kCompare, which are fast-forward's; from kGoOn on
// they move nothing by themselves.
enum EventKind : std::uint32_t {
  kDue,
  kInstall,
  kStart,
  kSent,
  kArrived,
  kWake,
  kTimeout,
  kNicResume,
  kNicMayPause,
  kLinkDown,
  kPauseOver,
  kTimer,
  kGoOn,
  kRepeat,
  kCrowded,
  kCompare,
  kIdleTimers
};

// One that was taken out.
struct HeldEvent {
  std::int64_t time = 0;
  WheelEvent event;
};

class EventHandler {
 public:
  virtual void handle(const WheelEvent& event) = 0;

 protected:
  ~EventHandler() = default;
};

class Events {
 public:
  std::int64_t now() const { return wheel_.now(); }
  std::int64_t handled() const { return wheel_.handled(); }
  // Events, and what else is awaited, but timers of congestion control, which move nothing by themselves.
  std::int64_t pending() const { return pending_; }
  std::int64_t next_time() const { return wheel_.next_time(); }

  void schedule(std::int64_t time, std::uint32_t kind, std::uint32_t subject, std::uint32_t stamp = 0) {
    if (kind < kGoOn) ++pending_;
    wheel_.schedule(time, kind, subject, stamp);
  }
  void schedule(const HeldEvent& held) {
    schedule(held.time, held.event.kind, held.event.subject, held.event.stamp);
  }
  // Something comes, or has come, that is no event: a message to begin, or what stands still.
  void await() { ++pending_; }
  void came() { --pending_; }

  // The next event not after `end`; false if there is none.
  bool next(std::int64_t end, WheelEvent& event) {
    if (!wheel_.next(end, event)) return false;
    if (event.kind < kGoOn) --pending_;
    return true;
  }
  void forget() { wheel_.forget(); }
  void pass_to(std::int64_t time) { wheel_.pass_to(time); }

  // As those of EventWheel.
  bool began_chunk() const { return wheel_.began_chunk(); }
  template <class Chunks>
  void look_ahead(Chunks& chunks) const {
    wheel_.look_ahead(chunks);
  }
  template <class Choose, class Take>
  void take_out(const Choose& choose, const Take& take) {
    wheel_.take_out(choose, [&](std::int64_t time, const WheelEvent& event) {
      if (event.kind < kGoOn) --pending_;
      take(HeldEvent{time, event});
    });
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    wheel_.for_each([&](std::int64_t time, const WheelEvent& event) { visit(HeldEvent{time, event}); });
  }

  // Goes on in another wheel, which has no events, from `begin_ns` on; the one until now is there then.
  void change_to(EventWheel& wheel, std::int64_t begin_ns) {
    std::swap(wheel_, wheel);
    wheel_.begin_at(begin_ns);
  }
  void change_back(EventWheel& wheel) { std::swap(wheel_, wheel); }

 private:
  EventWheel wheel_;
  std::int64_t pending_ = 0;
};

}  // namespace armilla::packets
