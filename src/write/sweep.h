// What came of a sweep (ir/sweep.h): a table for the terminal, JSON with schema armilla.sweep/1, CSV with a
// line for every run (docs/formats/sweep_json.md), and plots (SVG) of a column over one key (lines) or two (a
// heat map).
#pragma once

#include <string>
#include <vector>

#include "ir/sweep.h"
#include "write/text_table.h"

namespace armilla {

std::string write_sweep_text(const SweepResult& result, const TextStyle& style);
std::string write_sweep_json(const SweepResult& result);
std::string write_sweep_csv(const SweepResult& result);

struct SweepPlot {
  std::string column = "iteration_time_s";  // of headline_figures()
  std::vector<std::string> over;  // one or two keys of the sweep; none: its first two, or the one it has
};

// Throws Error for a column or a key that is not there, and for more lines or maps than anybody could tell
// apart. `outline`: of runs that need not be there yet.
void check_sweep_plot(const SweepResult& outline, const SweepPlot& plot);

// One line for every combination of the other keys, or one heat map for each. Values that are numbers, with
// or without a unit, are placed by size, others in the order of the sweep. Throws Error as check_sweep_plot
// does, and where no run has the column.
std::string write_sweep_svg(const SweepResult& result, const SweepPlot& plot);

}  // namespace armilla
