// The machine of a measured row.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "ir/machine.h"

namespace armilla {

struct RowMachine {
  std::string device;                 // as the source calls it
  std::int64_t devices = 1;           // of the job
  std::int64_t devices_per_node = 0;  // 0: the cluster's own
  double inter_bandwidth = 0;         // per device and direction; 0: of the notes, or the cluster's own
  std::string notes{};
  // Devices that a replica's block of tensor and context parallelism has, and that all replicas of a pipeline
  // stage have: racks hold whole blocks. 0: not known.
  std::int64_t block = 0, stage = 0;
};

// Throws Error for a device that the zoo does not have.
Machine machine_of(const RowMachine& row, const std::string& where);
// Whether messages between the servers of these devices go by TCP sockets. Throws Error likewise.
bool by_sockets(const std::string& device, const std::string& where);
// The cluster that has these devices, and how many of them a server of it, or a rack without servers of its
// own, has at most; 0: any. Throws Error likewise.
std::pair<std::string, std::int64_t> server_of(const std::string& device, const std::string& where);
// The zoo's device alone. Throws Error likewise.
Device device_of_row(const std::string& device, const std::string& where);

}  // namespace armilla
