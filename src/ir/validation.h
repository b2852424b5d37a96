// Validation: measurements beside what Armilla predicts of them, and how far the two are apart.
//
// The error of a row is (predicted - measured) / measured: negative is too fast. MAPE is the mean of the
// errors' absolute values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/measurement.h"

namespace armilla {

struct ValidatedRow {
  Measurement measured;
  std::string set;                    // that it is judged in
  std::string group;                  // rows of equal groups run one model under several plans; empty: alone
  std::optional<double> predicted;    // in the unit of the measurement
  std::string unpredicted;            // why not: the kind of reason, the same for all rows that share it
  std::string unpredicted_detail;     // and what it was in this row
  double work = 0;                    // what a constant efficiency would be proportional to; 0: unknown
  std::optional<double> by_constant;  // prediction from the set's median efficiency
  std::string likely;                 // where the prediction's time goes, for large misses
  std::string study;                  // what was run, in words
  double error() const { return *predicted / measured.value - 1; }
};

struct ErrorSummary {
  std::int64_t count = 0;
  double mape = 0, median = 0, bias = 0, p90 = 0, largest = 0;  // bias: the median signed error
};

// One model under several plans, over all such groups of a set.
struct RankingSummary {
  std::int64_t groups = 0, plans = 0;
  double spearman = 0;  // mean over groups, each weighted by its plans
  double regret = 0;    // likewise: measured time of the plan predicted best over the best measured, less 1
};

struct ValidatedSet {
  std::string name, kind;
  std::int64_t rows = 0;  // with those that could not be predicted
  ErrorSummary errors;
  ErrorSummary constant;  // of the trivial baseline; count 0: there is none
  RankingSummary ranking;
  std::vector<std::size_t> misses;  // into Validation::rows, the largest errors first
};

struct Validation {
  std::vector<std::string> files;
  std::vector<ValidatedRow> rows;
  std::vector<ValidatedSet> sets;    // in order of kind and name
  std::vector<ValidatedSet> totals;  // one per kind
  // Reason -> rows: what it was in all of them, or its kind.
  std::map<std::string, std::vector<std::size_t>> unpredicted;
};

}  // namespace armilla
