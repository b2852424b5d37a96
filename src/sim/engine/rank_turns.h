// Whose turn it is. In a native run, events only note what happened to a rank; at the end of the round
// (event/event_queue.h) every rank that something happened to acts once on all of it, in an order that
// depends on nothing but its own state. So ranks that do the same in the same surroundings stay together
// whatever the order of events, which is what folding (sim/fold/rank_classes.h) relies on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace armilla {

class RankTurns {
 public:
  // `ascending`: turns are taken by number, for ranks that share more than links.
  RankTurns(std::int32_t ranks, bool ascending)
      : marked_(static_cast<std::size_t>(ranks)), ascending_(ascending) {}

  void mark(std::int32_t rank) {
    if (marked_[static_cast<std::size_t>(rank)] != 0) return;
    marked_[static_cast<std::size_t>(rank)] = 1;
    ranks_.push_back(rank);
  }

  // Calls `take_turn(rank)` for every marked rank. What a rank marks during its own turn is part of it.
  template <class TakeTurn>
  void take(const TakeTurn& take_turn) {
    if (ascending_) std::sort(ranks_.begin(), ranks_.end());
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      take_turn(ranks_[i]);
      marked_[static_cast<std::size_t>(ranks_[i])] = 0;
    }
    ranks_.clear();
  }

 private:
  std::vector<std::uint8_t> marked_;
  std::vector<std::int32_t> ranks_;
  bool ascending_;
};

}  // namespace armilla
