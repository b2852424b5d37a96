// For networks whose messages move on a clock of their own, tick after tick: that clock goes ahead of the
// run's to the next moment at which anything else can happen, or to the next arrival, whichever comes first.
// What is sent then finds the network as it is at that moment.
//
// Receivers that send at once do so in the rounds of the moment in which they were told. A network goes on
// behind a moment only when it is alone in a round and was in the one before: nobody has anything left to do
// then.
#pragma once

#include <cstdint>

#include "event/event_queue.h"

namespace armilla {

class OwnClock : public EventHandler {
 public:
  explicit OwnClock(EventQueue& queue) : queue_(queue), target_(queue.add_handler(*this)) {}
  OwnClock(const OwnClock&) = delete;
  OwnClock& operator=(const OwnClock&) = delete;

  void handle(std::uint64_t stamp) final;

 protected:
  EventQueue& queue() { return queue_; }
  const EventQueue& queue() const { return queue_; }
  // Not later than the tick, and at the moment of this event at the earliest.
  void wake_at(std::int64_t tick);

 private:
  virtual Time time_of(std::int64_t tick) const = 0;
  virtual std::int64_t last_tick_by(Time time) const = 0;
  // Plays until the end of the tick, or until messages have arrived, which it says.
  virtual bool play_until(std::int64_t tick) = 0;
  virtual void deliver() = 0;  // tells receivers, who may send
  virtual bool any_under_way() const = 0;
  virtual std::int64_t current_tick() const = 0;
  // In which something happens: INT64_MAX if nothing ever will.
  virtual std::int64_t next_tick() const = 0;
  [[noreturn]] virtual void explain_standstill() const = 0;

  EventQueue& queue_;
  std::uint32_t target_;
  std::uint64_t stamp_ = 0;
  std::int64_t wake_tick_ = INT64_MAX;
  Time last_alone_ = Time(-1);  // when it was last woken, and how many events had been handled then
  std::int64_t last_handled_ = 0;
};

}  // namespace armilla
