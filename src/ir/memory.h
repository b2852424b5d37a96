// Memory a rank needs at its peak, by category, and over time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace armilla {

struct MemoryUse {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;            // kept from the forward for the backward pass, of all micro-batches in flight
  Bytes communication_buffers;  // gradient buckets, gathered weights, boundary activations
  Bytes temporary;              // the largest working set
  Bytes fragmentation;          // allowance
  Bytes capacity;               // of the device

  Bytes peak() const {
    return weights + gradients + optimizer + activations + communication_buffers + temporary + fragmentation;
  }
  bool fits() const { return peak() <= capacity; }
};

// A node of a program that makes memory at its start or frees it at its end.
struct MemoryChange {
  std::uint32_t node = 0;
  std::int64_t bytes = 0;  // positive: allocated when the node starts; negative: freed when it ends
};

// Of the ranks of one program.
struct RoleMemory {
  std::string role;
  std::uint32_t program = 0;
  std::int64_t most_in_flight = 1;  // micro-batches whose activations are kept at once
  MemoryUse use;
  Bytes host;                             // what is offloaded to the CPU's memory
  std::vector<MemoryChange> activations;  // in order of node
};

}  // namespace armilla
