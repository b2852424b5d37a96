#include "sim/engine/rank_agenda.h"

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

void RankAgenda::append(Moment& moment, std::uint32_t target, std::uint64_t argument) {
  const std::uint32_t added = new_entry({argument, target, kNone});
  (moment.last == kNone ? moment.first.next : entries_[moment.last].next) = added;
  moment.last = added;
}

void RankAgenda::schedule(std::int32_t r, Time time, std::uint32_t target, std::uint64_t argument) {
  if (ties_) ties_->add(time, queue_.now(), TieWatch::kOwn);
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  if (rank.has_next && rank.next.time == time) {
    append(rank.next, target, argument);
    return;
  }
  if (rank.has_next) {
    insert(rank, time, target, argument);
    return;
  }
  // Field by field: built as a whole, the moment would be copied in pieces wider than they were written,
  // which stalls the processor.
  rank.next.time = time;
  rank.next.first.argument = argument;
  rank.next.first.target = target;
  rank.next.first.next = kNone;
  rank.next.last = kNone;
  rank.has_next = true;
  queue_.schedule(time, target_, static_cast<std::uint32_t>(r));
}

// Beside the rank's next moment.
void RankAgenda::insert(Rank& rank, Time time, std::uint32_t target, std::uint64_t argument) {
  std::vector<Moment>& others = rank.others;
  const auto begin = others.begin() + static_cast<std::ptrdiff_t>(rank.head);
  const Moment moment{time, {argument, target, kNone}, kNone};
  if (time < rank.next.time) {
    others.insert(begin, rank.next);
    rank.next = moment;
  } else if (others.size() == rank.head || others.back().time < time) {
    others.push_back(moment);
  } else {
    const auto place =
        std::lower_bound(begin, others.end(), time, [](const Moment& m, Time t) { return m.time < t; });
    if (place->time == time) {
      append(*place, target, argument);
      return;
    }
    others.insert(place, moment);
  }
  queue_.schedule(time, target_, static_cast<std::uint64_t>(&rank - ranks_.data()));
}

void RankAgenda::handle(std::uint64_t r) {
  Rank& rank = ranks_[r];
  Entry entry = rank.next.first;
  queue_.handler(entry.target).handle(entry.argument);
  // Only now: the callback may have added to this moment.
  std::uint32_t next = rank.next.first.next;
  while (next != kNone) {
    const std::uint32_t current = next;
    entry = entries_[current];
    queue_.handler(entry.target).handle(entry.argument);
    next = entries_[current].next;
    entries_[current].next = free_;
    free_ = current;
  }
  rank.has_next = rank.head < rank.others.size();
  if (!rank.has_next) return;
  rank.next = rank.others[rank.head++];
  if (rank.head == rank.others.size()) {
    rank.others.clear();
    rank.head = 0;
  } else if (rank.head >= 64) {
    rank.others.erase(rank.others.begin(), rank.others.begin() + static_cast<std::ptrdiff_t>(rank.head));
    rank.head = 0;
  }
}

}  // namespace armilla
