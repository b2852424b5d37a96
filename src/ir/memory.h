// Memory a rank needs at its peak, by category, and over time.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

// What a framework holds beside weights, gradients, states and activations.
enum class MemoryBuffer : std::uint8_t {
  // Tensors, among communication buffers:
  gradient_buckets,  // gradients on their way to other replicas
  gathered_weights,  // of ZeRO-3, while a block computes
  stage_messages,    // activations and gradients that cross stages of a pipeline
  gathered_inputs,   // arrays for what tensor parallelism gathers
  freed_late,        // exchanged by tensor parallelism and not given back yet
  workspaces,        // of matrix products, and what stands for gradients that are elsewhere
  // Beside the tensors:
  context,       // the driver's share, the context and its kernels
  communicators  // of the collective library
};
inline constexpr std::array kMemoryBuffers = {MemoryBuffer::gradient_buckets, MemoryBuffer::gathered_weights,
                                              MemoryBuffer::stage_messages,   MemoryBuffer::gathered_inputs,
                                              MemoryBuffer::freed_late,       MemoryBuffer::workspaces,
                                              MemoryBuffer::context,          MemoryBuffer::communicators};
inline constexpr std::size_t kTensorBuffers = 6;  // the first of them
constexpr std::string_view name_of(MemoryBuffer buffer) {
  switch (buffer) {
    case MemoryBuffer::gradient_buckets:
      return "gradient buckets";
    case MemoryBuffer::gathered_weights:
      return "gathered weights";
    case MemoryBuffer::stage_messages:
      return "stage messages";
    case MemoryBuffer::gathered_inputs:
      return "gathered inputs";
    case MemoryBuffer::freed_late:
      return "freed late";
    case MemoryBuffer::workspaces:
      return "workspaces";
    case MemoryBuffer::context:
      return "driver and context";
    case MemoryBuffer::communicators:
      return "communicators";
  }
  return "?";
}

struct MemoryUse {
  Bytes weights;
  Bytes gradients;  // that are there at the peak; all of them, mostly
  Bytes optimizer;
  Bytes activations;    // kept from the forward for the backward pass, of all micro-batches in flight
  Bytes temporary;      // the largest working set
  Bytes fragmentation;  // allowance
  Bytes capacity;       // of the device
  std::array<Bytes, kMemoryBuffers.size()> buffers{};

  Bytes& buffer(MemoryBuffer of) { return buffers[static_cast<std::size_t>(of)]; }
  Bytes buffer(MemoryBuffer of) const { return buffers[static_cast<std::size_t>(of)]; }
  // Gradient buckets, gathered weights, messages between stages, what is freed late, workspaces.
  Bytes communication_buffers() const {
    return std::accumulate(buffers.begin(), buffers.begin() + kTensorBuffers, Bytes(0));
  }
  // Beside the tensors: driver, context, buffers of the collective library.
  Bytes framework() const {
    return saturating_add(buffer(MemoryBuffer::context), buffer(MemoryBuffer::communicators));
  }
  // Of what the framework's allocator holds; frameworks report this one.
  Bytes peak() const {
    return weights + gradients + optimizer + activations + communication_buffers() + temporary +
           fragmentation;
  }
  Bytes needed() const { return saturating_add(peak(), framework()); }
  bool fits() const { return needed() <= capacity; }
};

// What a rank holds besides what it holds all the time, from the start (or the end) of a node on.
struct MemoryMoment {
  std::uint32_t node = 0;  // a computation
  bool at_end = false;
  Bytes activations, temporary, gradients;
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
