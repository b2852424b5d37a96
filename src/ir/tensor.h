// Element types, shapes and activation tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

// tf32 is a compute precision only: it is stored as 4 bytes, like fp32.
enum class DType : std::uint8_t {
  unknown,
  fp64,
  fp32,
  tf32,
  bf16,
  fp16,
  fp8,
  fp4,
  int64,
  int32,
  int16,
  int8,
  int4,
  int2,
  boolean,
  text
};

std::string_view name_of(DType dtype);  // "fp32"
std::optional<DType> dtype_from_name(std::string_view name);
std::vector<std::string_view> dtype_names();
int bits_of(DType dtype);  // 0 for unknown and text
bool is_floating(DType dtype);

using Shape = std::vector<std::int64_t>;

// Throws Error when the product overflows or a dimension is negative; `where` names the tensor. A scalar has
// one element.
std::int64_t element_count(const Shape& shape, std::string_view where);
// Rounded up to whole bytes. Throws as element_count does.
Bytes size_of(std::int64_t elements, DType dtype, std::string_view where);
std::string to_text(const Shape& shape);  // "32x3x224x224"; "scalar"

// A sequence, an optional or a map holds tensors and has no shape of its own.
enum class ValueKind : std::uint8_t { tensor, sequence, optional, map };
std::string_view name_of(ValueKind kind);  // "sequence"

struct Tensor {
  std::string name;
  DType dtype = DType::unknown;  // of the elements, whatever holds them
  Shape shape;
  ValueKind kind = ValueKind::tensor;  // others occur among a model's inputs and outputs only
};
std::string shape_text(const Tensor& value);  // its kind, where it has no shape

}  // namespace armilla
