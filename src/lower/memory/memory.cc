#include "lower/memory.h"

#include <algorithm>
#include <vector>

#include "lower/data_parallel.h"
#include "lower/framework_memory.h"
#include "lower/hybrid_memory.h"

namespace armilla {
namespace {

Bytes bytes_of(const Tensor& tensor, const Plan& plan) {
  const DType dtype = is_floating(tensor.dtype) ? plan.precision : tensor.dtype;
  return size_of(element_count(tensor.shape, tensor.name), dtype, tensor.name);
}

Bytes saved_activations(const Model& model, const Plan& plan) {
  // A view stands for the tensor it shares memory with.
  std::vector<std::uint32_t> owner(model.tensors.size());
  for (std::uint32_t t = 0; t < owner.size(); ++t) owner[t] = t;
  std::vector<bool> saved(model.tensors.size());
  for (const Operator& op : model.operators) {
    if (op.is_view && !op.inputs.empty()) {
      for (const std::uint32_t output : op.outputs) owner[output] = owner[op.inputs[0]];
      continue;
    }
    if (op.saves == Saves::inputs) {
      for (const std::uint32_t input : op.inputs) saved[owner[input]] = true;
    } else if (op.saves == Saves::output) {
      for (const std::uint32_t output : op.outputs) saved[owner[output]] = true;
    }
  }
  Bytes sum;
  for (std::size_t t = 0; t < saved.size(); ++t) {
    if (saved[t]) sum += bytes_of(model.tensors[t], plan);
  }
  return sum;
}

Bytes largest_gradients(const Model& model, const Plan& plan) {
  Bytes largest;
  for (const Operator& op : model.operators) {
    if (op.is_view) continue;
    Bytes sum;
    for (const std::uint32_t input : op.inputs) sum += bytes_of(model.tensors[input], plan);
    for (const std::uint32_t output : op.outputs) sum += bytes_of(model.tensors[output], plan);
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

MemoryUse data_parallel_memory(const Model& model, const Plan& plan, const Device& device) {
  const ModelTotals sums = totals(model);
  MemoryUse use;
  use.weights = sums.parameter_bytes + sums.buffer_bytes;
  use.gradients = sums.parameter_bytes;
  use.optimizer = Bytes(sums.parameters * 4 * state_words(plan.optimizer));
  use.activations = saved_activations(model, plan);
  if (plan.ranks > 1) {
    for (const GradientBucket& bucket : gradient_buckets(model, plan))
      use.communication_buffers += bucket.bytes;
  }
  use.temporary = largest_gradients(model, plan);
  use.fragmentation =
      Bytes(static_cast<std::int64_t>(static_cast<double>(use.peak().value) * kFragmentation));
  use.capacity = device.memory;
  use.framework = framework_memory(plan, device);
  return use;
}

}  // namespace armilla
