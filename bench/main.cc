#include <benchmark/benchmark.h>

#include "goal_reporter.h"

// Exit code 1: a goal was missed, or the command line is wrong.
int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  armilla::GoalReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.finish() ? 0 : 1;
}
