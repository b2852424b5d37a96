#include "event/event_queue.h"

#include <algorithm>

namespace armilla {

// Moves the earliest non-empty bucket down: its smallest time becomes now, and every event of it lands in a
// lower bucket.
bool EventQueue::advance(Time end) {
  buckets_[0].clear();
  next_ = 0;
  occupied_ &= ~std::uint64_t{1};
  if (occupied_ == 0) return false;
  std::vector<Event>& bucket = buckets_[static_cast<std::size_t>(std::countr_zero(occupied_))];
  Time earliest = bucket.front().time, latest = earliest;
  for (const Event& event : bucket) {
    earliest = std::min(earliest, event.time);
    latest = std::max(latest, event.time);
  }
  if (earliest >= end) return false;
  now_ = earliest;
  occupied_ &= occupied_ - 1;
  if (earliest == latest) {  // as where many ranks keep step
    buckets_[0].swap(bucket);
    return true;
  }
  scratch_.swap(bucket);
  for (const Event& event : scratch_) {
    const std::size_t lower = bucket_of(event.time);
    buckets_[lower].push_back(event);
    occupied_ |= std::uint64_t{1} << lower;
  }
  scratch_.clear();
  return true;
}

Time EventQueue::next_time() const {
  if (next_ < buckets_[0].size()) return now_;
  const std::uint64_t others = occupied_ & ~std::uint64_t{1};
  if (others == 0) return kEndOfTime;
  Time earliest = kEndOfTime;
  for (const Event& event : buckets_[static_cast<std::size_t>(std::countr_zero(others))])
    earliest = std::min(earliest, event.time);
  return earliest;
}

// Handlers may append events for this very moment while the loop runs.
void EventQueue::handle_until(std::size_t stop) {
  while (next_ < stop) {
    const Event event = buckets_[0][next_++];
    ++handled_;
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
