// CustomCollective: a user's own schedule of one collective: per member of the group a small graph of sends,
// receives and computations. Read from Chakra traces (one per position) or from MSCCL-XML
// (read/custom_collective.h); executed as it stands, without chunking.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace armilla {

struct CustomNode {
  enum class Kind : std::uint8_t { send, receive, compute };
  Kind kind = Kind::compute;
  std::int32_t peer = 0;  // position in the group
  std::uint32_t tag = 0;  // the k-th send matches the k-th receive of (source, destination, tag)
  Bytes bytes;            // of a message
  Time duration;          // of a computation
};

struct CustomProgram {
  std::vector<CustomNode> nodes;
  std::vector<std::uint32_t> first_dependence = {0};  // CSR over nodes
  std::vector<std::uint32_t> dependence;

  std::span<const std::uint32_t> dependences(std::uint32_t node) const {
    return std::span(dependence)
        .subspan(first_dependence[node], first_dependence[node + std::size_t{1}] - first_dependence[node]);
  }
};

struct CustomCollective {
  std::string name;  // where it was read from
  std::vector<CustomProgram> members;
};

}  // namespace armilla
