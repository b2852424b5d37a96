#include "study/check/check_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/units_text.h"
#include "study/check/check_study.h"
#include "study/sweep/sweep_file.h"

namespace armilla {

std::string check_sweep_file(const std::string& path, Progress& progress) {
  constexpr std::size_t kMostRuns = 1000, kMostReasons = 5;
  const SweepFile sweep(path, {});
  struct Refusals {
    std::size_t first = 0, count = 0;  // the number of the first run, from 1
  };
  std::map<std::string, Refusals> refused;  // by message
  std::string hint;
  const std::size_t looked_at = std::min(sweep.size(), kMostRuns);
  std::size_t legal = 0;
  progress.begin("looking at the runs of " + path);
  for (std::size_t i = 0; i < looked_at; ++i) {
    const std::size_t run = i * sweep.size() / looked_at;
    try {
      check_study(sweep.config_of(run));
      ++legal;
    } catch (const Error& error) {
      if (i == 0) hint = error.hint;
      Refusals& alike =
          refused[error.where.empty() ? error.message : fmt::format("{}: {}", error.where, error.message)];
      if (alike.count++ == 0) alike.first = run + 1;
    }
    progress.update(static_cast<double>(i + 1) / static_cast<double>(looked_at));
  }
  std::vector<std::pair<std::string, Refusals>> reasons(refused.begin(), refused.end());
  std::ranges::sort(reasons, {}, [](const auto& reason) { return reason.second.first; });
  if (legal == 0) {
    if (reasons.size() == 1) throw Error("", reasons.front().first, hint);
    throw Error(path, fmt::format("every run is refused, the first because: {}", reasons.front().first),
                hint);
  }
  std::string text =
      fmt::format("sweep of {} over {}", counted(sweep.size(), "run"), fmt::join(sweep.keys(), ", "));
  if (looked_at < sweep.size())
    text += fmt::format(", of which {} were looked at", with_separators(kMostRuns));
  for (std::size_t i = 0; i < std::min(reasons.size(), kMostReasons); ++i) {
    const auto& [message, alike] = reasons[i];
    text += fmt::format("\n  warning: run {}{} refused: {}", alike.first,
                        alike.count == 1 ? " is" : fmt::format(" and {} more are", alike.count - 1), message);
  }
  if (reasons.size() > kMostReasons)
    text += fmt::format("\n  warning: others are refused for {}",
                        typed_count(reasons.size() - kMostReasons, "more reason"));
  return text;
}

}  // namespace armilla
