#include "goal_reporter.h"

#include <fmt/format.h>

namespace armilla {
namespace {

constexpr const char* kGoal = "goal";
constexpr const char* kRate = "per_second";

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
    if (rate == run.counters.end() || goal == run.counters.end()) continue;
    const double share = rate->second / goal->second;
    met = met && share >= 1;
    GetOutputStream() << fmt::format("{:<44} {:>8.2f} / {:.2f} million {}/s = {:.2f}{}\n",
                                     run.benchmark_name(), rate->second / 1e6, goal->second / 1e6,
                                     run.report_label, share, share >= 1 ? "" : "  MISSED");
  }
  return met;
}

}  // namespace armilla
