// How reports of a search call plans, keys and reasons.
#pragma once

#include <string>
#include <string_view>

#include "ir/search.h"

namespace armilla {

// "tp" for "plan.tensor"; keys without a short name lose "plan.".
std::string short_key(std::string_view key);
// Whether it is a degree of parallelism, which every table shows.
bool axis_degree(std::string_view key);
// "tp 8, pp 4, dp 2, micro-batch 1, ...": what is not the only choice or was named by the user.
std::string plan_text(const SearchResult& result, const PlanOutcome& plan);
// What an objective is measured in, and that of a plan: for tables and plots. NaN where it is not known.
struct ObjectiveWords {
  std::string title;    // "cost, USD per million tokens"
  std::string heading;  // of a column
  double value = 0;
  std::string text;
};
ObjectiveWords objective_words(std::int64_t tokens_per_sample, SearchObjective objective,
                               const PlanOutcome& plan);
inline ObjectiveWords objective_words(const SearchResult& result, SearchObjective objective,
                                      const PlanOutcome& plan) {
  return objective_words(result.tokens_per_sample, objective, plan);
}
// "2.404 s", "0.12 Wh/k samples".
std::string point_text(const ObjectiveWords& words);
// Per second: "37.11", "12,390".
std::string samples_text(double rate);
// "micro-batch 8 is the largest that was tried, and 16 would be better (...)": beside the best plan.
std::string edge_text(std::int64_t tokens_per_sample, SearchObjective objective, const SearchEdge& edge,
                      const PlanOutcome& best);
// Of a key of SearchSpaceUse::refusals.
std::string reason_text(const std::string& reason);

}  // namespace armilla
