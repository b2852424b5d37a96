#include "study/validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace armilla {
namespace {

// Of sorted numbers, between neighbours in proportion.
double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

constexpr double kHalf = 0.5, kMost = 0.9;

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    // Equal values share the mean of their places, as Spearman's coefficient demands.
    const double mean = static_cast<double>(first + end - 1) * kHalf;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = mean;
    first = end;
  }
  return ranks;
}

}  // namespace

ErrorSummary summarize_errors(std::vector<double> errors) {
  ErrorSummary summary;
  summary.count = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) return summary;
  std::sort(errors.begin(), errors.end());
  // While errors have signs: the bias is their median.
  summary.bias = quantile(errors, kHalf);
  for (double& error : errors) error = std::abs(error);
  std::sort(errors.begin(), errors.end());
  summary.mape = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  summary.median = quantile(errors, kHalf);
  summary.p90 = quantile(errors, kMost);
  summary.largest = errors.back();
  return summary;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  if (x.size() < 2) return 0;
  const double mean = static_cast<double>(x.size() - 1) * kHalf;
  double both = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    of_x += (x[i] - mean) * (x[i] - mean);
    of_y += (y[i] - mean) * (y[i] - mean);
  }
  return of_x > 0 && of_y > 0 ? both / std::sqrt(of_x * of_y) : 0;
}

RankingSummary summarize_rankings(const std::vector<const ValidatedRow*>& rows) {
  // A plan that was measured several times is one, with the mean of its measurements. What is predicted tells
  // plans apart that the same words describe.
  struct RepeatedPlan {
    double measured = 0, rows = 0;
  };
  std::map<std::string, std::map<std::pair<std::string, double>, RepeatedPlan>> groups;
  for (const ValidatedRow* row : rows) {
    if (row->group.empty() || !row->predicted) continue;
    RepeatedPlan& plan = groups[row->group][{row->study, *row->predicted}];
    plan.measured += row->measured.value;
    ++plan.rows;
  }
  RankingSummary summary;
  for (const auto& [name, plans] : groups) {
    if (plans.size() < kFewestPlans) continue;
    std::vector<double> measured, predicted;
    for (const auto& [key, plan] : plans) {
      measured.push_back(plan.measured / plan.rows);
      predicted.push_back(key.second);
    }
    const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
    const double best = *std::min_element(measured.begin(), measured.end());
    // Groups count by their plans, so that many small ones do not outweigh a large one.
    const auto weight = static_cast<double>(plans.size());
    summary.spearman += weight * spearman(measured, predicted);
    summary.regret += weight * (measured[static_cast<std::size_t>(chosen)] / best - 1);
    summary.plans += static_cast<std::int64_t>(plans.size());
    ++summary.groups;
  }
  if (summary.plans > 0) {
    summary.spearman /= static_cast<double>(summary.plans);
    summary.regret /= static_cast<double>(summary.plans);
  }
  return summary;
}

void predict_by_constant(const std::vector<ValidatedRow*>& rows) {
  std::vector<double> times;  // per unit of work
  for (const ValidatedRow* row : rows) {
    if (row->work > 0) times.push_back(row->measured.value / row->work);
  }
  if (times.empty()) return;
  std::sort(times.begin(), times.end());
  // The median: a constant that a few odd rows cannot move.
  const double usual = quantile(times, kHalf);
  for (ValidatedRow* row : rows) {
    if (row->work > 0) row->by_constant = usual * row->work;
  }
}

}  // namespace armilla
