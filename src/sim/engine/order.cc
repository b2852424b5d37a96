#include "sim/engine/order.h"

#include <algorithm>

namespace armilla {

Order::Order(OrderRule rule, std::int32_t ranks, EventQueue& queue)
    : rule_(rule),
      in_rounds_(rule == OrderRule::rounds || rule == OrderRule::rounds_by_number),
      queue_(queue),
      target_(queue.add_handler(*this)) {
  if (in_rounds_) {
    marked_.resize(static_cast<std::size_t>(ranks));
  } else {
    agendas_.resize(static_cast<std::size_t>(ranks));
  }
}

void Order::watch(Time time, std::int32_t origin) {
  const Time now = queue_.now();
  // Scheduled at one moment by two origins: the ranks may serve these in either order (sim/engine/order.h).
  // Only the latest is compared, for earlier ones of another moment come first on every rank.
  const auto [entry, fresh] = watched_.try_emplace(time.value, Watched{now, origin, 1});
  if (!fresh) {
    parted_ = parted_ || (entry->second.scheduled == now && entry->second.origin != origin);
    entry->second = {now, origin, entry->second.events + 1};
  }
  // Doubling keeps the cost of clearing out constant per event.
  if (watched_.size() < watch_limit_) return;
  std::erase_if(watched_, [&](const auto& old) { return old.first < now.value; });
  watch_limit_ = 2 * watched_.size() + 1024;
}

void Order::meet() {
  const auto entry = watched_.find(queue_.now().value);
  parted_ = parted_ || entry == watched_.end() || entry->second.events > 1;
}

std::uint32_t Order::new_entry(const Entry& entry) {
  if (free_ == kNone) {
    entries_.push_back(entry);
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t slot = free_;
  free_ = entries_[slot].next;
  entries_[slot] = entry;
  return slot;
}

[[gnu::noinline]] void Order::append(Moment& moment, std::uint32_t target, std::uint64_t argument) {
  const std::uint32_t added = new_entry({argument, target, kNone});
  (moment.last == kNone ? moment.first.next : entries_[moment.last].next) = added;
  moment.last = added;
}

// Of what it calls, what is rare stays apart, and what every event does is part of it.
[[gnu::flatten]] void Order::put_on_agenda(std::int32_t rank, Time time, std::uint32_t target,
                                           std::uint64_t argument) {
  if (time == running_.time && rank == running_rank_) {
    append(running_, target, argument);
    return;
  }
  Agenda& agenda = agendas_[static_cast<std::size_t>(rank)];
  if (agenda.next.time == time) {
    append(agenda.next, target, argument);
    return;
  }
  if (agenda.next.time != kNever) {
    insert(agenda, time, target, argument);
    return;
  }
  // Field by field: built as a whole, the moment would be copied in pieces wider than they were written,
  // which stalls the processor.
  agenda.next.time = time;
  agenda.next.first.argument = argument;
  agenda.next.first.target = target;
  agenda.next.first.next = kNone;
  agenda.next.last = kNone;
  queue_.schedule(time, target_, static_cast<std::uint32_t>(rank));
}

// Beside the rank's next moment.
[[gnu::noinline]] void Order::insert(Agenda& agenda, Time time, std::uint32_t target,
                                     std::uint64_t argument) {
  std::vector<Moment>& others = agenda.others;
  const auto begin = others.begin() + static_cast<std::ptrdiff_t>(agenda.head);
  const Moment moment{time, {argument, target, kNone}, kNone};
  if (time < agenda.next.time) {
    // Earlier than what the queue has for the rank. That event stays there, and finds this moment: the queue
    // has one event per moment of an agenda, whichever it was scheduled for.
    others.insert(begin, agenda.next);
    agenda.next = moment;
  } else if (others.size() == agenda.head || others.back().time < time) {
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
  queue_.schedule(time, target_, static_cast<std::uint64_t>(&agenda - agendas_.data()));
}

void Order::take_up_next(Agenda& agenda) {
  agenda.next = agenda.others[agenda.head++];
  if (agenda.head == agenda.others.size()) {
    agenda.others.clear();
    agenda.head = 0;
    // Those that are over are dropped by the batch: dropping each would move all that follow it.
  } else if (agenda.head >= 64) {
    agenda.others.erase(agenda.others.begin(),
                        agenda.others.begin() + static_cast<std::ptrdiff_t>(agenda.head));
    agenda.head = 0;
  }
}

void Order::handle(std::uint64_t rank) {
  Agenda& agenda = agendas_[rank];
  // All is copied first: the handler may schedule, and so fill the place of the next moment anew.
  const std::uint64_t argument = agenda.next.first.argument;
  EventHandler& target = queue_.handler(agenda.next.first.target);
  running_.time = agenda.next.time;
  running_.first.next = agenda.next.first.next;
  running_.last = agenda.next.last;
  running_rank_ = static_cast<std::int32_t>(rank);
  agenda.next.time = kNever;
  if (!agenda.others.empty()) take_up_next(agenda);
  target.handle(argument);
  // Only now: the callback may have added to this moment.
  std::uint32_t next = running_.first.next;
  while (next != kNone) {
    const std::uint32_t current = next;
    const Entry entry = entries_[current];
    queue_.handler(entry.target).handle(entry.argument);
    next = entries_[current].next;
    entries_[current].next = free_;
    free_ = current;
  }
  running_.time = kNever;
}

}  // namespace armilla
