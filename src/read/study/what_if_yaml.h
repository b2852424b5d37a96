// The `what_if` section of a study (ir/what_if.h): slow ranks, degraded links, jitter, failures.
// docs/formats/study.md lists the keys.
#pragma once

#include "base/config.h"
#include "ir/machine.h"
#include "ir/what_if.h"

namespace armilla {

// `machine` names the dimensions. Ranks are checked against the plan's later (study/run.h). Throws Error.
WhatIf read_what_if(const Config& config, const Machine& machine);

}  // namespace armilla
