#include "event/event_queue.h"

#include <algorithm>

namespace armilla {

// Moves the earliest non-empty bucket down: its smallest time becomes now, and every event of it lands in a
// lower bucket.
bool EventQueue::advance(Time end) {
  buckets_[0].clear();
  next_ = 0;
  const auto bucket =
      std::find_if(buckets_.begin() + 1, buckets_.end(), [](const auto& b) { return !b.empty(); });
  if (bucket == buckets_.end()) return false;
  const Time earliest = std::min_element(bucket->begin(), bucket->end(), [](const Event& a, const Event& b) {
                          return a.time < b.time;
                        })->time;
  if (earliest >= end) return false;
  now_ = earliest;
  scratch_.swap(*bucket);
  for (const Event& event : scratch_) buckets_[bucket_of(event.time)].push_back(event);
  scratch_.clear();
  return true;
}

bool EventQueue::run(Time end) {
  do {
    // Handlers may append events for this very moment while the loop runs.
    while (next_ < buckets_[0].size()) {
      const Event event = buckets_[0][next_++];
      --pending_;
      ++handled_;
      handlers_[event.target]->handle(event.argument);
    }
  } while (advance(end));
  return empty();
}

}  // namespace armilla
