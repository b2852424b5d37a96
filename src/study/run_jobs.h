// Several jobs on one machine, each with its own model and plan, over one network.
//
// Every job is lowered by itself and placed on its devices (lower/merge_jobs.h); all are simulated together
// for one iteration each, and every job once more alone on the same devices: the difference is what the
// others cost it. Later iterations, in which jobs drift against each other, are not played.
#pragma once

#include <vector>

#include "ir/jobs.h"
#include "lower/merge_jobs.h"
#include "sim/simulate.h"

namespace armilla {

// The jobs before they are simulated.
struct LoweredJobs {
  Run run;                        // of all together: graph, machine, notes, warnings
  std::vector<Run> jobs;          // each by itself
  std::vector<PlacedJob> placed;  // pointing into `jobs`
};

// Throws Error for what lower_study would, for devices that do not exist or that two jobs want, and for the
// asynchronous schedule, which has no iteration of its own. `cost` is the shared study's.
LoweredJobs lower_jobs(const JobsStudy& study, const CostModel& cost);

// A Run without a model, with Run::jobs. Throws Error as above.
Run run_jobs(const JobsStudy& study, const SimulationOptions& options = {});

}  // namespace armilla
