// SCALE-Sim's reports: COMPUTE_REPORT.csv, BANDWIDTH_REPORT.csv and DETAILED_ACCESS_REPORT.csv with its
// columns, and the lines it prints, in v2's or v3's form. Numbers are written as Python does (the shortest
// decimal that reads back the same; cycles of the detailed report as 1.0). Source: simulator.py and
// scale_sim.py of both.
#pragma once

#include <string>
#include <vector>

#include "base/output_file.h"
#include "ir/formats/systolic.h"

namespace armilla {

struct ScaleSimRun {
  ScaleSimConfig config;
  std::string topology_path;  // as the user gave it
  std::vector<SystolicReport> layers;
};

std::vector<NamedContents> write_scalesim_reports(const ScaleSimRun& run, const std::string& folder);
std::string write_scalesim_text(const ScaleSimRun& run);

}  // namespace armilla
