#include "read/onnx/operators/work_rules.h"

#include <algorithm>

#include "base/checked.h"

namespace armilla::onnx_work {
namespace {

Bytes plus(Bytes a, Bytes b, const OnnxNodeView& node) {
  return Bytes(checked_add(a.value, b.value, node.where()));
}

Bytes all_outputs(const OnnxNodeView& node) {
  Bytes sum;
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (node.has_output(i) && node.output(i).shape) sum = plus(sum, node.output_bytes(i), node);
  }
  return sum;
}

// Every distinct input from `first` on: a tensor that is both operands (x * x) is read once.
Bytes all_inputs(const OnnxNodeView& node, std::size_t first = 0) {
  Bytes sum;
  const auto& inputs = node.node().inputs;
  for (std::size_t i = first; i < inputs.size(); ++i) {
    const auto here = inputs.begin() + static_cast<std::ptrdiff_t>(i);
    const bool again = std::find(inputs.begin() + static_cast<std::ptrdiff_t>(first), here, *here) != here;
    if (!again && node.has_input(i) && node.input(i).shape) sum = plus(sum, node.input_bytes(i), node);
  }
  return sum;
}

// What the arithmetic is done in: the first input that is no boolean or text, else the output.
DType arithmetic_dtype(const OnnxNodeView& node) {
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const DType dtype = dtype_of_onnx(node.input(i).element_type);
    if (is_floating(dtype)) return dtype;
  }
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (node.has_output(i)) return dtype_of_onnx(node.output(i).element_type);
  }
  return DType::unknown;
}

// Traffic is every distinct input and every output once.
void set_work(const OnnxNodeView& node, OnnxWork& result, WorkKind kind, std::int64_t flops) {
  result.work.kind = kind;
  result.work.dtype = arithmetic_dtype(node);
  result.work.flops = Flops(flops);
  result.work.bytes = plus(all_inputs(node), all_outputs(node), node);
}

std::int64_t checked_product(std::int64_t a, std::int64_t b, const OnnxNodeView& node) {
  return checked_multiply(a, b, node.where());
}

}  // namespace

// A view has no kernel: neither arithmetic nor traffic.
void view(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  result.work.dtype = arithmetic_dtype(node);
  result.is_view = true;
}

void copy(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  set_work(node, result, WorkKind::copy, 0);
}

// Operators that pick (Gather, Slice) read what they write, not their whole input. Configuration inputs are
// read whole.
void copy_output(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  set_work(node, result, WorkKind::copy, 0);
  const Bytes written = all_outputs(node);
  const bool reads = node.has_input(0) && !node.input(0).shape.value_or(Shape{}).empty();
  result.work.bytes = plus(plus(written, reads ? written : Bytes(), node), all_inputs(node, 1), node);
}

// A cast to the same type needs no kernel.
void cast(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  if (node.input(0).element_type == node.output(0).element_type) return view(node, op, result);
  copy(node, op, result);
}

void dropout(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  // From opset 12 on an input switches training on; before opset 7 the attribute is_test switched it off.
  const OnnxConstant* training = node.constant_input(2);
  const bool trains = node.has_input(2)
                          ? training == nullptr || training->size() != 1 || training->real(0) != 0
                          : node.node().opset < 7 && node.int_attribute("is_test", 0) == 0;
  if (!trains) return view(node, op, result);
  per_output(node, op, result);
}

void per_output(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  set_work(node, result, WorkKind::vector, checked_product(op.flops, node.output_elements(0), node));
}

void per_input(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  set_work(node, result, WorkKind::vector, checked_product(op.flops, node.input_elements(0), node));
}

// Sum of n operands: n - 1 additions; of a single one nothing is left to do.
void variadic(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const auto operands = static_cast<std::int64_t>(node.input_count());
  if (operands < 2) return view(node, {}, result);
  set_work(node, result, WorkKind::vector, checked_product(operands - 1, node.output_elements(0), node));
}

void batch_norm(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  // With running statistics it is one scale and one shift per element.
  const bool trains = node.int_attribute("training_mode", 0) != 0 || node.has_output(1);
  set_work(node, result, WorkKind::vector,
           checked_product(trains ? op.flops : 2, node.output_elements(0), node));
}

// One comparison or addition for every element of the window.
void pool(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const std::int64_t window = element_count(window_of(node, SIZE_MAX).kernel, node.where());
  set_work(node, result, WorkKind::vector, checked_product(window, node.output_elements(0), node));
}

void optimizer(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  // Every weight has one state, or two under Adam.
  const std::size_t weights = node.output_count() / (op.type == "Adam" ? 3 : 2);
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < weights; ++i) {
    if (node.has_output(i)) elements = checked_add(elements, node.output_elements(i), node.where());
  }
  set_work(node, result, WorkKind::vector, checked_product(op.flops, elements, node));
}

void local_response(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  // A sum of squares over `size` channels, then scale, add, power, divide.
  const std::int64_t size = std::clamp<std::int64_t>(node.int_attribute("size", 1), 1, INT32_MAX);
  set_work(node, result, WorkKind::vector, checked_product(2 * size + 4, node.output_elements(0), node));
}

}  // namespace armilla::onnx_work
