// The order of simultaneous events: who goes first among what happens at one moment. A run has one of these
// rules, and nothing else in it breaks ties but the labels of messages (network/network.h).
//
//   rounds      Native. Events only note what happened to a rank; at the end of the round
//               (event/event_queue.h) every rank that something happened to takes one turn and acts on
//               all of it, in an order that depends on nothing but its own state. So ranks that do the
//               same in the same surroundings stay together whatever the order of events, which is what
//               folding (sim/plan/rank_classes.h) relies on.
//   rounds_by_number
//               The same where ranks share more than links: they take their turns by number.
//   scheduling  ASTRA-sim's. There every rank keeps a list of callbacks per moment, and the first one
//               registered for a moment puts the whole list into the global queue. So callbacks of one rank
//               and moment run together, in order of registration, at the queue position of the first.
//               (astra-sim 2.x, Sys::try_register_event and call_events; 1.0 likewise.)
//   watched     The same with one rank for all. Where every rank does the same at the same time, the order of
//               two events of a rank is the same on all of them if they were scheduled at different moments,
//               or at one moment by the same rank (itself, or the same neighbour). Two that were scheduled at
//               one moment by different ranks may come in either order: the lower rank is served first, and
//               on a ring one rank's predecessor has the highest number. Such a tie means that the ranks may
//               part. By induction over events: a run without such a tie is the run of every rank.
//
// Cost: O(1) per event; by scheduling, a binary search among the rank's pending moments, few in practice; no
// allocation once grown, but when watched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "event/event_queue.h"

namespace armilla {

enum class OrderRule : std::uint8_t { rounds, rounds_by_number, scheduling, watched };

// Whom a turn concerns, in this order (sim/engine/native_run.h); `pass`: who stands in front of the engine.
enum class TurnPart : std::uint8_t { pass = 1, runner = 2, custom = 4, walker = 8 };

class Order final : public EventHandler {
 public:
  Order(OrderRule rule, std::int32_t ranks, EventQueue& queue);
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  bool in_rounds() const { return in_rounds_; }

  // An event of the rank: `target` is a handler of the event queue; `time` must not be before now.
  void schedule(std::int32_t rank, Time time, std::uint32_t target, std::uint64_t argument) {
    if (in_rounds_) {
      queue_.schedule(time, target, argument);
    } else {
      if (is_watched()) watch(time, kOwn);
      put_on_agenda(rank, time, target, argument);
    }
  }

  // In rounds: something happened to the rank, which is to take a turn; to `part` of what it is made of.
  void mark(std::int32_t rank, TurnPart part) {
    std::uint8_t& marked = marked_[static_cast<std::size_t>(rank)];
    if (marked == 0) turns_.push_back(rank);
    marked |= static_cast<std::uint8_t>(part);
  }
  bool is_marked(std::int32_t rank, TurnPart part) const {
    return (marked_[static_cast<std::size_t>(rank)] & static_cast<std::uint8_t>(part)) != 0;
  }
  // Calls `take_turn(rank)` for every marked rank; false where there is none. What a rank marks during its
  // own turn is part of it.
  template <class TakeTurn>
  bool take_turns(const TakeTurn& take_turn) {
    if (turns_.empty()) return false;
    if (rule_ == OrderRule::rounds_by_number) std::sort(turns_.begin(), turns_.end());
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      take_turn(turns_[i]);
      marked_[static_cast<std::size_t>(turns_[i])] = 0;
    }
    turns_.clear();
    return true;
  }

  // In rounds, within a turn or behind all: plays what has turns of its own, as if those of this round
  // were not there.
  template <class Play>
  void apart_from_turns(const Play& play) {
    std::vector<std::pair<std::int32_t, std::uint8_t>> marks;
    for (const std::int32_t rank : turns_)
      marks.emplace_back(rank, std::exchange(marked_[static_cast<std::size_t>(rank)], 0));
    std::vector<std::int32_t> turns;
    turns.swap(turns_);
    play();
    turns_.swap(turns);
    for (const auto& [rank, marked] : marks) marked_[static_cast<std::size_t>(rank)] = marked;
  }

  // Where one rank stands for all.
  static constexpr std::int32_t kOwn = -1;
  bool is_watched() const { return rule_ == OrderRule::watched; }
  // An event at `time` was scheduled now by `origin`: kOwn, or what tells one neighbour from another.
  void watch(Time time, std::int32_t origin);
  // The event under way waits for the same event of all other ranks: the last of them continues all. Another
  // event of this moment would come before that on some ranks, after it on others.
  void meet();
  // Whether the ranks may have parted.
  bool parted() const { return parted_; }

  void handle(std::uint64_t rank) override;  // a moment of its agenda

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr Time kNever = Time(-1);

  struct Entry {
    std::uint64_t argument = 0;
    std::uint32_t target = 0;
    std::uint32_t next = kNone;  // of the same moment, into entries_
  };
  struct Moment {
    Time time = kNever;
    Entry first;
    std::uint32_t last = kNone;  // into entries_; kNone: the first is the only one
  };
  struct Agenda {
    Moment next;  // the earliest, when there is any: kept here, where it is found without another look-up
    std::size_t head = 0;
    std::vector<Moment> others;  // later ones, ascending; those before `head` have become `next`
  };
  struct Watched {
    Time scheduled;  // the latest event of this moment
    std::int32_t origin = kOwn;
    std::int64_t events = 0;
  };

  void put_on_agenda(std::int32_t rank, Time time, std::uint32_t target, std::uint64_t argument);
  std::uint32_t new_entry(const Entry& entry);
  void append(Moment& moment, std::uint32_t target, std::uint64_t argument);
  static void take_up_next(Agenda& agenda);
  void insert(Agenda& agenda, Time time, std::uint32_t target, std::uint64_t argument);

  OrderRule rule_;
  bool in_rounds_;
  EventQueue& queue_;
  std::uint32_t target_;
  std::vector<std::uint8_t> marked_;  // in rounds, per rank
  std::vector<std::int32_t> turns_;   // of this round
  std::vector<Agenda> agendas_;       // by scheduling, per rank
  Moment running_;                    // of that rank; kNever between moments
  std::int32_t running_rank_ = -1;
  std::vector<Entry> entries_;
  std::uint32_t free_ = kNone;
  std::unordered_map<std::int64_t, Watched> watched_;  // by the moment of the event
  std::size_t watch_limit_ = 1024;
  bool parted_ = false;
};

}  // namespace armilla
