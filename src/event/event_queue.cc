#include "event/event_queue.h"

#include <algorithm>

namespace armilla {

void EventQueue::schedule_in_more_room(Time time, std::uint32_t target, std::uint64_t argument) {
  Bucket& bucket = buckets_[bucket_of(time)];
  const std::size_t events = bucket.size(), room = std::max<std::size_t>(8, events * 2);
  auto* const larger = static_cast<Event*>(::operator new(room * sizeof(Event)));
  std::uninitialized_copy(bucket.room.get(), bucket.end, larger);
  bucket.room.reset(larger);
  bucket.end = bucket.room.get() + events;
  bucket.limit = bucket.room.get() + room;
  schedule(time, target, argument);
}

// Moves the earliest non-empty bucket down: its smallest time becomes now, and every event of it lands in a
// lower bucket.
bool EventQueue::advance(Time end) {
  buckets_[0].clear();
  next_ = 0;
  occupied_ &= ~std::uint64_t{1};
  if (occupied_ == 0) return false;
  Bucket& bucket = buckets_[static_cast<std::size_t>(std::countr_zero(occupied_))];
  const std::span<const Event> events = bucket.all();
  Time earliest = events.front().time, latest = earliest;
  for (const Event& event : events) {
    earliest = std::min(earliest, event.time);
    latest = std::max(latest, event.time);
  }
  if (earliest >= end) return false;
  now_ = earliest;
  occupied_ &= occupied_ - 1;
  if (earliest == latest) {  // as where many ranks keep step
    std::swap(buckets_[0], bucket);
    return true;
  }
  bucket.clear();
  for (const Event& event : events) schedule(event.time, event.target, event.argument);
  return true;
}

Time EventQueue::next_time() const {
  if (next_ < buckets_[0].size()) return now_;
  const std::uint64_t others = occupied_ & ~std::uint64_t{1};
  if (others == 0) return kEndOfTime;
  Time earliest = kEndOfTime;
  for (const Event& event : buckets_[static_cast<std::size_t>(std::countr_zero(others))].all())
    earliest = std::min(earliest, event.time);
  return earliest;
}

std::vector<Event> EventQueue::set_aside(Time clock) {
  std::vector<Event> pending;
  for_each_pending([&](const Event& event) { pending.push_back(event); });
  for (Bucket& bucket : buckets_) bucket.clear();
  next_ = 0;
  occupied_ = 0;
  now_ = clock;
  return pending;
}

// Handlers may append events for this very moment while the loop runs.
void EventQueue::handle_until(std::size_t stop) {
  while (next_ < stop) {
    ++handled_;
    const Event& event = buckets_[0].room.get()[next_++];
    handlers_[event.target]->handle(event.argument);
  }
}

bool EventQueue::run(Time end) {
  do {
    while (next_ < buckets_[0].size()) {
      handle_until(buckets_[0].size());
      for (RoundObserver* const observer : observers_) observer->round_over();
    }
  } while (advance(end));
  return empty();
}

}  // namespace armilla
