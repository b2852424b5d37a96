#include "ir/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace armilla {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int bits;
  bool floating;
};

constexpr std::array kDTypes = {
    DTypeInfo{DType::unknown, "unknown", 0, false}, DTypeInfo{DType::fp64, "fp64", 64, true},
    DTypeInfo{DType::fp32, "fp32", 32, true},       DTypeInfo{DType::tf32, "tf32", 32, true},
    DTypeInfo{DType::bf16, "bf16", 16, true},       DTypeInfo{DType::fp16, "fp16", 16, true},
    DTypeInfo{DType::fp8, "fp8", 8, true},          DTypeInfo{DType::fp4, "fp4", 4, true},
    DTypeInfo{DType::int64, "int64", 64, false},    DTypeInfo{DType::int32, "int32", 32, false},
    DTypeInfo{DType::int16, "int16", 16, false},    DTypeInfo{DType::int8, "int8", 8, false},
    DTypeInfo{DType::int4, "int4", 4, false},       DTypeInfo{DType::int2, "int2", 2, false},
    DTypeInfo{DType::boolean, "bool", 8, false},    DTypeInfo{DType::text, "string", 0, false}};

const DTypeInfo& info_of(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::string_view name_of(DType dtype) {
  return info_of(dtype).name;
}
int bits_of(DType dtype) {
  return info_of(dtype).bits;
}
bool is_floating(DType dtype) {
  return info_of(dtype).floating;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  const auto found = std::find_if(kDTypes.begin() + 1, kDTypes.end(),
                                  [&](const DTypeInfo& info) { return info.name == name; });
  return found == kDTypes.end() ? std::nullopt : std::optional(found->dtype);
}

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (auto info = kDTypes.begin() + 1; info != kDTypes.end(); ++info) names.push_back(info->name);
  return names;
}

std::string_view name_of(ValueKind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"tensor", "sequence", "optional", "map"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::int64_t element_count(const Shape& shape, std::string_view where) {
  std::int64_t count = 1;
  // A zero dimension makes the product zero only after the others were checked for overflow.
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0)
      throw Error(std::string(where), fmt::format("the shape {} has a negative dimension", to_text(shape)));
    if (dimension == 0) {
      empty = true;
    } else {
      count = checked_multiply(count, dimension, where);
    }
  }
  return empty ? 0 : count;
}

// Rounded up to whole bytes: numbers of four or two bits are packed.
Bytes size_of(std::int64_t elements, DType dtype, std::string_view where) {
  return Bytes(checked_add(checked_multiply(elements, bits_of(dtype), where), 7, where) / 8);
}

std::string shape_text(const Tensor& value) {
  return value.kind == ValueKind::tensor ? to_text(value.shape) : std::string(name_of(value.kind));
}

std::string to_text(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace armilla
