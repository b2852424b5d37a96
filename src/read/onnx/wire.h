// ONNX files as plain structs: the protobuf wire format walked in place, nothing copied but small lists.
//
// Field numbers are those of onnx.proto3 (ONNX 1.22, IR version 13 and below). Names are views into the file.
// A tensor's payload is never read here: `message` locates it, and read/onnx/constant.h decodes the few small
// tensors that shapes depend on. Lengths are 64 bits wide, so files beyond 2 GB work. Memory is bounded: a
// file may have at most kMaxParts nodes, attributes, names, numbers and so on, and kMaxDepth nested graphs.
// Not read: training info, metadata, documentation, quantisation annotations, device placement.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace armilla {

struct WireTensor {
  std::string_view name;
  std::int32_t data_type = 0;  // TensorProto.DataType
  std::vector<std::int64_t> dims;
  bool external = false;
  std::string_view message;  // the whole TensorProto; empty for sparse tensors, whose values are never needed
};

struct WireGraph;

struct WireValueInfo;

struct WireAttribute {
  std::string_view name;
  std::string_view reference;  // inside a function: the attribute of the call that this one stands for
  std::int64_t i = 0;
  float f = 0;
  std::string_view s;
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string_view> strings;
  std::unique_ptr<WireTensor> tensor;  // of a sparse one the dense dims
  std::unique_ptr<WireGraph> graph;
  std::unique_ptr<WireValueInfo> type;
  std::string_view message;  // the whole AttributeProto
};

struct WireNode {
  std::string_view name, type, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // "" stands for an optional one that is left out
  std::vector<WireAttribute> attributes;
};

struct WireDimension {
  std::int64_t value = 0;
  std::string_view symbol;
  bool has_value = false;
};

struct WireValueInfo {
  std::string_view name;
  std::optional<ValueKind> kind;  // absent where no type is given
  std::int32_t data_type = 0;     // of a tensor
  bool has_shape = false;
  std::vector<WireDimension> dims;
  std::unique_ptr<WireValueInfo> element;  // what a sequence or optional holds, without a name
  bool is_tensor() const { return kind == ValueKind::tensor; }
};

struct WireOpset {
  std::string_view domain;
  std::int64_t version = 0;
};

struct WireGraph {
  std::string_view name;
  std::vector<WireNode> nodes;
  std::vector<WireTensor> initializers;  // sparse ones among them, with their dense dims
  std::vector<WireValueInfo> inputs, outputs, value_infos;
};

struct WireFunction {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<WireAttribute> defaults;
  std::vector<WireOpset> opsets;
  WireGraph body;  // nodes and value_infos only
};

struct WireModel {
  std::vector<WireOpset> opsets;
  std::vector<WireFunction> functions;
  bool has_graph = false;
  WireGraph graph;
};

inline constexpr std::int64_t kMaxParts = std::int64_t{1} << 22;
inline constexpr int kMaxDepth = 32;

// The structs refer to `bytes`, which must outlive them. Throws Error, with the byte offset, for anything
// that is not an ONNX model.
WireModel parse_onnx(std::span<const char> bytes, const std::string& file);

// Whether the first bytes can be those of a ModelProto.
bool looks_like_onnx(std::span<const char> beginning);

}  // namespace armilla
