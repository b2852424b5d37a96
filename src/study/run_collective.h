// One collective by itself, as nccl-tests measures it: all ranks of a machine begin it at time 0.
#pragma once

#include "ir/collective.h"
#include "ir/study.h"
#include "sim/simulate.h"

namespace armilla {

// `machine` is a study without a model (read_machine_study); its request may say how many ranks take part. A
// Run without a model. Throws Error as run_study does.
Run run_collective(const Study& machine, CollectiveKind kind, Bytes bytes,
                   const SimulationOptions& options = {});

}  // namespace armilla
