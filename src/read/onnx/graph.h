// An ONNX graph made flat and definite: functions and subgraphs inlined, every dimension a number.
//
// Values are static when they follow from initializers and constants alone. Static values carry the tensors
// they are made of (`sources`, see read/onnx/sources.h), so that a weight behind Transpose, Cast or
// DequantizeLinear is attributed to the operator that finally uses it; the operators that produce them are
// not in `nodes` (a runtime folds them), except matrix products, which are real work. Operators whose result
// is a small constant (shape arithmetic) are not in `nodes` either.
//
// Subgraphs: If takes the branch its condition names, else the one that fits the recorded shapes, else the
// one with more arithmetic. Loop and Scan need a known trip count; a body whose shapes stay the same appears
// once, with OnnxNode::repeat, any other as often as it runs. Sequences are followed element by element as
// long as their length is known; the operators that only put them together cost nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/tensor.h"
#include "read/onnx/constant.h"
#include "read/onnx/wire.h"
#include "read/read.h"

namespace armilla {

inline constexpr std::uint32_t kNoValue = UINT32_MAX;  // an optional input or output that is left out

// A stored or made tensor on its way to an operator.
struct OnnxSource {
  std::uint32_t value = 0;  // of the initializer, the Constant or what makes it
  bool accepted = false;    // an operator on the way already showed that it is a parameter
  bool quantized = false;   // its integers are weights: came through DequantizeLinear or became floating
  bool reduced = false;     // summed up on the way, so it is not the tensor itself that goes on
  bool spread = false;      // came through a root: a variance, as the norm that follows needs it
  bool frozen = false;      // an operator on the way showed that training does not change it
  friend bool operator==(const OnnxSource&, const OnnxSource&) = default;
};

enum class OnnxOrigin : std::uint8_t {
  computed,   // by operators, of activations or of stored tensors
  stored,     // an initializer
  constant,   // a Constant node
  generated,  // by operators, of nothing but numbers: ConstantOfShape, Range, RandomNormal ...
};

struct OnnxValue {
  std::string name;
  std::int32_t element_type = 0;  // TensorProto.DataType
  ValueKind kind = ValueKind::tensor;
  std::optional<Shape> shape;  // of a tensor; absent for others, and for an element whose shape nobody knows
  // What a sequence or optional holds, as far as that is known; and any one of its elements (kNoValue: none).
  std::optional<std::vector<std::uint32_t>> items;
  std::uint32_t element = kNoValue;
  bool is_static = false;
  OnnxOrigin origin = OnnxOrigin::computed;
  bool sized_by_data = false;          // computed from the shape of an activation
  std::optional<double> fill;          // of a generated tensor that holds this one value everywhere
  const WireTensor* tensor = nullptr;  // payload of an initializer or Constant
  std::optional<OnnxConstant> constant;
  bool decode_tried = false;
  std::vector<OnnxSource> sources;
};

using OnnxAttributes = std::vector<std::pair<std::string_view, const WireAttribute*>>;

struct OnnxNode {
  std::string name;  // unique
  std::string_view type, domain;
  std::int64_t opset = 0;
  OnnxAttributes attributes;
  std::vector<std::uint32_t> inputs, outputs;
  std::int64_t repeat = 1;       // trips of the loops around it
  std::int64_t inner_flops = 0;  // of graphs that run inside of it, once
  std::string where;             // "model.onnx: node 12 'fc' (Gemm)"
};

struct OnnxGraph {
  std::string file;
  std::vector<OnnxValue> values;
  std::vector<OnnxNode> nodes;
  std::vector<std::uint32_t> inputs, outputs;
  std::int64_t folded_nodes = 0;
  std::int64_t batch = 1;
  bool batch_is_fixed = true;  // no symbolic batch dimension; `batch` is what the file was made for
  std::vector<std::string> notes;

  // The values of a small constant, decoded when first asked for; nullptr when they are not known.
  const OnnxConstant* constant(std::uint32_t value);
  // The integer that a value is, where it is a single one and known.
  std::optional<std::int64_t> number(std::uint32_t value);
};

// Throws Error for cycles, undefined or doubly defined tensors, shapes that stay unknown and the rest.
OnnxGraph flatten_onnx(const WireModel& model, const std::string& file, const ModelOptions& options);

}  // namespace armilla
