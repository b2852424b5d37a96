// IssueLog: when an ASTRA-sim 2 run issued and finished each node, from its log. Ticks are nanoseconds there;
// Chakra's own visualizer calls them cycles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/formats/chakra.h"

namespace armilla {

struct IssuedNode {
  std::int32_t rank = 0;
  std::uint64_t id = 0;
  std::string name;
  ChakraNodeType type = ChakraNodeType::invalid;  // invalid: the log does not say
  std::uint64_t issued = 0, finished = 0;         // ticks
};

struct IssueLog {
  std::vector<IssuedNode> nodes;       // in order of their ends
  std::vector<IssuedNode> unfinished;  // issued, but never finished
  std::int32_t ranks = 0;              // one more than the largest
};

}  // namespace armilla
