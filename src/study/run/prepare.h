// The parts of prepare_study (study/run.h), for those who prepare many plans of one study.
#pragma once

#include <cstdint>

#include "ir/study.h"

namespace armilla {

// The names of the network and of algorithms, and the network's parameters: what is wrong whatever the plan.
// Throws Error.
void check_names(const Study& study);
// What no plan changes: a valid machine, profiles read, and the precision of `study.request` where the
// machine decides it.
void prepare_all_but_plan(Study& study);
// The request's plan on the machine as given, but for its host. `described`: is_described of the study's
// model (read/read.h), which looks into its file.
Plan resolved_plan(const Study& study, const PlanRequest& request, bool described);
// The machine cut or grown to so many ranks, shaped for the plan's innermost_block; after that settle_host
// (lower/plan.h) knows the plan's host.
void fit_machine(Study& study, std::int64_t ranks, std::int64_t block);

}  // namespace armilla
