// Runs as ASTRA-sim and SCALE-Sim make them, from their files to their reports.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "ir/formats/system_layer.h"
#include "ir/study.h"
#include "read/astra.h"
#include "sim/simulate.h"
#include "trace/text.h"
#include "write/astra.h"
#include "write/scalesim.h"

namespace armilla {

// Runs of ASTRA-sim's own inputs: traces with 2.x's configuration, text workloads with 1.0's.
//
// The files become a Graph and a SystemLayer, which the engine plays by ASTRA-sim's rules or, with `native`,
// by its own: shared links, several collectives at once, groups placed on the physical network. What cannot
// work is refused before the simulation.

struct Astra2Request {
  std::string workload;          // prefix of the traces, PREFIX.<rank>.et
  Astra2Settings settings;       // its semantics decide the backend
  std::string groups = "empty";  // the communicator groups; "empty" in the path means none if it is missing
  bool native = false;
  double compute_scale = 1, comm_scale = 1;  // without effect, as in ASTRA-sim
  ComponentChoice network;                   // instead of ASTRA-sim's backend; no name: that
};

struct Astra2Run {
  Run run;
  std::string lines;                 // what ASTRA-sim prints of the ranks
  std::string log;                   // what it logs of them
  bool wants_log = false;            // trace-enabled
  std::vector<NamedContents> files;  // of track-local-mem
};

// Intervals are kept, asked for or not, where the system file wants a log of them.
Astra2Run run_astra2(const Astra2Request& request, SimulationOptions options = {});

struct Astra1Request {
  std::string workload;  // a text file
  Astra1Settings settings;
  std::int64_t passes = 1;
  double compute_scale = 1, comm_scale = 1;
  bool native = false;
  bool simai = false;       // trace/text.h
  ComponentChoice network;  // instead of ASTRA-sim's, or of what its files choose; no name: as they say
};

struct Astra1Run {
  Run run;
  std::string lines;    // what ASTRA-sim prints of passes
  Astra1Report report;  // without the run's name and rows
};

Astra1Run run_astra1(const Astra1Request& request, const SimulationOptions& options = {});

// The native study of the same network: machine, and collectives as the system file configures them. What
// has no native counterpart is replaced, with a note.
Study native_study(const SystemLayer& system, std::vector<std::string>& notes);

// SCALE-Sim's own run: every layer of a topology on the accelerator of a configuration, one after the other.

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
ScaleSimAnswer run_scalesim(const ScaleSimRequest& request, Progress& meter = no_progress());

}  // namespace armilla
