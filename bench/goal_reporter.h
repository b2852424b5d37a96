// Benchmarks with a goal: each says how much it should do per second, and the report ends with what it did.
//
// A benchmark calls `set_goal` once, after its loop. Rates are per second of CPU time, which other programs
// on the machine disturb less than the clock on the wall.
#pragma once

#include <benchmark/benchmark.h>

#include <string_view>
#include <vector>

namespace armilla {

// `count` things in all iterations together, `goal` per second wanted. `unit` names the things.
void set_goal(benchmark::State& state, std::string_view unit, double count, double goal);

class GoalReporter final : public benchmark::ConsoleReporter {
 public:
  GoalReporter() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override;
  // Prints one line per goal; false when one was missed.
  bool finish();

 private:
  std::vector<Run> runs_;
};

}  // namespace armilla
