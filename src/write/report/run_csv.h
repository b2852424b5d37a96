// A run as tables for spreadsheets and scripts: roles.csv, collectives.csv, layers.csv, links.csv and
// timeline.csv, of hybrid plans also stages.csv and memory.csv. Columns are named in the first record, with
// their units; docs/formats/run_csv.md describes them. Times are seconds with all decimals, exact to the
// picosecond.
#pragma once

#include <string>
#include <vector>

#include "base/output_file.h"
#include "ir/study.h"
#include "write/timeline.h"

namespace armilla {

std::vector<NamedContents> write_run_csv(const Run& run, const std::string& folder,
                                         const TimelineSelection& selection = {});

}  // namespace armilla
