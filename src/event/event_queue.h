// The event queue: one clock per run. Events are plain data and leave in the order (time, order of
// scheduling), so a run is reproducible bit for bit.
//
// A monotone radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): an event sits in the bucket of the highest bit
// in which its time differs from the last time popped, so that equal times always share a bucket and stay in
// scheduling order with no sequence number. Amortised O(64) moves per event in the worst case, about one in
// practice; no allocation once the buckets have grown. A bucket of a few events is sorted by insertion
// instead of moved down, and what is scheduled among them is inserted there (as in the bottom rung of a
// ladder queue; Tang, Goh, Thng 2005), which costs less than moving each several times.
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
  // As many times one after the other.
  virtual void handle_times(std::uint64_t argument, std::uint32_t times) {
    for (; times > 0; --times) handle(argument);
  }
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
    if (number - 1 < near_buckets_) {  // none of bucket 0
      insert_near(time, target, argument);
      return;
    }
    schedule_in(number, time, target, argument);
  }

  Time now() const { return now_; }
  bool empty() const { return next_ == buckets_[0].size() && occupied_ <= 1 && near_.empty(); }
  std::int64_t handled() const { return handled_; }

  // Of the earliest event that has not been handled, kEndOfTime if there is none. O(1) but where the next
  // events have yet to be sorted: O(these).
  Time next_time() const;

  // Calls `visit(event)` for every event that has not been handled, in no order that means anything.
  template <class Visit>
  void for_each_pending(const Visit& visit) const {
    for (const Event& event : buckets_[0].all().subspan(next_)) visit(event);
    for (const Event& event : near_.all()) visit(event);
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

  // The events that come next, in order: all behind this moment that buckets 1 to `near_buckets_` would hold.
  struct Near {
    static constexpr std::size_t kRoom = 64, kMostTaken = 16;
    std::array<Event, kRoom> room;
    std::size_t first = 0, end = 0;
    bool empty() const { return first == end; }
    std::span<const Event> all() const { return std::span(room).subspan(first, end - first); }
    void clear() { first = end = 0; }
  };

  // Field by field: copied as a whole, the event would be read in pieces wider than it was written, which
  // stalls the processor.
  static void put(Event& to, Time time, std::uint32_t target, std::uint64_t argument) {
    to.time = time;
    to.argument = argument;
    to.target = target;
  }

  std::size_t bucket_of(Time time) const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(time.value ^ now_.value)));
  }
  void schedule_in_more_room(std::size_t number, Time time, std::uint32_t target, std::uint64_t argument);
  void schedule_in(std::size_t number, Time time, std::uint32_t target, std::uint64_t argument) {
    Bucket& bucket = buckets_[number];
    if (bucket.end == bucket.limit) [[unlikely]] {
      schedule_in_more_room(number, time, target, argument);
      return;
    }
    occupied_ |= std::uint64_t{1} << number;
    put(*bucket.end, time, target, argument);
    ++bucket.end;
  }
  void insert_near(Time time, std::uint32_t target, std::uint64_t argument);
  void put_back_near();
  bool advance(Time end);
  bool move_down(Bucket& bucket, Time end);
  void handle_until(std::size_t stop);

  std::array<Bucket, 64> buckets_;  // times are not negative: their highest bit is never set
  std::uint64_t occupied_ = 0;      // a bit per bucket that may hold events
  Near near_;
  std::size_t near_buckets_ = 0;  // from bucket 1 on, whose events are near instead
  std::vector<EventHandler*> handlers_;
  std::vector<RoundObserver*> observers_;
  std::size_t next_ = 0;  // first event of bucket 0 that is not handled yet
  std::int64_t handled_ = 0;
  Time now_;
};

}  // namespace armilla
