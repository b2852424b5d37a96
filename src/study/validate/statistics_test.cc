#include "study/validate/statistics.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(Statistics, SummarisesErrors) {
  const ErrorSummary e = summarize_errors({-0.1, 0.3, -0.2});
  EXPECT_EQ(e.count, 3);
  EXPECT_NEAR(e.mape, 0.2, 1e-12);
  EXPECT_NEAR(e.median, 0.2, 1e-12);
  EXPECT_NEAR(e.bias, -0.1, 1e-12);
  EXPECT_NEAR(e.largest, 0.3, 1e-12);
  EXPECT_EQ(summarize_errors({}).count, 0);
}

TEST(Statistics, RanksWithTies) {
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{10, 20, 30}), 1, 1e-12);
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{3, 2, 1}), -1, 1e-12);
  EXPECT_EQ(spearman(std::vector<double>{1, 2}, std::vector<double>{5, 5}), 0);
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
  EXPECT_NEAR(spearman(std::vector<double>{1, 2, 2, 3}, std::vector<double>{1, 2, 3, 4}), 0.9486832980505138,
              1e-12);
}

// Of plan number `predicted`.
ValidatedRow row(const std::string& group, double measured, double predicted) {
  ValidatedRow r;
  r.group = group;
  r.study = std::to_string(predicted);
  r.measured.value = measured;
  r.predicted = predicted;
  r.work = measured;
  return r;
}

TEST(Statistics, RegretIsThatOfThePlanPredictedBest) {
  const std::vector<ValidatedRow> rows = {row("a", 1.0, 4), row("a", 1.2, 1), row("a", 2, 5),
                                          row("a", 2, 6),   row("a", 4, 6),   row("b", 9, 9)};
  std::vector<const ValidatedRow*> all;
  for (const ValidatedRow& r : rows) all.push_back(&r);
  const RankingSummary ranking = summarize_rankings(all);
  EXPECT_EQ(ranking.groups, 1);  // b has too few plans, and the last of a was measured twice
  EXPECT_EQ(ranking.plans, 4);
  EXPECT_NEAR(ranking.regret, 0.2, 1e-12);
  EXPECT_NEAR(ranking.spearman, 0.8, 1e-12);
}

TEST(Statistics, TheConstantIsTheMedianEfficiency) {
  std::vector<ValidatedRow> rows = {row("", 1, 1), row("", 4, 1), row("", 9, 1)};
  for (ValidatedRow& r : rows) r.work = 2;
  rows.push_back(row("", 5, 1));
  rows.back().work = 0;
  std::vector<ValidatedRow*> all;
  for (ValidatedRow& r : rows) all.push_back(&r);
  predict_by_constant(all);
  EXPECT_EQ(rows[0].by_constant, 4.0);
  EXPECT_FALSE(rows[3].by_constant.has_value());
}

}  // namespace
}  // namespace armilla
