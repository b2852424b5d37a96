// Puts the times of a profile (ir/profile.h) into a lowered graph.
#pragma once

#include <string>

#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/model.h"
#include "ir/profile.h"

namespace armilla {

struct ProfileUse {
  std::int64_t measured = 0, interpolated = 0, modelled = 0;  // distinct computations of the graph
  std::int64_t unused = 0;     // of the profile on this device: they do not occur in the graph
  std::int64_t elsewhere = 0;  // of the profile: measured on other devices
  std::int64_t too_short = 0;  // of those measured: products faster than the device's peak
  std::string fastest;         // of these, the fastest, with its time and rate
};

// `graph` was lowered from `model` for a machine whose usual device is `device`, which computes as `cost`
// says where it does more than was measured: of operands of 8 bits and fewer that an operator casts before a
// product that was measured alone. Cost: O(nodes), and as ProfileTimes::find per distinct name and work.
ProfileUse apply_profile(const Profile& profile, const Device& device, const CostModel& cost,
                         const Model& model, Graph& graph);

// "times.csv: measured times of 12 of 14 distinct computations, the other 2 are modelled".
std::string describe(const ProfileUse& use, const Profile& profile);

// Of times that no such device can have taken; empty: there are none.
std::string warn_of_short_times(const ProfileUse& use, const Profile& profile, const Device& device);

}  // namespace armilla
