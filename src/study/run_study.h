// One run: read the model, lower it under the plan, simulate it on the machine.
#pragma once

#include "ir/study.h"
#include "sim/simulate.h"

namespace armilla {

// Throws Error for anything the study asks for that does not exist or does not fit together. A model that
// does not fit the device's memory is an answer, not an Error: it is simulated all the same and warned about.
Run run_study(const Study& study, const SimulationOptions& options = {});

}  // namespace armilla
