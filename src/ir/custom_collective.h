// CustomCollective: a user's own schedule of one collective: per member of the group a small graph of sends,
// receives and computations. Read from Chakra traces (one per position) or from MSCCL-XML
// (read/astra.h); executed as it stands, without chunking.
//
// A message is either as long as its file says (Chakra: whatever the call asks for, as in ASTRA-sim 2) or a
// share of the call's bytes (MSCCL: chunks of 1/nchunksperloop), rounded up to whole bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/units.h"
#include "ir/collective.h"

namespace armilla {

struct CustomNode {
  enum class Kind : std::uint8_t { send, receive, compute };
  Kind kind = Kind::compute;
  std::int32_t peer = 0;  // position in the group
  std::uint32_t tag = 0;  // the k-th send matches the k-th receive of (source, destination, tag)
  Bytes bytes;            // of a message without a share
  Time duration;          // of a computation
  // The message is share/shares of the call's bytes; shares 0: it is `bytes` long.
  std::int32_t share = 0, shares = 0;
};

// Of a message, when the call is for `call` bytes in the convention of ir/collective.h. Saturates.
inline Bytes bytes_of(const CustomNode& node, Bytes call) {
  if (node.shares == 0) return node.bytes;
  // Split, so that the product of the remainder cannot overflow: both factors are below 2^31.
  const std::int64_t rest = call.value % node.shares * node.share;
  std::int64_t whole = 0;
  if (__builtin_mul_overflow(call.value / node.shares, std::int64_t{node.share}, &whole))
    return Bytes(INT64_MAX);
  return saturating_add(Bytes(whole), Bytes(ceil_divide(rest, node.shares)));
}

struct CustomProgram {
  std::vector<CustomNode> nodes;
  std::vector<std::uint32_t> first_dependence = {0};  // CSR over nodes
  std::vector<std::uint32_t> dependence;
  std::vector<std::string> labels;  // per node, for messages: "node 17", "tb 0 step 3"

  std::span<const std::uint32_t> dependences(std::uint32_t node) const {
    return std::span(dependence)
        .subspan(first_dependence[node], first_dependence[node + std::size_t{1}] - first_dependence[node]);
  }
};

struct CustomCollective {
  std::string name;                    // where it was read from; else what reports call the algorithm
  std::optional<CollectiveKind> kind;  // what the file says it performs, if it says
  std::vector<CustomProgram> members;
};

}  // namespace armilla
