#include "read/onnx/node_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units_text.h"

namespace armilla {

DType dtype_of_onnx(std::int32_t element_type) {
  // By TensorProto.DataType. Unsigned integers are as wide as signed ones; a complex64 takes the room of an
  // fp64.
  using enum DType;
  static constexpr std::array kTypes = {unknown, fp32, int8, int8,  int16, int16, int32,   int64, text,
                                        boolean, fp16, fp64, int32, int64, fp64,  unknown, bf16,  fp8,
                                        fp8,     fp8,  fp8,  int4,  int4,  fp4,   fp8,     int2,  int2};
  if (element_type < 0 || static_cast<std::size_t>(element_type) >= kTypes.size()) return unknown;
  return kTypes[static_cast<std::size_t>(element_type)];
}

const OnnxConstant* OnnxGraph::constant(std::uint32_t value) {
  OnnxValue& v = values[value];
  if (!v.constant && !v.decode_tried) {
    v.decode_tried = true;
    if (v.tensor != nullptr) v.constant = decode_tensor(*v.tensor, file);
    // Of nothing, all values are known.
    if (!v.constant && v.shape && std::find(v.shape->begin(), v.shape->end(), 0) != v.shape->end())
      v.constant = OnnxConstant{*v.shape, is_floating(dtype_of_onnx(v.element_type)), {}, {}};
  }
  return v.constant ? &*v.constant : nullptr;
}

// One integer that is known, or nothing.
std::optional<std::int64_t> OnnxGraph::number(std::uint32_t value) {
  if (value == kNoValue) return std::nullopt;
  const OnnxConstant* known = constant(value);
  if (known == nullptr || known->size() != 1 || known->floating) return std::nullopt;
  return known->ints[0];
}

void OnnxNodeView::fail(const std::string& message, const std::string& hint) const {
  throw Error(where(), message, hint);
}

void OnnxNodeView::undetermined(const std::string& reason) const {
  throw OnnxUndetermined(where(), reason);
}

const OnnxValue& OnnxNodeView::input(std::size_t i) const {
  if (!has_input(i)) fail(fmt::format("its input {} is missing", i));
  return graph_.values[node_.inputs[i]];
}

const Shape& OnnxNodeView::input_shape(std::size_t i) const {
  const OnnxValue& value = input(i);
  if (!value.shape) undetermined(fmt::format("its input '{}' is not a tensor of known shape", value.name));
  return *value.shape;
}

const Shape& OnnxNodeView::input_shape(std::size_t i, std::size_t rank) const {
  const Shape& shape = input_shape(i);
  if (shape.size() < rank)
    fail(fmt::format("its input '{}' has the shape {}, but needs at least {}", input(i).name, to_text(shape),
                     typed_count(rank, "dimension")));
  return shape;
}

const Shape& OnnxNodeView::output_shape(std::size_t i) const {
  if (!has_output(i)) fail(fmt::format("its output {} is missing", i));
  if (!output(i).shape) fail(fmt::format("its output '{}' is not a tensor of known shape", output(i).name));
  return *output(i).shape;
}

Bytes OnnxNodeView::input_bytes(std::size_t i) const {
  return size_of(input_elements(i), dtype_of_onnx(input(i).element_type), where());
}
Bytes OnnxNodeView::output_bytes(std::size_t i) const {
  return size_of(output_elements(i), dtype_of_onnx(output(i).element_type), where());
}

const OnnxConstant* OnnxNodeView::constant_input(std::size_t i) const {
  return has_input(i) ? graph_.constant(node_.inputs[i]) : nullptr;
}

// Newer operator sets made inputs of what were attributes (axes, pads, split): either is taken.
std::optional<std::vector<std::int64_t>> OnnxNodeView::ints(std::size_t i, std::string_view name) const {
  if (has_input(i)) {
    const OnnxConstant* values = constant_input(i);
    if (values == nullptr || values->floating)
      undetermined(fmt::format("it depends on the values of '{}', which are not known", input(i).name));
    return values->ints;
  }
  if (const WireAttribute* found = name.empty() ? nullptr : attribute(name)) return found->ints;
  return std::nullopt;
}

const WireAttribute* OnnxNodeView::attribute(std::string_view name) const {
  for (const auto& [key, value] : node_.attributes) {
    if (key == name) return value;
  }
  return nullptr;
}

std::int64_t OnnxNodeView::int_attribute(std::string_view name, std::int64_t fallback) const {
  const WireAttribute* found = attribute(name);
  return found != nullptr ? found->i : fallback;
}

std::int64_t OnnxNodeView::positive_attribute(std::string_view name) const {
  const std::int64_t value = int_attribute(name, 0);
  if (value < 1 || value > INT32_MAX) fail(fmt::format("has the attribute {} = {}", name, value));
  return value;
}

std::string_view OnnxNodeView::text_attribute(std::string_view name, std::string_view fallback) const {
  const WireAttribute* found = attribute(name);
  return found != nullptr ? found->s : fallback;
}

std::vector<std::int64_t> OnnxNodeView::ints_attribute(std::string_view name) const {
  const WireAttribute* found = attribute(name);
  return found != nullptr ? found->ints : std::vector<std::int64_t>{};
}

std::optional<std::int64_t> OnnxNodeView::number(std::size_t i) const {
  return has_input(i) ? graph_.number(node_.inputs[i]) : std::nullopt;
}

// Negative axes count from the end.
std::size_t OnnxNodeView::axis(std::int64_t axis, std::size_t rank) const {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    fail(fmt::format("axis {} does not exist in {}", axis, typed_count(rank, "dimension")));
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace armilla
