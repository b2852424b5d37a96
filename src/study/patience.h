// Runs that play packets or flits take minutes where others take milliseconds: many of them, of a search or a
// sweep, are refused beforehand where they would take longer than anyone meant to wait.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/units.h"

namespace armilla {

struct Patience {
  Time longest = Time(3'600'000'000'000'000);  // an hour
  // Told what is good to know before the first run, a sentence; may be empty.
  std::function<void(const std::string&)> tell{};
};

struct ForeseenRuns {
  std::string what{};                // "plan"
  std::string network{};             // that they are played on
  double seconds = 0;                // that each takes, roughly; 0: too little to count
  std::int64_t least = 0, most = 0;  // how many
  std::int64_t at_once = 1;
  std::string fewer{};  // how to ask for less
};

// Throws Error where the least takes longer, and tells of it where only the most may.
void check_patience(const ForeseenRuns& runs, const Patience& patience);

// The mean of a few runs, spread over `count`, of what `seconds_of` says each takes: nothing where a run is
// refused, which says nothing of others.
double mean_of_some(std::int64_t count, const std::function<std::optional<double>(std::int64_t)>& seconds_of);

}  // namespace armilla
