// The events of a packet simulation: a wheel of one slot per nanosecond for what happens soon, a heap for the rest.
//
// Events leave in the order (time, order of scheduling), exactly. A slot is a list in order of scheduling; an event too
// far away for the wheel waits in the heap and enters its slot at the moment that the slot comes within reach, before
// anything else can be scheduled there. Nothing is allocated once the lists have grown.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace armilla {

struct WheelEvent {
  std::uint32_t next = 0;
  std::uint32_t kind = 0;
  std::uint32_t subject = 0;  // device, packet or flow, by kind
  std::uint32_t stamp = 0;    // an event that was called off has an old one
};

class EventWheel {
 public:
  EventWheel() : slots_(kSlots) {}

  std::int64_t now() const { return now_; }
  std::int64_t handled() const { return handled_; }

  // `time` must not be before now().
  void schedule(std::int64_t time, std::uint32_t kind, std::uint32_t subject, std::uint32_t stamp = 0) {
    std::uint32_t event = free_;
    if (event != kNone) {
      free_ = events_[event].next;
    } else {
      event = static_cast<std::uint32_t>(events_.size());
      events_.emplace_back();
    }
    events_[event] = {kNone, kind, subject, stamp};
    if (time < now_ + kSlots) {
      append(time, event);
    } else {
      far_.push_back({time, order_++, event});
      std::push_heap(far_.begin(), far_.end(), later);
    }
  }

  // Moves on to the next event not after `end` and takes it out; false if there is none.
  bool next(std::int64_t end, WheelEvent& event) {
    std::size_t slot = static_cast<std::size_t>(now_) & kMask;
    if (!occupied(slot)) {
      if (!advance(end)) return false;
      slot = static_cast<std::size_t>(now_) & kMask;
    }
    Slot& list = slots_[slot];
    const std::uint32_t index = list.head;
    event = events_[index];
    list.head = event.next;
    if (list.head == kNone) clear(slot);
    events_[index].next = free_;
    free_ = index;
    ++handled_;
    return true;
  }

  // The event after the last one taken, and after another one, where they are due at the same time; else nullptr.
  const WheelEvent* ahead() const {
    const std::size_t slot = static_cast<std::size_t>(now_) & kMask;
    return occupied(slot) ? &events_[slots_[slot].head] : nullptr;
  }
  const WheelEvent* after(const WheelEvent& event) const {
    return event.next != kNone ? &events_[event.next] : nullptr;
  }

  // Of the next event; INT64_MAX if there is none.
  std::int64_t next_time() const {
    const std::size_t here = static_cast<std::size_t>(now_) & kMask;
    if (const std::size_t slot = find(here); slot < kSlots)
      return now_ + static_cast<std::int64_t>(slot - here);
    if (const std::size_t slot = find(0); slot < here)
      return now_ + static_cast<std::int64_t>(slot + kSlots - here);
    return far_.empty() ? INT64_MAX : far_.front().time;
  }

  // The event just taken had been called off.
  void forget() { --handled_; }

 private:
  static constexpr std::int64_t kSlots = 1 << 15;
  static constexpr std::size_t kMask = kSlots - 1;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Slot {
    std::uint32_t head, tail;
  };
  struct Far {
    std::int64_t time;
    std::uint64_t order;
    std::uint32_t event;
  };
  static bool later(const Far& a, const Far& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  bool occupied(std::size_t slot) const { return (words_[slot >> 6] >> (slot & 63) & 1) != 0; }
  void clear(std::size_t slot) {
    if ((words_[slot >> 6] &= ~(std::uint64_t{1} << (slot & 63))) == 0) {
      summary_[slot >> 12] &= ~(std::uint64_t{1} << (slot >> 6 & 63));
    }
  }
  void append(std::int64_t time, std::uint32_t event) {
    const std::size_t slot = static_cast<std::size_t>(time) & kMask;
    if (occupied(slot)) {
      events_[slots_[slot].tail].next = event;
      slots_[slot].tail = event;
    } else {
      slots_[slot] = {event, event};
      words_[slot >> 6] |= std::uint64_t{1} << (slot & 63);
      summary_[slot >> 12] |= std::uint64_t{1} << (slot >> 6 & 63);
    }
  }

  // The first occupied slot from `from` to the last one, or kSlots.
  std::size_t find(std::size_t from) const {
    if (from >= kSlots) return kSlots;
    std::size_t word = from >> 6;
    if (const std::uint64_t bits = words_[word] >> (from & 63))
      return from + static_cast<std::size_t>(std::countr_zero(bits));
    if (++word >= words_.size()) return kSlots;
    std::size_t group = word >> 6;
    std::uint64_t bits = summary_[group] >> (word & 63) << (word & 63);
    while (bits == 0) {
      if (++group == summary_.size()) return kSlots;
      bits = summary_[group];
    }
    word = group * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    return word * 64 + static_cast<std::size_t>(std::countr_zero(words_[word]));
  }

  bool advance(std::int64_t end) {
    const std::int64_t time = next_time();
    if (time > end || time == INT64_MAX) return false;
    now_ = time;
    while (!far_.empty() && far_.front().time < now_ + kSlots) {
      append(far_.front().time, far_.front().event);
      std::pop_heap(far_.begin(), far_.end(), later);
      far_.pop_back();
    }
    return true;
  }

  std::vector<Slot> slots_;
  std::array<std::uint64_t, kSlots / 64> words_ = {};
  std::array<std::uint64_t, kSlots / 4096> summary_ = {};
  std::vector<WheelEvent> events_;
  std::vector<Far> far_;
  std::uint32_t free_ = kNone;
  std::uint64_t order_ = 0;
  std::int64_t now_ = 0;
  std::int64_t handled_ = 0;
};

}  // namespace armilla
