// Whether a SystemLayer has what a Graph asks of it: an algorithm for every kind of collective that is used,
// chunks, remote memory, and custom schedules of the size of the groups that follow them. Beforehand, because
// ASTRA-sim finds out in the middle of a run (or divides by zero). O(nodes).
#pragma once

#include <string>

#include "ir/formats/system_layer.h"
#include "ir/graph.h"

namespace armilla {

struct SystemFiles {
  std::string system, remote_memory;  // what errors call them
};

// Throws Error naming the first node that cannot be executed. Under Semantics::native, algorithms and chunks
// have defaults.
void check_system(const SystemLayer& system, const Graph& graph, const SystemFiles& files);

}  // namespace armilla
