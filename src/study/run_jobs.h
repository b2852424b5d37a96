// Several jobs on one machine, each with its own model and plan, over one network.
//
// Every job is lowered by itself and placed on its devices (lower/merge_jobs.h); all are simulated together
// for one iteration each, and every job once more alone on the same devices: the difference is what the
// others cost it. Later iterations, in which jobs drift against each other, are not played.
#pragma once

#include "ir/jobs.h"
#include "sim/simulate.h"

namespace armilla {

// A Run without a model, with Run::jobs. Throws Error for what run_study would, for devices that do not exist
// or that two jobs want, and for the asynchronous schedule, which has no iteration of its own.
Run run_jobs(const JobsStudy& study, const SimulationOptions& options = {});

}  // namespace armilla
