#include "ir/derived/training.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "ir/derived/short_run_testing.h"

namespace armilla {
namespace {

// 16 ranks, 4 replicas.
Run trained_run() {
  Run run = short_run(16);
  run.study.plan.tensor = 4;
  return run;
}

TEST(Training, TakesAsManyIterationsAsItHasData) {
  auto run = trained_run();
  EXPECT_FALSE(training_time(run));
  run.study.training.tokens = 32e6;
  const auto time = training_time(run);
  ASSERT_TRUE(time);
  EXPECT_DOUBLE_EQ(time->samples, 320'000);
  EXPECT_DOUBLE_EQ(time->iterations, 10'000);
  EXPECT_DOUBLE_EQ(time->seconds, 20'000);
  EXPECT_DOUBLE_EQ(time->device_seconds, 320'000);
  run.study.training = {0, 3200, ""};
  EXPECT_DOUBLE_EQ(training_time(run)->seconds, 200);
  // Failures make every iteration longer.
  run.goodput = Goodput();
  run.goodput->iteration = 2.5;
  EXPECT_DOUBLE_EQ(training_time(run)->seconds, 250);
  run.workload = "a trace";
  EXPECT_FALSE(training_time(run));
}

// 32 samples of 100 tokens make an iteration: none is shorter than a whole one.
TEST(Training, TheLastIterationCountsAsAWholeOne) {
  auto run = trained_run();
  run.study.training.tokens = 1;
  EXPECT_DOUBLE_EQ(training_time(run)->iterations, 1);
  EXPECT_DOUBLE_EQ(training_time(run)->seconds, 2);
  EXPECT_DOUBLE_EQ(training_time(run)->device_seconds, 32);
  run.study.training.tokens = 3201;
  EXPECT_DOUBLE_EQ(training_time(run)->iterations, 2);
  EXPECT_DOUBLE_EQ(training_time(run)->seconds, 4);
  run.study.training = {0, 33, ""};
  EXPECT_DOUBLE_EQ(training_time(run)->iterations, 2);
}

// A tenth of a batch of 3 and the like have no exact binary fraction.
TEST(Training, WholeNumbersOfIterationsStayWhole) {
  auto run = trained_run();
  for (std::int64_t batch = 1; batch < 60; ++batch) {
    run.study.plan.batch = batch;
    for (double iterations = 1; iterations < 2000; iterations += 7) {
      run.study.training = {iterations * 400 * static_cast<double>(batch), 0, ""};
      ASSERT_DOUBLE_EQ(training_time(run)->iterations, iterations) << batch;
    }
  }
}

TEST(Training, TokensNeedAModelThatHasSome) {
  auto run = trained_run();
  check_training({1e9, 0, "--tokens 1B"}, run.model);
  run.model.facts.sequence = 0;
  check_training({0, 1e9, "--samples 1B"}, run.model);
  EXPECT_EQ(error_of([&] {
              check_training({1e9, 0, "--tokens 1B"}, run.model);
            }),
            "--tokens 1B: model 'tiny' does not tell what a token is\n  hint: give training.samples instead");
}

}  // namespace
}  // namespace armilla
