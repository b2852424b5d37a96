// A study as read -> one that can be run: the plan resolved (lower/resolve_plan.h), the machine cut or grown
// to its ranks, and what the other sections say of ranks and dimensions checked against both. Looks at the
// model only as far as it takes to know of which kind it is.
#pragma once

#include "ir/study.h"

namespace armilla {

// Throws Error.
Study prepare_study(Study study);

// Throws Error where a what-if names ranks or dimensions that `machine`, cut to `ranks`, does not have.
void check_what_if(const WhatIf& what_if, const Machine& machine, std::int64_t ranks);

}  // namespace armilla
