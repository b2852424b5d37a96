#include "event/event_queue.h"

#include <algorithm>

namespace armilla {

void EventQueue::schedule_in_more_room(std::size_t number, Time time, std::uint32_t target,
                                       std::uint64_t argument) {
  Bucket& bucket = buckets_[number];
  const std::size_t events = bucket.size(), room = std::max<std::size_t>(8, events * 2);
  auto* const larger = static_cast<Event*>(::operator new(room * sizeof(Event)));
  std::uninitialized_copy(bucket.room.get(), bucket.end, larger);
  bucket.room.reset(larger);
  bucket.end = bucket.room.get() + events;
  bucket.limit = bucket.room.get() + room;
  schedule_in(number, time, target, argument);
}

// They stay in this order, and behind them comes what is scheduled later.
void EventQueue::put_back_near() {
  const Near before = near_;
  near_.clear();
  near_buckets_ = 0;
  for (const Event& event : before.all()) schedule(event.time, event.target, event.argument);
}

// Behind those of the same time, which were scheduled before it.
void EventQueue::insert_near(Time time, std::uint32_t target, std::uint64_t argument) {
  if (near_.end == Near::kRoom) [[unlikely]] {  // too many to sort
    put_back_near();
    schedule(time, target, argument);
    return;
  }
  Event* to = near_.room.data() + near_.end++;
  for (const Event* const first = near_.room.data() + near_.first; to != first && to[-1].time > time; --to)
    put(*to, to[-1].time, to[-1].target, to[-1].argument);
  put(*to, time, target, argument);
}

// The earliest events go to bucket 0, and their time becomes now.
bool EventQueue::advance(Time end) {
  buckets_[0].clear();
  next_ = 0;
  occupied_ &= ~std::uint64_t{1};
  if (near_.empty()) {
    near_.clear();
    near_buckets_ = 0;
    if (occupied_ == 0) return false;
    const auto number = static_cast<std::size_t>(std::countr_zero(occupied_));
    Bucket& bucket = buckets_[number];
    if (bucket.size() > Near::kMostTaken) return move_down(bucket, end);
    occupied_ &= occupied_ - 1;
    for (const Event& event : bucket.all()) insert_near(event.time, event.target, event.argument);
    bucket.clear();
    near_buckets_ = number - 1;
  }
  const Event* event = near_.room.data() + near_.first;
  const Event* const last = near_.room.data() + near_.end;
  if (event->time >= end) {
    put_back_near();  // the clock may be far before them
    return false;
  }
  now_ = event->time;
  do {
    schedule_in(0, event->time, event->target, event->argument);
    ++event;
  } while (event != last && event->time == now_);
  near_.first = static_cast<std::size_t>(event - near_.room.data());
  return true;
}

// The smallest time of the earliest bucket becomes now, and every event of it lands in a lower one.
bool EventQueue::move_down(Bucket& bucket, Time end) {
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
  if (!near_.empty()) return near_.all().front().time;
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
  near_.clear();
  near_buckets_ = 0;
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
