// The CPU that issues the kernels: no computation and no communication begins before the host has issued it,
// one after the other in the order of the program (Plan::host).
//
// Every node that the device or the network executes gets a node of the host's lane in front, of the plan's
// issue time. Nothing holds the host up, so that it runs ahead of a device that is busy, and a device that is
// faster than the host waits: an operator of less than the issue time costs the issue time.
// Not modelled: the host waiting for the device (item(), synchronisations), threads that issue side by side.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/memory.h"
#include "ir/plan.h"

namespace armilla {

// Changes ids of nodes, also those that `roles` refer to. Nothing where the host is ahead.
void add_host_clock(const Plan& plan, Graph& graph, std::vector<RoleMemory>& roles);

}  // namespace armilla
