// Runs that play packets or flits take minutes where others take milliseconds: many of them, of a search or a
// sweep, are refused beforehand where they would take longer than anyone meant to wait, at the fastest rate
// there is; where they may, they are told of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/play_time.h"

namespace armilla {

struct Patience {
  Time longest = Time(3'600'000'000'000'000);  // an hour
  bool asked = false;                          // for that, by the user
  // Told what is good to know before the first run, a sentence; may be empty.
  std::function<void(const std::string&)> tell{};
};

struct ForeseenRuns {
  std::string what{};                // "plan"
  std::string network{};             // that they are played on
  std::int64_t least = 0, most = 0;  // how many
  PlayTime together{};               // of the least and of the most; 0: too little to count
  std::int64_t at_once = 1;
  std::string fewer{};  // how to ask for less
};

// Throws Error where they take longer for sure, and tells of it where they may; of patience that was asked
// for in vain, too.
void check_patience(const ForeseenRuns& runs, const Patience& patience);

// Some of many runs, spread over them.
struct SomeRuns {
  std::vector<PlayTime> times;
  std::int64_t refused = 0;  // others that were looked at

  // Of `times`, which are not none.
  PlayTime shortest() const;
  PlayTime longest() const;
  PlayTime mean() const;
};

// All of up to 8. `time_of`: nothing where a run is refused, which says nothing of others.
SomeRuns look_at_some(std::int64_t count,
                      const std::function<std::optional<PlayTime>(std::int64_t)>& time_of);

}  // namespace armilla
