// How far predictions are from measurements (ir/validation.h).
#pragma once

#include <span>
#include <vector>

#include "ir/validation.h"

namespace armilla {

// `errors`: signed.
ErrorSummary summarize_errors(std::vector<double> errors);

// Of ranks, ties sharing their mean; 0 where one side has only ties or there are fewer than two.
double spearman(std::span<const double> a, std::span<const double> b);

// Over the groups of rows that were predicted and have at least kFewestPlans; rows of one study are one plan.
inline constexpr std::size_t kFewestPlans = 4;
RankingSummary summarize_rankings(const std::vector<const ValidatedRow*>& rows);

// Predicts every row from the median efficiency (work per time) of `rows`: ValidatedRow::by_constant.
void predict_by_constant(const std::vector<ValidatedRow*>& rows);

}  // namespace armilla
