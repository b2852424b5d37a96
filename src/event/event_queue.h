// The event queue: one clock per run. Events are plain data and leave in the order (time, order of
// scheduling), so a run is reproducible bit for bit.
//
// A monotone radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): an event sits in the bucket of the highest bit
// in which its time differs from the last time popped, so that equal times always share a bucket and stay in
// scheduling order with no sequence number. Amortised O(64) moves per event in the worst case, about one in
// practice; no allocation once the buckets have grown.
//
// With observers, events of one time are handled in rounds: what is scheduled for this very moment during a
// round belongs to the next one, and observers are told of the end of each. A simulation that only notes in
// its events what happened, and acts on it between rounds in an order of its own, does not depend on the
// order of scheduling.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/units.h"

namespace armilla {

struct Event {
  Time time;
  std::uint64_t argument = 0;  // meaning known to the target
  std::uint32_t target = 0;    // handler index
};

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void handle(std::uint64_t argument) = 0;
};

class RoundObserver {
 public:
  virtual ~RoundObserver() = default;
  virtual void round_over() = 0;
};

class EventQueue {
 public:
  // The queue does not own the handler; it must outlive the run.
  std::uint32_t add_handler(EventHandler& handler) {
    handlers_.push_back(&handler);
    return static_cast<std::uint32_t>(handlers_.size() - 1);
  }

  // Told in the order in which they were added; likewise not owned.
  void add_observer(RoundObserver& observer) { observers_.push_back(&observer); }

  EventHandler& handler(std::uint32_t target) { return *handlers_[target]; }

  // `time` must not be before now().
  void schedule(Time time, std::uint32_t target, std::uint64_t argument) {
    const std::size_t number = bucket_of(time);
    Bucket& bucket = buckets_[number];
    if (bucket.end == bucket.limit) [[unlikely]] {
      schedule_in_more_room(time, target, argument);
      return;
    }
    occupied_ |= std::uint64_t{1} << number;
    // Field by field: copied as a whole, the event would be read in pieces wider than it was written, which
    // stalls the processor.
    bucket.end->time = time;
    bucket.end->argument = argument;
    bucket.end->target = target;
    ++bucket.end;
  }

  Time now() const { return now_; }
  bool empty() const { return next_ == buckets_[0].size() && occupied_ <= 1; }
  std::int64_t handled() const { return handled_; }

  // Of the earliest event that has not been handled, kEndOfTime if there is none. O(events of its bucket).
  Time next_time() const;

  // Calls `visit(event)` for every event that has not been handled, in no order that means anything.
  template <class Visit>
  void for_each_pending(const Visit& visit) const {
    for (const Event& event : buckets_[0].all().subspan(next_)) visit(event);
    for (std::size_t bucket = 1; bucket < buckets_.size(); ++bucket) {
      for (const Event& event : buckets_[bucket].all()) visit(event);
    }
  }

  // Takes out all events that have not been handled and sets the clock, forward or back: what happened apart
  // from them can then be played by itself, and they are scheduled again. Between rounds only.
  std::vector<Event> set_aside(Time clock);

  // Handles events until none is left or the next one lies at or after `end`; returns whether the queue ran
  // empty.
  bool run(Time end = kEndOfTime);

 private:
  // As a vector, but that growing is the last thing that scheduling does: whoever schedules keeps nothing
  // beyond the call, and has a few instructions of its own.
  struct Bucket {
    struct Release {
      void operator()(Event* events) const { ::operator delete(events); }
    };
    std::unique_ptr<Event, Release> room;  // what is not used of it is not touched
    Event* end = nullptr;                  // of the events in it
    Event* limit = nullptr;
    void clear() { end = room.get(); }
    std::size_t size() const { return static_cast<std::size_t>(end - room.get()); }
    std::span<const Event> all() const { return {room.get(), end}; }
  };

  std::size_t bucket_of(Time time) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time.value ^ now_.value)));
  }
  void schedule_in_more_room(Time time, std::uint32_t target, std::uint64_t argument);
  bool advance(Time end);
  void handle_until(std::size_t stop);

  std::array<Bucket, 64> buckets_;  // times are not negative: their highest bit is never set
  std::uint64_t occupied_ = 0;      // a bit per bucket that may hold events
  std::vector<EventHandler*> handlers_;
  std::vector<RoundObserver*> observers_;
  std::size_t next_ = 0;  // first event of bucket 0 that is not handled yet
  std::int64_t handled_ = 0;
  Time now_;
};

}  // namespace armilla
