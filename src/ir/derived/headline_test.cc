#include "ir/derived/headline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace armilla {
namespace {

double figure(const Run& run, std::string_view name) {
  const std::vector<double> figures = headline_of(run);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (headline_figures()[i].name == name) return figures[i];
  }
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

// Two classes: three ranks that compute 8 us, one that computes 4 us.
Run uneven_run() {
  Run run;
  run.result.iteration = microseconds(10);
  run.result.ranks = 4;
  run.result.classes.resize(2);
  run.result.classes[0].ranks = 3;
  run.result.classes[0].compute = microseconds(8);
  run.result.classes[1].compute = microseconds(4);
  run.result.classes[1].communication = microseconds(6);
  run.result.classes[1].exposed_communication = microseconds(2);
  return run;
}

TEST(Headline, TimesAreMeansOverAllRanks) {
  const auto run = uneven_run();
  EXPECT_EQ(figure(run, "iteration_time_s"), 10e-6);
  EXPECT_DOUBLE_EQ(figure(run, "compute_s"), 7e-6);
  EXPECT_DOUBLE_EQ(figure(run, "communication_s"), 1.5e-6);
  EXPECT_DOUBLE_EQ(figure(run, "exposed_communication_s"), 0.5e-6);
  EXPECT_EQ(figure(run, "ranks"), 4);
}

TEST(Headline, WhatARunHasNotIsNoNumber) {
  auto run = uneven_run();
  for (const char* const name :
       {"samples_per_s", "tokens_per_s", "mfu", "memory_needed_bytes", "tensor", "goodput_share"})
    EXPECT_TRUE(std::isnan(figure(run, name))) << name;
  run.model.operators.emplace_back();
  run.study.plan.ranks = 4;
  run.study.plan.batch = 5;
  EXPECT_DOUBLE_EQ(figure(run, "samples_per_s"), 2e6);
  EXPECT_TRUE(std::isnan(figure(run, "tokens_per_s")));  // an image is no token
  EXPECT_EQ(figure(run, "data"), 4);
}

TEST(Headline, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (const HeadlineFigure& figure : headline_figures())
    EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
}

}  // namespace
}  // namespace armilla
