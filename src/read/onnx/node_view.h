// One node with its inputs resolved: what shape rules, work rules and constant folding see.
//
// Rules read as the operator's definition does: an accessor that finds the node wrong throws an Error located
// at it; one that needs something nobody knows yet (a shape, the values of a shape tensor) throws
// OnnxUndetermined, and the shape is then sought in the file's value_info.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "read/onnx/graph.h"

namespace armilla {

// ONNX element types (TensorProto.DataType) that rules speak about.
namespace onnx_type {
inline constexpr std::int32_t kFloat = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9,
                              kDouble = 11;
}
// DType::unknown for a code that ONNX does not have.
DType dtype_of_onnx(std::int32_t element_type);

class OnnxUndetermined final : public Error {
 public:
  using Error::Error;
};

class OnnxNodeView {
 public:
  OnnxNodeView(OnnxGraph& graph, const OnnxNode& node) : graph_(graph), node_(node) {}

  const OnnxNode& node() const { return node_; }
  std::string_view type() const { return node_.type; }
  const std::string& where() const { return node_.where; }
  [[noreturn]] void undetermined(const std::string& reason) const;
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;

  std::size_t input_count() const { return node_.inputs.size(); }
  std::size_t output_count() const { return node_.outputs.size(); }
  bool has_input(std::size_t i) const { return i < input_count() && node_.inputs[i] != kNoValue; }
  bool has_output(std::size_t i) const { return i < output_count() && node_.outputs[i] != kNoValue; }
  const OnnxValue& input(std::size_t i) const;
  const OnnxValue& output(std::size_t i) const { return graph_.values[node_.outputs[i]]; }
  const Shape& input_shape(std::size_t i) const;
  // At least `rank` dimensions, else an Error.
  const Shape& input_shape(std::size_t i, std::size_t rank) const;
  const Shape& output_shape(std::size_t i) const;
  std::int64_t input_elements(std::size_t i) const { return element_count(input_shape(i), where()); }
  std::int64_t output_elements(std::size_t i) const { return element_count(output_shape(i), where()); }
  Bytes input_bytes(std::size_t i) const;
  Bytes output_bytes(std::size_t i) const;

  const OnnxConstant* constant_input(std::size_t i) const;      // nullptr when absent or not known
  std::optional<std::int64_t> number(std::size_t input) const;  // of a single known integer
  // The integers of an input, else of the attribute; nullopt when both are absent.
  std::optional<std::vector<std::int64_t>> ints(std::size_t input, std::string_view attribute) const;

  const WireAttribute* attribute(std::string_view name) const;
  std::int64_t int_attribute(std::string_view name, std::int64_t fallback) const;
  std::int64_t positive_attribute(std::string_view name) const;  // an Error unless it is at least 1
  std::string_view text_attribute(std::string_view name, std::string_view fallback) const;
  std::vector<std::int64_t> ints_attribute(std::string_view name) const;  // empty when absent

  // An axis in [-rank, rank) as a non-negative index.
  std::size_t axis(std::int64_t axis, std::size_t rank) const;

 private:
  OnnxGraph& graph_;
  const OnnxNode& node_;
};

}  // namespace armilla
