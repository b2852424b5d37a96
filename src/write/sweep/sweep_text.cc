#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units_text.h"
#include "ir/derived/headline.h"
#include "write/sweep.h"

namespace armilla {
namespace {

constexpr std::size_t kMostRuns = 50;

std::size_t figure_called(std::string_view name) {
  const auto figures = headline_figures();
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const HeadlineFigure& figure) { return figure.name == name; });
  return static_cast<std::size_t>(found - figures.begin());
}

double value_of(const SweepRun& run, std::string_view name) {
  return run.figures.empty() ? std::nan("") : run.figures[figure_called(name)];
}

std::string or_dash(double value, const auto& text) {
  return std::isfinite(value) ? text(value) : std::string("-");
}

std::string runs_of(std::int64_t count) {
  return fmt::format("{} {}", with_separators(count), count == 1 ? "run" : "runs");
}

}  // namespace

std::string write_sweep_text(const SweepResult& result, const TextStyle& style) {
  TextTable table;
  for (const std::string& key : result.keys)
    table.columns.push_back({key.starts_with("plan.") ? key.substr(5) : key, true, 28});
  for (const char* const name : {"iteration", "samples/s", "mfu", "memory", "exposed"})
    table.columns.push_back({name});
  const auto seconds_text = [](double value) { return to_text(Time(std::llround(value * 1e12))); };
  std::map<std::string, std::int64_t> reasons;
  for (const SweepRun& run : result.runs) {
    if (run.state == SweepState::failed) ++reasons[run.message];
    if (table.rows.size() == kMostRuns) continue;
    std::vector<std::string> row;
    for (const std::string& value : run.values) row.push_back(value.empty() ? "-" : value);
    if (run.state == SweepState::done) {
      const double time = value_of(run, "iteration_time_s");
      row.push_back(seconds_text(time));
      row.push_back(
          or_dash(value_of(run, "samples_per_s"), [](double v) { return fmt::format("{:.4g}", v); }));
      row.push_back(or_dash(value_of(run, "mfu"), [](double v) { return fmt::format("{:.1f} %", 100 * v); }));
      const bool fits = value_of(run, "memory_fits") != 0;
      row.push_back(or_dash(value_of(run, "memory_needed_bytes"), [&](double v) {
        return to_text(Bytes(std::llround(v))) + (fits ? "" : ", does not fit");
      }));
      row.push_back(or_dash(value_of(run, "exposed_communication_s") / time,
                            [](double v) { return fmt::format("{:.1f} %", 100 * v); }));
    } else {
      row.insert(row.end(), {std::string(name_of(run.state)), "", "", "", ""});
    }
    table.rows.push_back(std::move(row));
  }
  std::string text = to_text(table, 0, style);
  if (result.runs.size() > kMostRuns) {
    text += fmt::format("... and {} more\n",
                        with_separators(static_cast<std::int64_t>(result.runs.size() - kMostRuns)));
  }
  std::string sum = fmt::format("{}: {} done", runs_of(static_cast<std::int64_t>(result.runs.size())),
                                with_separators(result.count(SweepState::done)));
  if (const std::int64_t failed = result.count(SweepState::failed); failed > 0)
    sum += fmt::format(", {} failed", with_separators(failed));
  if (const std::int64_t open = result.count(SweepState::open); open > 0)
    sum += fmt::format(", {} not run", with_separators(open));
  if (result.known() > 0)
    sum += fmt::format("; {} of them known from before", with_separators(result.known()));
  if (const std::int64_t repeated = result.repeated(); repeated > 0)
    sum += fmt::format("; {} of them the same as another run", with_separators(repeated));
  text += "\n" + wrap(sum, "", style.width);
  constexpr std::size_t kMostNotes = 5;
  for (std::size_t i = 0; i < std::min(result.notes.size(), kMostNotes); ++i)
    text += wrap(result.notes[i], "note: ", style.width);
  if (result.notes.size() > kMostNotes)
    text += fmt::format("note: armilla run of a study says more ({} in all)\n", result.notes.size());
  if (result.of_other_builds > 0) {
    text +=
        wrap(fmt::format("the database has {} of other builds of Armilla as well, whose figures may differ: "
                         "they were not taken (column armilla)",
                         runs_of(result.of_other_builds)),
             "note: ", style.width);
  }
  std::vector<std::pair<std::string, std::int64_t>> by_count(reasons.begin(), reasons.end());
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr std::size_t kMostReasons = 10;
  for (std::size_t i = 0; i < std::min(by_count.size(), kMostReasons); ++i) {
    text += wrap(fmt::format("{} ({})", by_count[i].first, runs_of(by_count[i].second)),
                 "  failed: ", style.width);
  }
  if (by_count.size() > kMostReasons)
    text += fmt::format("  failed: {} in the database\n",
                        by_count.size() - kMostReasons == 1
                            ? "1 more reason is"
                            : fmt::format("{} more reasons are", by_count.size() - kMostReasons));
  return text;
}

}  // namespace armilla
