// The report of a run for the terminal: how long an iteration takes, where the time, the memory and the
// network's capacity went, and what to look at first. At most kReportWidth columns; definitions as in
// ir/metrics.h.
#pragma once

#include <string>

#include "ir/study.h"

namespace armilla {

std::string write_run_text(const Run& run, bool colour);

}  // namespace armilla
