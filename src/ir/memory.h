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
  Bytes framework{};            // beside the tensors: driver, context, buffers of the collective library

  // Of what the framework's allocator holds; frameworks report this one.
  Bytes peak() const {
    return weights + gradients + optimizer + activations + communication_buffers + temporary + fragmentation;
  }
  Bytes needed() const { return saturating_add(peak(), framework); }
  bool fits() const { return needed() <= capacity; }
};

// What a rank holds besides what it holds all the time, from the start (or the end) of a node on.
struct MemoryMoment {
  std::uint32_t node = 0;  // a computation
  bool at_end = false;
  Bytes activations, temporary;
};

// Of the ranks of one program.
struct RoleMemory {
  std::string role;
  std::uint32_t program = 0;
  std::int64_t most_in_flight = 1;  // micro-batches whose activations are kept at once
  MemoryUse use;
  Bytes host;                           // what is offloaded to the CPU's memory
  std::vector<MemoryMoment> over_time;  // in the order of the program; its largest sum is that of `use`
};

}  // namespace armilla
