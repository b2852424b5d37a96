#include "sim/rank_agenda.h"

#include <algorithm>

namespace armilla {

RankAgenda::RankAgenda(std::size_t ranks, EventQueue& queue)
    : queue_(queue), target_(queue.add_handler(*this)), ranks_(ranks) {}

std::uint32_t RankAgenda::new_entry(std::uint32_t target, std::uint64_t argument) {
  if (free_ == kNone) {
    entries_.push_back({argument, target, kNone});
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t entry = free_;
  free_ = entries_[entry].next;
  entries_[entry] = {argument, target, kNone};
  return entry;
}

void RankAgenda::schedule(std::int32_t rank, Time time, std::uint32_t target, std::uint64_t argument) {
  const std::uint32_t entry = new_entry(target, argument);
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  std::vector<Moment>& moments = state.moments;
  // Mostly the latest moment of all.
  auto place = moments.end();
  if (moments.size() > state.head && moments.back().time >= time) {
    place = std::lower_bound(moments.begin() + static_cast<std::ptrdiff_t>(state.head), moments.end(), time,
                             [](const Moment& moment, Time t) { return moment.time < t; });
  }
  if (place != moments.end() && place->time == time) {
    entries_[place->last].next = entry;
    place->last = entry;
    return;
  }
  moments.insert(place, {time, entry, entry});
  queue_.schedule(time, target_, static_cast<std::uint32_t>(rank));
}

void RankAgenda::handle(std::uint64_t rank) {
  Rank& state = ranks_[rank];
  std::uint32_t entry = state.moments[state.head].first;
  while (entry != kNone) {
    const Entry current = entries_[entry];
    queue_.handler(current.target).handle(current.argument);
    // Only now: the callback may have added to this moment.
    const std::uint32_t next = entries_[entry].next;
    entries_[entry].next = free_;
    free_ = entry;
    entry = next;
  }
  if (++state.head == state.moments.size()) {
    state.moments.clear();
    state.head = 0;
  } else if (state.head >= 64) {
    state.moments.erase(state.moments.begin(),
                        state.moments.begin() + static_cast<std::ptrdiff_t>(state.head));
    state.head = 0;
  }
}

}  // namespace armilla
