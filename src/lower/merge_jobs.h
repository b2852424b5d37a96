// Several jobs on one machine: their graphs become one, so that they share its network.
//
// Rank i of a job runs on device `devices[i]`; devices without a job run an empty program. A job that starts
// later waits in a pause before its first nodes. Tags of messages need no care: two jobs never share a pair
// of ranks. Cost: O(nodes + ranks x families).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace armilla {

struct PlacedJob {
  const Graph* graph = nullptr;
  std::string name;                   // begins the names of its programs and families
  std::vector<std::int32_t> devices;  // one per rank
  Time start;
};

// `devices`: of the machine. Throws Error for a device that does not exist or that two jobs want.
Graph merge_jobs(std::span<const PlacedJob> jobs, std::int64_t devices);

}  // namespace armilla
