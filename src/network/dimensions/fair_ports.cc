#include "network/dimensions/fair_ports.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace armilla {
namespace {

// Parts of half an hour still fit into 64 bits, whose division is several times quicker.
std::int64_t quotient_rounded_up(WideProduct parts, std::int64_t of) {
  if (parts <= INT64_MAX - of) [[likely]]
    return std::min((static_cast<std::int64_t>(parts) + of - 1) / of, kEndOfTime.value);
  const WideProduct whole = (parts + of - 1) / of;
  return static_cast<std::int64_t>(std::min<WideProduct>(whole, kEndOfTime.value));
}

}  // namespace

std::uint32_t FairPorts::open(Link& link) {
  ports_.emplace_back().link = &link;
  return static_cast<std::uint32_t>(ports_.size() - 1);
}

bool FairPorts::is_left_to(std::uint16_t sender, std::uint32_t number) {
  Port& port = ports_[number];
  const Time now = queue_.now();
  // What was served until now was served in the old parts: the books are closed before anyone joins.
  if (!port.senders.empty()) advance(port);
  if (!port.senders.empty()) return false;
  while (port.first < port.booked.size() && port.booked[port.first].departure.end <= now) ++port.first;
  return port.first == port.booked.size() || port.sender == sender;
}

void FairPorts::join(std::uint32_t number, const Arrival& arrival) {
  Port& port = ports_[number];
  // One sender's messages end at moments that nothing can change but another sender: they are told at once,
  // and no event is needed.
  if (is_left_to(arrival.sender, number)) {
    if (2 * port.first >= port.booked.size()) {
      port.booked.erase(port.booked.begin(), port.booked.begin() + static_cast<std::ptrdiff_t>(port.first));
      port.first = 0;
    }
    port.sender = arrival.sender;
    book(port, arrival);
    return;
  }
  const Time now = queue_.now();
  // Another sender comes while some are left: what was told ahead of time is called off and worked out anew.
  if (port.senders.empty()) begin_sharing(port);
  const auto known = std::ranges::find(port.senders, arrival.sender, &Sender::name);
  Sender& sender =
      known != port.senders.end() ? *known : port.senders.emplace_back(Sender{arrival.sender, {}});
  port.link->senders = std::max(port.link->senders, static_cast<std::int32_t>(port.senders.size()));
  sender.messages.push_back({arrival.flight, sender.waits() ? kEndOfTime : now,
                             static_cast<WideProduct>(arrival.service.value) * kParts});
  wait(number);
}

void FairPorts::handle(std::uint64_t argument) {
  const auto number = static_cast<std::uint32_t>(argument);
  Port& port = ports_[number];
  // Of an event that later ones have replaced.
  if (port.stamp != argument >> 32) return;
  advance(port);
  if (!port.senders.empty()) wait(number);
}

// At the earliest from the moment the first byte is there.
void FairPorts::book(Port& port, const Arrival& arrival) {
  const Time begin = std::max(arrival.head, port.link->free);
  // A message cannot be through before its last byte has come, however fast the link. A row is there.
  const Time end = arrival.row == 1 ? std::max(later(begin, arrival.service), arrival.tail)
                                    : later(begin, saturating_multiply(arrival.service, arrival.row));
  port.link->free = end;
  port.booked.push_back({{arrival.flight, begin, end}, arrival.service, arrival.row});
  client_.departs({arrival.flight, begin, end});
}

void FairPorts::begin_sharing(Port& port) {
  const Time now = queue_.now();
  port.since = now;
  port.senders.emplace_back(Sender{port.sender, {}});
  for (const Booked& booked : std::span(port.booked).subspan(port.first)) {
    if (booked.row == 1) {
      take_over(port, booked);
      continue;
    }
    const std::int64_t through =
        booked.departure.begin < now ? (now - booked.departure.begin).value / booked.service.value : 0;
    Time begin = booked.departure.begin + booked.service * through;
    for (const std::uint32_t flight :
         client_.taken_apart(booked.departure.flight, booked.row - static_cast<std::uint32_t>(through))) {
      const Time end = begin + booked.service;
      take_over(port, {{flight, begin, end}, booked.service});
      begin = end;
    }
  }
  port.booked.clear();
  port.first = 0;
}

// A message that was booked, by a port that is shared from now on.
void FairPorts::take_over(Port& port, const Booked& booked) {
  const Time now = port.since;
  Sender& sender = port.senders.front();
  const auto& [flight, begin, end] = booked.departure;
  // Of one that is being served, what is left until its end; of one that waits, all.
  const Time left = std::min(booked.service, end - now);
  sender.messages.push_back({flight, begin < now || !sender.waits() ? begin : kEndOfTime,
                             static_cast<WideProduct>(left.value) * kParts});
  client_.called_off(flight);
}

// What would take less than a picosecond more is through.
void FairPorts::advance(Port& port) {
  const Time now = queue_.now();
  const auto senders = static_cast<std::int64_t>(port.senders.size());
  port.link->shared_time = later(port.link->shared_time, now - port.since);
  // Parts divide among up to ten without a rest, which spares a division of 128 bits.
  const WideProduct passed = (now - port.since).value;
  const WideProduct served = kParts % senders == 0 ? passed * (kParts / senders) : passed * kParts / senders;
  port.since = now;
  for (Sender& sender : port.senders) {
    Waiting& served_one = sender.messages[sender.first];
    served_one.left -= std::min(served_one.left, served);
    while (sender.waits() && sender.messages[sender.first].left * senders < kParts) {
      const Waiting through = sender.messages[sender.first++];
      if (sender.waits()) sender.messages[sender.first].begin = now;
      client_.departs({through.flight, through.begin, now});
    }
    if (2 * sender.first >= sender.messages.size()) {
      sender.messages.erase(sender.messages.begin(),
                            sender.messages.begin() + static_cast<std::ptrdiff_t>(sender.first));
      sender.first = 0;
    }
  }
  std::erase_if(port.senders, [](const Sender& sender) { return !sender.waits(); });
  if (port.senders.size() < 2) end_sharing(port);
}

// What is left is one sender's.
void FairPorts::end_sharing(Port& port) {
  // Voids the event to come: it was for a port that is shared.
  ++port.stamp;
  Time free = queue_.now();
  for (const Sender& sender : port.senders) {
    port.sender = sender.name;
    for (const Waiting& waiting : sender.waiting()) {
      // One that was being served goes on, with the moment at which it began; others begin as the link gets
      // free.
      const Time begin = std::min(waiting.begin, free);
      const Time left(quotient_rounded_up(waiting.left, kParts));
      free = later(free, left);
      port.booked.push_back({{waiting.flight, begin, free}, left});
      client_.departs({waiting.flight, begin, free});
    }
  }
  port.link->free = free;
  port.senders.clear();
}

void FairPorts::wait(std::uint32_t number) {
  Port& port = ports_[number];
  const auto senders = static_cast<std::int64_t>(port.senders.size());
  WideProduct least = port.senders.front().waiting().front().left;
  for (const Sender& sender : port.senders) least = std::min(least, sender.waiting().front().left);
  // Rounded up: at an event that comes too early nothing would be through.
  const Time next = later(queue_.now(), Time(quotient_rounded_up(least * senders, kParts)));
  queue_.schedule(next, target_, std::uint64_t{++port.stamp} << 32 | number);
}

Intake::Served Intake::book(std::uint16_t sender, Time head, Time tail, Time service) {
  auto own = std::ranges::find(free_, sender, &std::pair<std::uint16_t, Time>::first);
  if (own == free_.end()) own = free_.insert(free_.end(), {sender, Time(0)});
  // Of one sender messages keep their order, and what lies before `taken_until_` is not known any more.
  const Time begin = std::max({head, own->second, taken_until_});
  if (busy_.empty() || busy_.back().end <= begin) {
    const Time end = own->second = std::max(later(begin, service), tail);
    // What takes no time needs no interval.
    if (service == Time(0)) return {begin, end};
    if (!busy_.empty() && busy_.back().end == end - service) {
      busy_.back().end = end;
    } else {
      busy_.push_back({end - service, end});
      forget_first();
    }
    return {begin, end};
  }
  // Others are booked behind `begin`. The message is served in the gaps that they leave, from its first byte
  // on.
  auto next = busy_.end();
  while (next != busy_.begin() && std::prev(next)->end > begin) --next;
  Time end = begin, left = service;
  for (; next != busy_.end() && left > Time(0); ++next) {
    if (next->begin > end) {
      const Time gap = next->begin - end;
      if (gap >= left) break;
      left -= gap;
    }
    end = std::max(end, next->end);
  }
  end = std::max(later(end, left), tail);
  own->second = end;
  if (service > Time(0)) occupy(begin, end, service);
  return {begin, end};
}

void Intake::book_row(std::uint16_t sender, Time head, Time service, std::uint32_t messages) {
  const auto own = std::ranges::find(free_, sender, &std::pair<std::uint16_t, Time>::first);
  const bool is_at_once = own != free_.end() && own->second <= head && taken_until_ <= head &&
                          (busy_.empty() || busy_.back().end <= head);
  if (!is_at_once) {
    for (; messages > 0; --messages, head = head + service) book(sender, head, head + service, service);
    return;
  }
  // Without a gap, as nobody is in the way.
  const Time end = own->second = head + service * messages;
  if (!busy_.empty() && busy_.back().end == head) {
    busy_.back().end = end;
  } else {
    busy_.push_back({head, end});
    forget_first();
  }
}

// The latest gaps, for the earlier ones may be filled by others: what lies between is one interval then.
void Intake::occupy(Time begin, Time end, Time service) {
  auto behind = busy_.end();
  while (behind != busy_.begin() && std::prev(behind)->begin > end) --behind;
  Interval solid{end, end};
  auto first = behind;
  for (Time left = service;;) {
    while (first != busy_.begin() && std::prev(first)->end >= solid.begin) {
      --first;
      solid = {std::min(solid.begin, first->begin), std::max(solid.end, first->end)};
    }
    if (left == Time(0) || solid.begin <= begin) break;
    const Time gap = solid.begin - (first == busy_.begin() ? begin : std::max(std::prev(first)->end, begin));
    const Time taken = std::min(left, gap);
    solid.begin -= taken;
    left -= taken;
  }
  busy_.insert(busy_.erase(first, behind), solid);
  forget_first();
}

void Intake::forget_first() {
  if (busy_.size() <= kMostIntervals) return;
  taken_until_ = busy_.front().end;
  busy_.pop_front();
}

void Intake::add_state(StateDigest& state, std::uint64_t number, Time floor, Time now) const {
  for (const auto& [sender, free] : free_) {
    if (free > floor) state.add('i', number, sender, (free - now).value);
  }
  if (taken_until_ > floor) state.add('t', number, (taken_until_ - now).value);
  for (auto interval = busy_.rbegin(); interval != busy_.rend() && interval->end > floor; ++interval)
    state.add('b', number, (std::max(interval->begin, floor) - now).value, (interval->end - now).value);
}

}  // namespace armilla
