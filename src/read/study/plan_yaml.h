// The `plan` section of a study: what the user said, not yet resolved (lower/plan.h fills in the rest
// and refuses what cannot be). docs/formats/study.md lists the keys; they are the words of ir/plan.h.
#pragma once

#include <span>

#include "base/config.h"
#include "ir/plan.h"

namespace armilla {

// Throws Error for unknown keys and words, numbers without sense of their own, and pairs of keys that say the
// same thing twice.
PlanRequest read_plan(const Config& config);

// Keys of a plan, and words for them, that a study has beside its plan: {"tp", "plan.tensor"}.
std::span<const OtherName> plan_keys_outside();

}  // namespace armilla
