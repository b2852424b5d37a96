// The report of a run for the terminal: how long an iteration takes, where the time, the memory and the
// network's capacity went, and what to look at first. Models of every kind have the same one. Tables fit the
// width of the terminal; what has the same figures is one row. Definitions as in ir/derived/metrics.h and
// ir/derived/communication.h.
#pragma once

#include <string>

#include "ir/study.h"
#include "write/text_table.h"

namespace armilla {

std::string write_run_text(const Run& run, const TextStyle& style);

}  // namespace armilla
