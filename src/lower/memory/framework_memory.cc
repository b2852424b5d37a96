#include "lower/memory.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla {

std::int64_t communicators(const Plan& plan) {
  // One NCCL communicator per kind of group, each with its own buffers.
  const bool experts = plan.expert > 1;
  const bool groups[] = {plan.tensor > 1, plan.context > 1, plan.pipeline > 1, plan.context * plan.data() > 1,
                         experts, experts && plan.expert_data() > 1,
                         // Within some of the replicas, and from each to its likes in the others.
                         plan.hybrid_shard > 1 && plan.hybrid_shard < plan.context * plan.data()};
  return std::count(std::begin(groups), std::end(groups), true);
}

void set_framework_memory(const Plan& plan, const Device& device, MemoryUse& use) {
  use.buffer(MemoryBuffer::context) = device.reserved;
  use.buffer(MemoryBuffer::communicators) =
      Bytes(checked_multiply(device.communicator_buffers.value, communicators(plan), device.name));
}

Bytes framework_memory(const Plan& plan, const Device& device) {
  MemoryUse use;
  set_framework_memory(plan, device, use);
  return use.framework();
}

}  // namespace armilla
