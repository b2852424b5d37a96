// The machine of a measured row.
#pragma once

#include <cstdint>
#include <string>

#include "ir/machine.h"

namespace armilla {

struct RowMachine {
  std::string device;                 // as the source calls it
  std::int64_t devices = 1;           // of the job
  std::int64_t devices_per_node = 0;  // 0: the cluster's own
  double inter_bandwidth = 0;         // per device and direction; 0: of the notes, or the cluster's own
  std::string notes{};
};

// Throws Error for a device that the zoo does not have.
Machine machine_of(const RowMachine& row, const std::string& where);
// The zoo's device alone. Throws Error likewise.
Device device_of_row(const std::string& device, const std::string& where);

}  // namespace armilla
