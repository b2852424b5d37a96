#include "read/onnx_parameters.h"

#include <algorithm>

#include "read/onnx_node_view.h"

namespace armilla {
namespace {

bool is_filled_with_one_value(OnnxGraph& graph, std::uint32_t value) {
  const OnnxConstant* constant = graph.constant(value);
  if (constant == nullptr || constant->size() == 0) return false;
  for (std::size_t i = 1; i < constant->size(); ++i) {
    if (constant->real(i) != constant->real(0)) return false;
  }
  return true;
}

bool is_narrow_integer(DType dtype) {
  return dtype == DType::int8 || dtype == DType::int4;
}

bool is_numeric(DType dtype) {
  return dtype != DType::unknown && dtype != DType::boolean && dtype != DType::text && dtype != DType::int64;
}

}  // namespace

bool is_parameter(OnnxGraph& graph, const OnnxSource& source, char role) {
  const OnnxValue& value = graph.values[source.value];
  const DType dtype = dtype_of_onnx(value.element_type);
  const std::int64_t elements = element_count(*value.shape, value.name);
  if (elements == 0 || role == 'c') return false;
  if (source.accepted) return true;
  const bool weight = is_floating(dtype) || (source.quantized && is_numeric(dtype));
  const auto made_up = [&] {
    return value.from_constant_node && is_filled_with_one_value(graph, source.value);
  };
  switch (role) {
    case 'w':
      return weight;
    case 'v':
      return weight;
    case 'e':
      return weight || is_narrow_integer(dtype);
    case 'i':
      return is_numeric(dtype);
    case 'n':
      return weight && !made_up();
    default:
      return weight && elements > 1 && !made_up();
  }
}

std::optional<OnnxSource> pass_on(OnnxGraph& graph, const OnnxSource& source, char role) {
  if (role == 'c' || role == 'v') return std::nullopt;
  OnnxSource next = source;
  if (role == 'q') next.quantized = true;
  if (role == 'p' || role == 'q' || role == 'e') return next;
  if (!is_parameter(graph, source, role)) return std::nullopt;
  next.accepted = true;
  return next;
}

}  // namespace armilla
