// Many runs side by side: a grid or a list of studies that differ in whatever keys of a study file, each
// simulated as `armilla run` would, their headline figures (ir/derived/headline.h) in one database
// (docs/formats/sweep_database.md).
//
// A run is known by a hash of all that its outcome depends on: every setting of its study, what the names in
// it stand for, the build of Armilla. What the database has already is not run again. A run that is refused
// is an outcome as well, and stops no other. The outcome of each is written as soon as it is there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/progress.h"
#include "ir/sweep.h"
#include "study/patience.h"
#include "study/spread.h"

namespace armilla {

struct SweepRequest {
  std::string file;                // docs/formats/sweep.md
  std::vector<Override> settings;  // of all runs
  std::string database;            // made where it is not there yet
  bool retry = false;              // run again what failed
  std::string version;             // of the program
  std::function<bool()> stopped;   // asked often, from any thread: runs under way are given up; empty: never
  Patience patience{};
  Progress* progress = &no_progress();
};

// What varies, and the runs, before any is run. Throws Error for a file that is no sweep.
SweepResult sweep_outline(const SweepRequest& request);

// Throws Error for a file that is no sweep, for a database that cannot be used, and where every run is
// refused for the same reason. A sweep that is stopped is an answer (SweepResult::complete). The crew's
// leader calls this, and its runners.
SweepResult run_sweep(const SweepRequest& request, Crew& crew);

}  // namespace armilla
