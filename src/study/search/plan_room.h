// The plans of a search's space as pieces of work: what whoever simulates them needs to know, on
// whichever process.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/memory.h"
#include "ir/search.h"
#include "study/search.h"
#include "study/search/evaluate.h"
#include "study/search/space.h"
#include "study/spread.h"

namespace armilla {

using Outcome = nlohmann::json;

// What the message of an Error is about, short enough to count by: what is searched rather than what it does
// not go with.
std::string reason_of(const Error& error);

// Of what PlanRoom::perform says; `memory` is its "memory".
std::optional<Energy> energy_in(const Outcome& json);
MemoryUse memory_in(const Outcome& memory);

class PlanRoom {
 public:
  // Throws Error for too many combinations of machines and ranks.
  explicit PlanRoom(const SearchRequest& request);

  const SearchSpace& space() const { return space_; }
  PlanEvaluator& evaluator(std::size_t base) { return *evaluators_[base]; }
  PlanPrepared prepare(std::size_t base, std::int64_t point) {
    return evaluators_[base]->prepare(space_.request_of(base, point));
  }

  // That a plan may take.
  Bytes room(const MemoryUse& memory) const {
    return Bytes(static_cast<std::int64_t>(memory_share_ * static_cast<double>(memory.capacity.value)));
  }
  bool fits(const MemoryUse& memory) const { return memory.needed() <= room(memory); }
  // Nothing where it fits.
  std::optional<BrokenLimit> broken(const MemoryUse& memory) const;

  // The number of a plan as a piece of work; of one whose time is known, for its memory alone.
  static std::int64_t piece_of(std::size_t base, std::int64_t point, bool memory_alone) {
    return (static_cast<std::int64_t>(base) << (kPointBits + 1)) |
           (memory_alone ? std::int64_t{1} << kPointBits : 0) | point;
  }
  // What comes of it: its memory; its times, where it fits and they were asked for, or that they are longer
  // than the limit, in picoseconds; or why it is refused.
  std::string perform(const Piece& piece);

 private:
  static constexpr int kPointBits = 41;  // of space.h's kMostPoints, and one more
  static constexpr std::size_t kMostBases = 1 << 20;

  SearchSpace space_;
  double memory_share_;
  std::vector<std::unique_ptr<PlanEvaluator>> evaluators_;  // per base
};

}  // namespace armilla
