// RankAgenda: ASTRA-sim's order of events that fall on one moment.
//
// There every rank keeps a list of callbacks per moment, and the first one registered for a moment puts the
// whole list into the global queue. So callbacks of one rank and moment run together, in order of
// registration, at the queue position of the first; a native event queue runs each at its own position. Where
// messages of several ranks meet at one moment, the difference decides who goes first. (astra-sim 2.x,
// Sys::try_register_event and call_events; 1.0 likewise.)
//
// Cost: a binary search among the rank's pending moments, few in practice; no allocation once grown.
#pragma once

#include <cstdint>
#include <vector>

#include "event/event_queue.h"
#include "sim/engine/tie_watch.h"

namespace armilla {

class RankAgenda final : public EventHandler {
 public:
  RankAgenda(std::size_t ranks, EventQueue& queue);
  RankAgenda(const RankAgenda&) = delete;
  RankAgenda& operator=(const RankAgenda&) = delete;

  // Told of every event of the only rank there is; before the first event.
  void watch(TieWatch& ties) { ties_ = &ties; }

  // `target` is a handler of the event queue; `time` must not be before now.
  void schedule(std::int32_t rank, Time time, std::uint32_t target, std::uint64_t argument);

  void handle(std::uint64_t rank) override;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Entry {
    std::uint64_t argument = 0;
    std::uint32_t target = 0;
    std::uint32_t next = kNone;  // of the same moment, into entries_
  };
  struct Moment {
    Time time;
    Entry first;
    std::uint32_t last = kNone;  // into entries_; kNone: the first is the only one
  };
  struct Rank {
    Moment next;  // the earliest, when there is any: kept here, where it is found without another look-up
    bool has_next = false;
    std::size_t head = 0;
    std::vector<Moment> others;  // later ones, ascending; those before `head` have become `next`
  };

  std::uint32_t new_entry(const Entry& entry);
  void append(Moment& moment, std::uint32_t target, std::uint64_t argument);
  void insert(Rank& rank, Time time, std::uint32_t target, std::uint64_t argument);

  EventQueue& queue_;
  TieWatch* ties_ = nullptr;
  std::uint32_t target_;
  std::vector<Rank> ranks_;
  std::vector<Entry> entries_;
  std::uint32_t free_ = kNone;
};

}  // namespace armilla
