// Links of machines out of other tools' files, one function each (read/topology.h tells them apart).
#pragma once

#include <string>

#include "read/topology.h"

namespace armilla {

// InfraGraph (github.com/keysight/infragraph): devices made of components, instances of devices, and edges
// between components by slices. Components of choice npu or xpu are devices, of choice nic network
// interfaces, all others pass on what comes. Links without a bandwidth are as wide as the widest of the file,
// those without a latency take no time. Throws Error with file:line:column.
MachineLinks read_infragraph(const std::string& path);

// The network of a BookSim configuration (read/traffic.h), a device for each of its nodes. BookSim knows
// cycles and flits: a cycle is a nanosecond here, a flit has `channel_width` bits (128 unless the file says
// otherwise), and a link takes what a router and a channel of BookSim take together.
MachineLinks read_booksim_links(const std::string& path);

// ASTRA-sim's network files, 1.0's and 2's: their dimensions.
MachineLinks read_astra_links(const std::string& path, bool second);

}  // namespace armilla
