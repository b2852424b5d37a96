// Communicators: named groups of ranks that a trace's collectives refer to (Chakra's pg_name, ASTRA-sim 2's
// comm-group file, PyTorch's process-group metadata). Member lists are in communicator order.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace armilla {

struct Communicator {
  std::vector<std::int32_t> ranks;
  std::string where;  // file and line or node it was read from
};

using Communicators = std::map<std::string, Communicator>;

}  // namespace armilla
