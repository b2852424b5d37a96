// Validates a sweep without simulating any of its runs.
#pragma once

#include <string>

#include "base/progress.h"

namespace armilla {

// The file, and the study of every run as check_study.h does; of more than 1,000 runs as many, spread over
// them. Runs that are refused are an outcome of a sweep: they are told of. Throws Error for a file that is no
// sweep, and where every run is refused. Cost: a lowering for each run that is looked at.
std::string check_sweep_file(const std::string& path, Progress& progress);

}  // namespace armilla
