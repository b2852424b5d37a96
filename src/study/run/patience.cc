#include "study/patience.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/units_text.h"
#include "network/rough_time.h"

namespace armilla {
namespace {

// Empty where the flag takes no such time.
std::string flag_of(double seconds) {
  // The next whole number: with what the message says it begins.
  const double minutes = std::ceil(seconds / 60), hours = std::ceil(minutes / 60);
  if (from_seconds(hours * 3600) == kEndOfTime) return "";
  return "--patience " + (minutes < 120 ? fmt::format("{:.0f}min", minutes) : fmt::format("{:.0f}h", hours)) +
         " begins all the same; ";
}

// Each by itself.
PlayTime extreme_of(const std::vector<PlayTime>& times,
                    const double& (*choose)(const double&, const double&)) {
  PlayTime extreme = times.front();
  for (const PlayTime& time : times)
    extreme = {choose(extreme.least, time.least), choose(extreme.most, time.most)};
  return extreme;
}

}  // namespace

void check_patience(const ForeseenRuns& runs, const Patience& patience) {
  if (patience.asked && patience.tell && runs.network.empty() && !runs.what.empty())
    return patience.tell("--patience has no effect: it is for the networks packet and flit");
  const double longest = in_seconds(patience.longest);
  const bool varies = runs.least < runs.most;
  const std::string at_once =
      runs.at_once > 1 && runs.most > 1 ? fmt::format(", {} at once", runs.at_once) : "";
  if (runs.together.least > longest) {
    throw Error("network " + runs.network,
                fmt::format("{}{} to be simulated{}: at least about {} together, even where no messages meet",
                            varies ? fmt::format("at least {} of {}", with_separators(runs.least),
                                                 counted(runs.most, runs.what))
                                   : counted(runs.least, runs.what),
                            runs.least == 1 ? " is" : " are", at_once, rough_time(runs.together.least)),
                fmt::format("{}--network flow takes a time that does not depend on the bytes; {}",
                            flag_of(runs.together.least), runs.fewer));
  }
  if (runs.together.most <= longest || !patience.tell) return;
  patience.tell(
      fmt::format("on the network {} {} may take up to about {} together{}{}: a guess, for messages of which "
                  "very many meet, where {} is the least; Ctrl-C ends it with what it has found",
                  runs.network, counted(runs.most, runs.what), rough_time(runs.together.most), at_once,
                  varies ? ", if none can be left out" : "", rough_time(runs.together.least)));
}

PlayTime SomeRuns::shortest() const {
  return extreme_of(times, std::min<double>);
}

PlayTime SomeRuns::longest() const {
  return extreme_of(times, std::max<double>);
}

PlayTime SomeRuns::mean() const {
  PlayTime sum;
  for (const PlayTime& time : times) sum = {sum.least + time.least, sum.most + time.most};
  const auto count = static_cast<double>(times.size());
  return {sum.least / count, sum.most / count};
}

SomeRuns look_at_some(std::int64_t count,
                      const std::function<std::optional<PlayTime>(std::int64_t)>& time_of) {
  constexpr std::size_t kSome = 8;
  SomeRuns some;
  // The first, the middle, the quarters, ...
  constexpr std::array<std::int64_t, 16> kOrder = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
  for (const std::int64_t sixteenth : kOrder) {
    const std::int64_t run = count < 16 ? sixteenth : sixteenth * count / 16;
    if (run >= count || some.times.size() == kSome) continue;
    if (const std::optional<PlayTime> time = time_of(run)) {
      some.times.push_back(*time);
    } else {
      ++some.refused;
    }
  }
  return some;
}

}  // namespace armilla
