#include "goal_reporter.h"

#include <fmt/format.h>

namespace armilla {
namespace {

constexpr const char* kGoal = "goal";
constexpr const char* kRate = "per_second";

// "12.3 million" as well as "0.42".
std::string amount_text(double amount) {
  constexpr double kMillion = 1e6;
  return amount >= kMillion ? fmt::format("{:.3g} million", amount / kMillion)
                            : fmt::format("{:.4g}", amount);
}

}  // namespace

void set_goal(benchmark::State& state, std::string_view unit, double count, double goal) {
  state.counters[kRate] = benchmark::Counter(count, benchmark::Counter::kIsRate);
  state.counters[kGoal] = goal;
  state.SetLabel(std::string(unit));
}

void GoalReporter::ReportRuns(const std::vector<Run>& runs) {
  ConsoleReporter::ReportRuns(runs);
  runs_.insert(runs_.end(), runs.begin(), runs.end());
}

bool GoalReporter::finish() {
  bool met = true;
  GetOutputStream() << "\nmeasured / goal\n";
  for (const Run& run : runs_) {
    const auto rate = run.counters.find(kRate);
    const auto goal = run.counters.find(kGoal);
    if (rate == run.counters.end() || goal == run.counters.end() || run.run_type != Run::RT_Iteration)
      continue;
    const double share = rate->second / goal->second;
    met = met && share >= 1;
    GetOutputStream() << fmt::format("{:<44} {:>12} / {} {}/s = {:.2f}{}\n", run.benchmark_name(),
                                     amount_text(rate->second), amount_text(goal->second), run.report_label,
                                     share, share >= 1 ? "" : "  MISSED");
  }
  return met;
}

}  // namespace armilla
