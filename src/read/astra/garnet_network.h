// ASTRA-sim 1.0's network files for its Garnet backend: "key: value" words. Keys, units and topologies are
// those of its network_inputs/README.md; a cycle is a nanosecond (a clock of 1 GHz).
//
//   Torus3D   rings along three dimensions: NPUs of a package, columns and rows of packages. `local-rings` go
//             one way each, half of them clockwise; vertical- and horizontal-rings are pairs. Torus2D:
//             columns and rows, of packages with one NPU
//   NV_Switch `links-per-tile` switches, each with a link to and from every NPU
//   AllToAll  rings in packages, and such switches
// A hop takes router-latency + link-latency cycles. Where flits are wider than a link, one takes
// ceil(flit-width / link width) cycles on it, and each end of the link two more (Garnet's bridges).
#pragma once

#include <string>
#include <vector>

#include "read/astra.h"

namespace armilla {

// By its keys. False, too, where the file cannot be read.
bool is_garnet_network(const std::string& path);

// Sets dimensions, links and the network of `system`. Throws Error.
void read_garnet_network(const Astra1Settings& settings, SystemLayer& system,
                         std::vector<std::string>& warnings);

}  // namespace armilla
