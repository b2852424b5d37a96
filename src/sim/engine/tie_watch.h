// TieWatch: whether one rank may stand for all in a run whose ties are broken by the order of scheduling.
//
// ASTRA-sim breaks ties between events of one moment by the order in which they were scheduled, over all
// ranks. Where every rank does the same at the same time, the order of two events of a rank is the same on
// all of them if they were scheduled at different moments, or at one moment by the same rank (itself, or the
// same neighbour). Two that were scheduled at one moment by different ranks may come in either order: the
// lower rank is served first, and on a ring one rank's predecessor has the highest number. Such a tie means
// that the ranks may part, and that one cannot stand for all.
// By induction over events: a run without such a tie is the run of every rank. Cost: O(1) per event.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/units.h"

namespace armilla {

class TieWatch {
 public:
  static constexpr std::int32_t kOwn = -1;

  // An event at `time` was scheduled at `now` by `origin`: kOwn, or what tells one neighbour from another.
  void add(Time time, Time now, std::int32_t origin) {
    const auto [entry, fresh] = latest_.try_emplace(time.value, Entry{now, origin, 1});
    if (!fresh) {
      parted_ = parted_ || (entry->second.scheduled == now && entry->second.origin != origin);
      entry->second = {now, origin, entry->second.events + 1};
    }
    if (latest_.size() >= limit_) forget_before(now);
  }
  // The event under way waits for the same event of all other ranks: the last of them continues all. Another
  // event of this moment would come before that on some ranks, after it on others.
  void meet(Time now) {
    const auto entry = latest_.find(now.value);
    parted_ = parted_ || entry == latest_.end() || entry->second.events > 1;
  }

  bool parted() const { return parted_; }

 private:
  struct Entry {
    Time scheduled;  // the latest event of this moment
    std::int32_t origin = kOwn;
    std::int64_t events = 0;
  };
  void forget_before(Time now) {
    std::erase_if(latest_, [&](const auto& entry) { return entry.first < now.value; });
    limit_ = 2 * latest_.size() + 1024;
  }

  std::unordered_map<std::int64_t, Entry> latest_;  // by the moment of the event
  std::size_t limit_ = 1024;
  bool parted_ = false;
};

}  // namespace armilla
