// The events of a packet simulation: a wheel of one slot per nanosecond for what happens soon, a heap
// for the rest.
//
// Events leave in the order (time, order of scheduling), exactly. A slot is a list in order of scheduling; an
// event too far away for the wheel waits in the heap and enters its slot at the moment that the slot comes
// within reach, before anything else can be scheduled there. Nothing is allocated once the lists have grown.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/huge_pages.h"

namespace armilla {

struct WheelEvent {
  std::uint32_t kind = 0;
  std::uint32_t subject = 0;  // device, packet or flow, by kind
  std::uint32_t stamp = 0;    // an event that was called off has an old one
};

class EventWheel {
 public:
  EventWheel() : slots_(kSlots) {}

  std::int64_t now() const { return now_; }
  std::int64_t handled() const { return handled_; }

  // `time` must not be before now(). Every packet that leaves schedules twice: as a call this was a twentieth
  // of all that a simulation does.
  [[gnu::always_inline]] void schedule(std::int64_t time, std::uint32_t kind, std::uint32_t subject,
                                       std::uint32_t stamp = 0) {
    const WheelEvent event = {kind, subject, stamp};
    if (time < now_ + kSlots) {
      append(time, event);
    } else {
      put_off(time, event);
    }
  }

  // Moves on to the next event not after `end` and takes it out; false if there is none.
  bool next(std::int64_t end, WheelEvent& event) {
    if (taken_ == count_ && !take_chunk(end)) return false;
    event = chunks_[current_].events[taken_++];
    ++handled_;
    return true;
  }

  // Events leave in chunks of those that are due at the same time. The one just taken was the first
  // of its chunk.
  bool began_chunk() const { return taken_ == 1; }
  // What comes in the chunks after the one that is being taken, as far as it is due at the same time; asks
  // the memory for the one after these.
  template <std::size_t kChunks>
  void look_ahead(std::array<std::span<const WheelEvent>, kChunks>& chunks) const {
    const std::size_t place = static_cast<std::size_t>(now_) & kMask;
    if (!occupied(place)) return;
    const Slot& slot = slots_[place];
    const std::uint32_t last = slot.tail >> kPlaceBits;
    std::uint32_t chunk = slot.head;
    for (std::span<const WheelEvent>& events : chunks) {
      events = std::span(chunks_[chunk].events).first(chunk == last ? last_in(slot) : kChunk);
      if (chunk == last) return;
      chunk = chunks_[chunk].next;
    }
    __builtin_prefetch(&chunks_[chunk]);
  }

  // Of the next event; INT64_MAX if there is none.
  std::int64_t next_time() const { return taken_ < count_ ? now_ : next_in_slots(); }

  // Takes out all events to come for which `choose(event)` says so, in their order, and tells `take(time,
  // event)` of each.
  template <class Choose, class Take>
  void take_out(const Choose& choose, const Take& take) {
    std::vector<std::pair<std::int64_t, WheelEvent>> due;
    for (; taken_ < count_; ++taken_) due.emplace_back(now_, chunks_[current_].events[taken_]);
    for (std::int64_t time = next_in_slots(); time < now_ + kSlots; time = next_in_slots()) {
      const std::size_t place = static_cast<std::size_t>(time) & kMask;
      const Slot slot = slots_[place];
      const std::uint32_t last = slot.tail >> kPlaceBits;
      for (std::uint32_t chunk = slot.head;;) {
        const std::uint32_t count = chunk == last ? last_in(slot) : kChunk;
        for (std::uint32_t i = 0; i < count; ++i) due.emplace_back(time, chunks_[chunk].events[i]);
        const std::uint32_t next = std::exchange(chunks_[chunk].next, free_);
        free_ = chunk;
        if (chunk == last) break;
        chunk = next;
      }
      clear(place);
    }
    for (const auto& [time, event] : due) choose(event) ? take(time, event) : append(time, event);
    std::ranges::sort(far_, [](const Far& a, const Far& b) { return later(b, a); });
    std::erase_if(far_, [&](const Far& far) {
      if (!choose(far.event)) return false;
      take(far.time, far.event);
      return true;
    });
    std::ranges::make_heap(far_, later);
  }
  // Tells `visit(time, event)` of all events to come, in their order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::uint32_t i = taken_; i < count_; ++i) visit(now_, chunks_[current_].events[i]);
    for (std::int64_t time = now_; time < now_ + kSlots; ++time) {
      const std::size_t here = static_cast<std::size_t>(time) & kMask;
      std::size_t place = find(here);
      if (place == kSlots) place = find(0) + kSlots;
      time += static_cast<std::int64_t>(place - here);
      if (time >= now_ + kSlots) break;
      const Slot slot = slots_[place & kMask];
      const std::uint32_t last = slot.tail >> kPlaceBits;
      for (std::uint32_t chunk = slot.head;; chunk = chunks_[chunk].next) {
        const std::uint32_t count = chunk == last ? last_in(slot) : kChunk;
        for (std::uint32_t i = 0; i < count; ++i) visit(time, chunks_[chunk].events[i]);
        if (chunk == last) break;
      }
    }
    std::vector<const Far*> far;
    for (const Far& event : far_) far.push_back(&event);
    std::ranges::sort(far, [](const Far* a, const Far* b) { return later(*b, *a); });
    for (const Far* event : far) visit(event->time, event->event);
  }

  // Up to `time` there are no events any more.
  void pass_to(std::int64_t time) {
    now_ = time;
    while (!far_.empty() && far_.front().time < now_ + kSlots) {
      append(far_.front().time, far_.front().event);
      std::pop_heap(far_.begin(), far_.end(), later);
      far_.pop_back();
    }
  }
  // Of a wheel without events: from when on it is used.
  void begin_at(std::int64_t time) { now_ = time; }

  // The event just taken had been called off.
  void forget() { --handled_; }

 private:
  static constexpr std::int64_t kSlots = 1 << 15;
  static constexpr std::size_t kMask = kSlots - 1;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::int64_t next_in_slots() const {
    const std::size_t here = static_cast<std::size_t>(now_) & kMask;
    if (const std::size_t slot = find(here); slot < kSlots)
      return now_ + static_cast<std::int64_t>(slot - here);
    if (const std::size_t slot = find(0); slot < here)
      return now_ + static_cast<std::int64_t>(slot + kSlots - here);
    return far_.empty() ? INT64_MAX : far_.front().time;
  }

  // A slot's events, in memory as they come: so many in a line of the processor's cache.
  static constexpr std::uint32_t kChunk = 5, kPlaceBits = 3;
  struct alignas(64) Chunk {
    std::array<WheelEvent, kChunk> events;
    std::uint32_t next;
  };
  static_assert(sizeof(Chunk) == 64);
  static constexpr std::uint32_t kPlaceMask = (1U << kPlaceBits) - 1;
  struct Slot {
    std::uint32_t head;  // chunk
    std::uint32_t tail;  // the last event: its chunk, and in the lowest kPlaceBits its place there
  };
  struct Far {
    std::int64_t time;
    std::uint64_t order;
    WheelEvent event;
  };
  static bool later(const Far& a, const Far& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  void put_off(std::int64_t time, const WheelEvent& event) {
    far_.push_back({time, order_++, event});
    std::push_heap(far_.begin(), far_.end(), later);
  }
  bool occupied(std::size_t slot) const { return (words_[slot >> 6] >> (slot & 63) & 1) != 0; }
  void clear(std::size_t slot) {
    if ((words_[slot >> 6] &= ~(std::uint64_t{1} << (slot & 63))) == 0) {
      summary_[slot >> 12] &= ~(std::uint64_t{1} << (slot >> 6 & 63));
    }
  }
  void append(std::int64_t time, const WheelEvent& event) {
    const std::size_t place = static_cast<std::size_t>(time) & kMask;
    Slot& slot = slots_[place];
    if (!occupied(place)) {
      slot.head = new_chunk();
      slot.tail = slot.head << kPlaceBits;
      words_[place >> 6] |= std::uint64_t{1} << (place & 63);
      summary_[place >> 12] |= std::uint64_t{1} << (place >> 6 & 63);
    } else if ((slot.tail & kPlaceMask) + 1 < kChunk) {
      ++slot.tail;
    } else {
      const std::uint32_t last = slot.tail >> kPlaceBits, chunk = new_chunk();
      chunks_[last].next = chunk;
      slot.tail = chunk << kPlaceBits;
    }
    chunks_[slot.tail >> kPlaceBits].events[slot.tail & kPlaceMask] = event;
  }
  std::uint32_t new_chunk() {
    if (free_ == kNone) {
      chunks_.emplace_back();
      return static_cast<std::uint32_t>(chunks_.size() - 1);
    }
    return std::exchange(free_, chunks_[free_].next);
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

  static std::uint32_t last_in(const Slot& slot) { return (slot.tail & kPlaceMask) + 1; }

  bool take_chunk(std::int64_t end) {
    if (current_ != kNone) {
      chunks_[current_].next = std::exchange(free_, current_);
      current_ = kNone;
      taken_ = count_ = 0;
    }
    if (!occupied(static_cast<std::size_t>(now_) & kMask) && !advance(end)) return false;
    const std::size_t place = static_cast<std::size_t>(now_) & kMask;
    Slot& slot = slots_[place];
    current_ = slot.head;
    if (current_ == slot.tail >> kPlaceBits) {
      count_ = last_in(slot);
      clear(place);
    } else {
      count_ = kChunk;
      slot.head = chunks_[current_].next;
    }
    return true;
  }

  bool advance(std::int64_t end) {
    const std::int64_t time = next_in_slots();
    if (time > end || time == INT64_MAX) return false;
    pass_to(time);
    return true;
  }

  std::vector<Slot> slots_;
  std::array<std::uint64_t, kSlots / 64> words_ = {};
  std::array<std::uint64_t, kSlots / 4096> summary_ = {};
  HugeVector<Chunk> chunks_;
  std::uint32_t current_ = kNone;        // the chunk that events are taken from
  std::uint32_t taken_ = 0, count_ = 0;  // there
  std::vector<Far> far_;
  std::uint32_t free_ = kNone;
  std::uint64_t order_ = 0;
  std::int64_t now_ = 0;
  std::int64_t handled_ = 0;
};

}  // namespace armilla
