#include "ir/derived/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error_testing.h"

namespace armilla {
namespace {

Failures thousand_nodes() {
  Failures failures;
  failures.mtbf_of_node = 1000 * 3600.0 * 10;  // the job of 1000 nodes: every 10 h
  failures.ranks_per_node = 8;
  failures.checkpoint = 60;
  failures.restart = 600;
  return failures;
}

TEST(Goodput, OptimumIsNearYoungsForShortCheckpoints) {
  const Goodput result = goodput(thousand_nodes(), 8000, 10, "what_if.failures");
  EXPECT_DOUBLE_EQ(result.mtbf, 36000);
  EXPECT_DOUBLE_EQ(result.failures_per_day, 2.4);
  const double young = std::sqrt(2 * 60 * 36000.0);
  EXPECT_NEAR(result.optimal_interval, young, 0.03 * young);
  // Daly 2006, equation 37.
  const double d = 60 / (2 * 36000.0);
  const double daly = young * (1 + std::sqrt(d) / 3 + d / 9) - 60;
  EXPECT_NEAR(result.optimal_interval, daly, 1e-3 * daly);
  EXPECT_DOUBLE_EQ(result.interval, result.optimal_interval);
  EXPECT_DOUBLE_EQ(result.iteration, 10 / result.share);
}

TEST(Goodput, NoOtherIntervalIsBetter) {
  Failures failures = thousand_nodes();
  const Goodput best = goodput(failures, 8000, 10, "what_if.failures");
  for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) {
    failures.interval = best.optimal_interval * factor;
    EXPECT_LT(goodput(failures, 8000, 10, "what_if.failures").share, best.share) << factor;
  }
}

// The same job played with random failures.
TEST(Goodput, AgreesWithAPlayedJob) {
  const Failures failures = thousand_nodes();
  const Goodput result = goodput(failures, 8000, 10, "what_if.failures");
  std::mt19937_64 random(7);
  std::exponential_distribution<double> next(1 / result.mtbf);
  double wall = 0, trained = 0;
  for (int interval = 0; interval < 400000; ++interval) {
    double failure = next(random);
    const double needed = result.interval + failures.checkpoint;
    while (failure < needed) {
      wall += failure;
      failure = next(random);
      while (failure < failures.restart) {
        wall += failure;
        failure = next(random);
      }
      wall += failures.restart;
      failure = next(random);  // the process has no memory
    }
    wall += needed;
    trained += result.interval;
  }
  EXPECT_NEAR(result.share, trained / wall, 0.002);
}

TEST(Goodput, PartOfANodeIsANode) {
  EXPECT_DOUBLE_EQ(goodput(thousand_nodes(), 1, 10, "").mtbf, goodput(thousand_nodes(), 8, 10, "").mtbf);
  EXPECT_DOUBLE_EQ(goodput(thousand_nodes(), 9, 10, "").mtbf, goodput(thousand_nodes(), 16, 10, "").mtbf);
}

TEST(Goodput, FreeCheckpointsAreWrittenAfterEveryIteration) {
  Failures failures = thousand_nodes();
  failures.checkpoint = 0;
  const Goodput result = goodput(failures, 8000, 10, "");
  EXPECT_DOUBLE_EQ(result.interval, 10);
  EXPECT_DOUBLE_EQ(result.iterations, 1);
}

TEST(Goodput, NoCheckpointIsWrittenWithinAnIteration) {
  Failures failures = thousand_nodes();
  failures.interval = 1;
  failures.interval_where = "--set what_if.failures.interval=1s";
  EXPECT_EQ(error_of([&] { goodput(failures, 8000, 4.5236, ""); }),
            "--set what_if.failures.interval=1s: a checkpoint every 1 s, but an iteration takes 4.524 s\n"
            "  hint: a checkpoint follows a whole iteration: give a longer interval, or leave it out for the "
            "best");
  failures.interval = 4.5236;
  EXPECT_DOUBLE_EQ(goodput(failures, 8000, 4.5236, "").iterations, 1);
  // Nor by the optimum.
  failures.interval = 0;
  failures.checkpoint = 1e-6;
  EXPECT_DOUBLE_EQ(goodput(failures, 8000, 600, "").optimal_interval, 600);
}

TEST(Goodput, AJobThatCannotProgressIsAnError) {
  Failures failures = thousand_nodes();
  failures.restart = 1e9;
  EXPECT_EQ(
      error_of([&] { goodput(failures, 8000, 10, "study.yaml:3:5: what_if.failures"); }),
      "study.yaml:3:5: what_if.failures: a job that fails every 10 h never completes 33.98 min of training, "
      "60 s of checkpoint and 31.69 years of restart\n  hint: write checkpoints more often or faster, or use "
      "nodes that last longer");
}

}  // namespace
}  // namespace armilla
