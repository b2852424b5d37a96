#include "sim/rank_agenda.h"

#include <algorithm>

namespace armilla {

RankAgenda::RankAgenda(std::size_t ranks, EventQueue& queue)
    : queue_(queue), target_(queue.add_handler(*this)), ranks_(ranks) {}

std::uint32_t RankAgenda::new_entry(const Entry& entry) {
  if (free_ == kNone) {
    entries_.push_back(entry);
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t slot = free_;
  free_ = entries_[slot].next;
  entries_[slot] = entry;
  return slot;
}

void RankAgenda::schedule(std::int32_t rank, Time time, std::uint32_t target, std::uint64_t argument) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  std::vector<Moment>& moments = state.moments;
  // Mostly the latest moment of all. Its fields are written one by one: built as a whole, they would be
  // copied in pieces wider than they were written, which stalls the processor.
  if (moments.size() == state.head || moments.back().time < time) {
    Moment& moment = moments.emplace_back();
    moment.time = time;
    moment.first.argument = argument;
    moment.first.target = target;
    queue_.schedule(time, target_, static_cast<std::uint32_t>(rank));
    return;
  }
  const auto place =
      std::lower_bound(moments.begin() + static_cast<std::ptrdiff_t>(state.head), moments.end(), time,
                       [](const Moment& moment, Time t) { return moment.time < t; });
  if (place->time != time) {
    moments.insert(place, {time, {argument, target, kNone}, kNone});
    queue_.schedule(time, target_, static_cast<std::uint32_t>(rank));
    return;
  }
  const std::uint32_t added = new_entry({argument, target, kNone});
  (place->last == kNone ? place->first.next : entries_[place->last].next) = added;
  place->last = added;
}

void RankAgenda::handle(std::uint64_t rank) {
  Rank& state = ranks_[rank];
  Entry entry = state.moments[state.head].first;
  queue_.handler(entry.target).handle(entry.argument);
  // Only now: the callback may have added to this moment.
  std::uint32_t next = state.moments[state.head].first.next;
  while (next != kNone) {
    const std::uint32_t current = next;
    entry = entries_[current];
    queue_.handler(entry.target).handle(entry.argument);
    next = entries_[current].next;
    entries_[current].next = free_;
    free_ = current;
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
