// One run: read the model, lower it under the plan, simulate it on the machine.
//
// Every plan is lowered by the passes of lower/hybrid.h; plain data parallelism of a model that is read from a
// graph becomes PyTorch's DistributedDataParallel. The asynchronous schedule is simulated for several iterations, of which the
// result is one in the steady state (study/run/steady_state.h).
#pragma once

#include "ir/study.h"
#include "sim/simulate.h"

namespace armilla {

// The study must be prepared (study/prepare.h). Throws Error for anything it asks for that does not exist or
// does not fit together. A model that does not fit the device's memory is an answer, not an Error: it is
// simulated all the same and warned about.
Run run_study(const Study& study, const SimulationOptions& options = {});

// All of it but the simulation: the model, the graph, the memory, and what there is to say of them. `cost` is
// the study's own, for the study's usual device.
Run lower_study(const Study& study, const CostModel& cost, Progress* progress = nullptr);

}  // namespace armilla
