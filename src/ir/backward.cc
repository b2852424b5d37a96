#include "ir/backward.h"

namespace armilla {
namespace {

// Bytes of an operator's outputs: what a backward kernel reads as the incoming gradient.
Bytes output_bytes(const Model& model, const Operator& op) {
  Bytes sum;
  for (const std::uint32_t output : op.outputs) {
    const Tensor& tensor = model.tensors[output];
    sum += size_of(element_count(tensor.shape, tensor.name), tensor.dtype, tensor.name);
  }
  return sum;
}

Work matrix_gradient(const Work& forward, bool of_input, bool of_weight) {
  Work work = forward;
  work.gemms.clear();
  std::int64_t macs = 0;
  for (const Gemm& gemm : forward.gemms) {
    if (of_input) work.gemms.push_back({gemm.m, gemm.k, gemm.n, gemm.count, gemm.batch_in_m});
    if (of_weight) work.gemms.push_back({gemm.k, gemm.n, gemm.m, gemm.count, false});
    macs += gemm.macs();
  }
  // Arithmetic around the products (a bias, a softmax inside a fused operator) comes on top of two flops per
  // multiply-accumulate.
  const Flops around = Flops(forward.flops.value - 2 * macs);
  work.flops = Flops(2 * macs * static_cast<std::int64_t>(of_input + of_weight)) + around;
  return work;
}

}  // namespace

Work input_gradient(const Model& model, const Operator& op) {
  const Work& forward = op.forward;
  if (op.is_view || forward.kind == WorkKind::none || !op.needs_input_gradient) return {};
  if (forward.kind == WorkKind::matrix) {
    Work work = matrix_gradient(forward, true, !op.weight_is_operand);
    if (!op.weight_is_operand) work.bytes += forward.bytes;  // both operands' gradients are written
    return work;
  }
  Work work = forward;
  work.flops = forward.flops * 2;
  work.bytes = forward.bytes + output_bytes(model, op);
  return work;
}

Work weight_gradient(const Model& model, const Operator& op) {
  const Work& forward = op.forward;
  if (forward.kind == WorkKind::none) return {};
  if (op.weight_is_operand) {
    bool trainable = false;
    for (const std::uint32_t parameter : op.parameters)
      trainable = trainable || model.parameters[parameter].trainable;
    return trainable ? matrix_gradient(forward, false, true) : Work{};
  }
  // An operator whose input needs no gradient (an embedding, a norm on the raw input) still produces that of
  // its parameters.
  if (op.needs_input_gradient || op.parameters.empty()) return {};
  Work work = forward;
  work.bytes = forward.bytes + output_bytes(model, op);
  return work;
}

}  // namespace armilla
