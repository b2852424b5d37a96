// The headline figures of a run: one table of their names, in which every one is a single number. What
// compares many runs (sweeps, their tables, plots and databases) keeps these of each.
//
// Names carry their unit, as in the JSON of a run: _s seconds, _bytes bytes, _per_s per second, _flops
// operations.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/study.h"

namespace armilla {

struct HeadlineFigure {
  std::string_view name;
  bool whole = false;  // a count
  std::string_view help;
  // NaN: the run has none.
  double (*of)(const Run& run);
};
std::span<const HeadlineFigure> headline_figures();

// All of them, in the order of the table. Cost: O(classes of ranks).
std::vector<double> headline_of(const Run& run);

}  // namespace armilla
