// Where a user should look for what is wrong with a plan. Texts about a plan name its choices by their keys
// in a study file ("plan.tensor 6 does not divide ..."); an error about the plan as a whole is put to the
// first of these keys that the user gave, those of the hint before those of the message. The command line
// turns keys into the flags that were typed (cli/flags/study_flags.h).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/plan.h"

namespace armilla {

// What errors about a plan as a whole call it where nothing better is known.
inline constexpr std::string_view kWholePlan = "plan";

// "plan.micro_batch 3 does not divide ..." -> "--micro-batch 3". When neither text names a key that was
// given: the file the plan stands in, or kWholePlan.
std::string place_in_plan(const PlanRequest& request, std::string_view message, std::string_view hint = {});

// Calls `check` and puts its errors in place.
template <class Check>
auto with_places(const PlanRequest& request, const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    if (error.where != request.where && error.where != kWholePlan) throw;
    throw Error(place_in_plan(request, error.message, error.hint), error.message, error.hint);
  }
}

}  // namespace armilla
