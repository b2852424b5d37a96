// Where a user should look for what is wrong with a plan: an error about the plan as a whole is put to the
// first of the keys that its message names and the user gave.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/plan.h"

namespace armilla {

// `request.where` when the message names none. "micro_batch 3 does not divide ..." -> "--micro-batch 3".
std::string place_in_plan(const PlanRequest& request, std::string_view message);

// Calls `check` and puts its errors in place.
template <class Check>
auto with_places(const PlanRequest& request, const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    if (error.where != request.where) throw;
    throw Error(place_in_plan(request, error.message), error.message, error.hint);
  }
}

}  // namespace armilla
