// SCALE-Sim's own run: every layer of a topology on the accelerator of a configuration, one after the other.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "write/scalesim_report.h"

namespace armilla {

struct ScaleSimRequest {
  std::string config, topology;  // paths; no topology: the configuration's own
  bool products = false;         // the topology is a table of M, N, K
};

struct ScaleSimAnswer {
  ScaleSimRun run;
  std::vector<std::string> notes;
};

// Equal layers are simulated once; `meter` is told the share of
// the multiply-accumulates that is done. Throws Error.
ScaleSimAnswer run_scalesim(const ScaleSimRequest& request, Progress* meter = nullptr);

}  // namespace armilla
