#include "ir/derived/backward.h"

#include <algorithm>
#include <cmath>

namespace armilla {
namespace {

// Bytes of an operator's outputs: what a backward kernel reads as the incoming gradient.
Bytes output_bytes_of(const Model& model, const Operator& op) {
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
  // multiply-accumulate; a mask takes the same share from all of them.
  const std::int64_t products = static_cast<std::int64_t>(of_input + of_weight);
  const std::int64_t around = forward.flops.value - 2 * macs;
  work.flops = around >= 0 ? Flops(2 * macs * products + around) : forward.flops * products;
  return work;
}

Kernel backward_of(Kernel forward) {
  if (forward == Kernel::attention) return Kernel::attention_backward;
  if (forward == Kernel::flash_2) return Kernel::flash_2_backward;
  if (forward == Kernel::flash_triton) return Kernel::flash_triton_backward;
  if (forward == Kernel::scan) return Kernel::scan_backward;
  return forward == Kernel::norm ? Kernel::norm_backward : forward;
}

// The first of the forward products, up to the share of them that the kernel repeats.
void repeat_forward(const Operator& op, const Work& forward, Work& work) {
  std::int64_t macs = 0;
  for (const Gemm& gemm : forward.gemms) macs += gemm.macs();
  const double most = op.repeated_forward * static_cast<double>(macs);
  std::int64_t repeated = 0;
  for (const Gemm& gemm : forward.gemms) {
    repeated += gemm.macs();
    if (static_cast<double>(repeated) > most) break;
    work.gemms.push_back(gemm);
  }
  work.flops += Flops(std::llround(op.repeated_forward * static_cast<double>(forward.flops.value)));
}

}  // namespace

Work input_gradient(const Operator& op, const Work& forward, Bytes output_bytes) {
  if (op.is_view || forward.kind == WorkKind::none || !op.needs_input_gradient) return {};
  if (forward.kind == WorkKind::matrix) {
    Work work = matrix_gradient(forward, true, !op.weight_is_operand);
    if (!op.weight_is_operand) work.bytes += forward.bytes;  // both operands' gradients are written
    if (op.repeated_forward > 0) repeat_forward(op, forward, work);
    work.kernel = backward_of(forward.kernel);
    return work;
  }
  Work work = forward;
  work.flops = forward.flops * 2;
  work.bytes = forward.bytes + output_bytes;
  work.kernel = backward_of(forward.kernel);
  return work;
}

Work weight_gradient(const Operator& op, const Work& forward, Bytes output_bytes, bool trainable) {
  if (forward.kind == WorkKind::none) return {};
  if (op.weight_is_operand) {
    if (!trainable) return {};
    Work work = matrix_gradient(forward, false, true);
    work.kernel = Kernel::weight_gradient;
    return work;
  }
  // An operator whose input needs no gradient (an embedding, a norm on the raw input) still produces that of
  // its parameters.
  if (op.needs_input_gradient || op.parameters.empty() || !trainable) return {};
  Work work = forward;
  work.bytes = forward.bytes + output_bytes;
  return work;
}

Work input_gradient(const Model& model, const Operator& op) {
  return input_gradient(op, op.forward, output_bytes_of(model, op));
}

Work weight_gradient(const Model& model, const Operator& op) {
  const bool trainable = std::any_of(op.parameters.begin(), op.parameters.end(),
                                     [&](std::uint32_t p) { return model.parameters[p].trainable; });
  return weight_gradient(op, op.forward, output_bytes_of(model, op), trainable);
}

}  // namespace armilla
