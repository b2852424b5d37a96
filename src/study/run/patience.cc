#include "study/patience.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/units_text.h"
#include "network/rough_time.h"

namespace armilla {
namespace {

std::string flag_of(double seconds) {
  // The next whole number: with what the message says it begins.
  const double minutes = std::ceil(seconds / 60);
  return minutes < 120 ? fmt::format("{:.0f}min", minutes) : fmt::format("{:.0f}h", std::ceil(minutes / 60));
}

}  // namespace

void check_patience(const ForeseenRuns& runs, const Patience& patience) {
  if (runs.seconds <= 0) return;
  // As many rounds as the last of them needs.
  const auto time_of = [&](std::int64_t count) {
    return runs.seconds * static_cast<double>((count + runs.at_once - 1) / runs.at_once);
  };
  const double least = time_of(runs.least), most = time_of(runs.most);
  const bool varies = runs.least < runs.most;
  const auto counted = [&](std::int64_t count) {
    return fmt::format("{} {}{}", with_separators(count), runs.what, count == 1 ? "" : "s");
  };
  const std::string each = fmt::format("a {} takes about {}", runs.what, rough_time(runs.seconds));
  const std::string at_once = runs.at_once > 1 ? fmt::format(", {} at once", runs.at_once) : "";
  if (least > in_seconds(patience.longest)) {
    throw Error(
        "network " + runs.network,
        fmt::format("{}, and {}{} to be simulated{}: {}about {} together", each,
                    varies ? fmt::format("at least {} of {}", with_separators(runs.least), counted(runs.most))
                           : counted(runs.least),
                    runs.least == 1 ? " is" : " are", at_once, varies ? "at least " : "", rough_time(least)),
        fmt::format("--patience {} begins all the same; --network flow takes a time that does not depend on "
                    "the bytes; {}",
                    flag_of(least), runs.fewer));
  }
  if (!varies || most <= in_seconds(patience.longest) || !patience.tell) return;
  patience.tell(
      fmt::format("on the network {} {}: if none of {} can be left out, about {} together{}; Ctrl-C ends it "
                  "with what it has found",
                  runs.network, each, counted(runs.most), rough_time(most), at_once));
}

double mean_of_some(std::int64_t count,
                    const std::function<std::optional<double>(std::int64_t)>& seconds_of) {
  constexpr std::int64_t kSome = 4;
  double sum = 0;
  std::int64_t known = 0;
  // The first, the middle, the quarters, ...
  constexpr std::array<std::int64_t, 16> kOrder = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
  for (const std::int64_t sixteenth : kOrder) {
    const std::int64_t run = count < 16 ? sixteenth : sixteenth * count / 16;
    if (run >= count || known == kSome) continue;
    if (const std::optional<double> seconds = seconds_of(run)) {
      sum += *seconds;
      ++known;
    }
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

}  // namespace armilla
