// What a rank's device holds beside the tensors of the job, outside of the framework's allocator:
//
//   Device::reserved + Device::communicator_buffers x communicators(plan)
//
// `reserved` is the driver's share and the context with its kernels; a communicator is a group of ranks (of
// tensor, context, data, expert, sharding or pipeline parallelism) with another rank in it, and its buffers
// are NCCL's or RCCL's. Both are the device's figures (machines/README.md), 0 for a device that does not say.
// Fragmentation is counted with the tensors (lower/hybrid_memory.h). NOT modelled: workspaces of libraries,
// symmetric or user-registered buffers, other processes on the device.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "ir/machine.h"
#include "ir/plan.h"

namespace armilla {

// Groups of more than one rank that a rank is in.
std::int64_t communicators(const Plan& plan);
Bytes framework_memory(const Plan& plan, const Device& device);

}  // namespace armilla
