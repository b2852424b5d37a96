#include "read/onnx/parameters.h"

#include <algorithm>
#include <cmath>

#include "read/onnx/operators/ops.h"
#include "read/onnx/operators/work_products.h"
#include "read/onnx/sources.h"

namespace armilla {
namespace {

bool is_narrow_integer(DType dtype) {
  return dtype == DType::int8 || dtype == DType::int4;
}

// A tensor whose elements differ along one dimension only, as biases and scales do.
bool is_vector(const Shape& shape) {
  return std::count_if(shape.begin(), shape.end(), [](std::int64_t d) { return d != 1; }) == 1;
}

// Where the channels of an operator's result lie: `from_end` for products, else the second dimension.
// Channels are the last dimension of a matrix product's result and the second of a convolution's.
bool lies_along_channels(const Shape& vector, const Shape& result, std::int64_t channels) {
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (vector[i] == 1) continue;
    const std::size_t at = i + result.size() - vector.size();
    return vector[i] == channels && result[at] == channels && (at == 1 || at + 1 == result.size());
  }
  return false;
}

}  // namespace

OnnxParameters::OnnxParameters(OnnxGraph& graph) : graph_(graph), uses_(graph), frozen_(graph, uses_) {}

// A norm without an affine part of its own: all ones and zeros that the exporter made up, or that another
// scale and shift follow (Caffe's BatchNorm and Scale).
// Weights of one and shifts of zero that were made, not stored, only fill in an operator's required inputs.
bool OnnxParameters::has_no_affine(std::uint32_t index) {
  const OnnxNode& node = graph_.nodes[index];
  const bool shifts = node.inputs.size() > 2 && node.inputs[2] != kNoValue && uses_.is_static(node, 2);
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue || fill_of(graph_, node.inputs[1]) != 1.0)
    return false;
  if (shifts && fill_of(graph_, node.inputs[2]) != 0.0) return false;
  const auto made = [&](std::size_t input) {
    const OnnxValue& value = graph_.values[node.inputs[input]];
    return std::all_of(value.sources.begin(), value.sources.end(), [&](const OnnxSource& source) {
      return graph_.values[source.value].origin != OnnxOrigin::stored;
    });
  };
  if (made(1) && (!shifts || made(2))) return true;
  if (node.type != "BatchNormalization") return false;
  const auto scale = uses_.only_use(node.outputs[0]);
  if (!scale || graph_.nodes[scale->node].type != "Mul") return false;
  const OnnxNode& mul = graph_.nodes[scale->node];
  const auto shift = uses_.only_use(mul.outputs[0]);
  return uses_.is_constant_tensor(mul, 1 - scale->input) && shift &&
         graph_.nodes[shift->node].type == "Add" &&
         uses_.is_constant_tensor(graph_.nodes[shift->node], 1 - shift->input);
}

// A bias or scale: a vector along the channels of what a product, a norm or another scale yields.
bool OnnxParameters::is_affine(const OnnxNode& node, std::size_t input, int depth) const {
  constexpr int kDeepest = 4;
  // Chains of scales and shifts are followed a few steps back, to the product or norm they began with.
  if (!node.domain.empty() || (node.type != "Add" && node.type != "Mul") || node.inputs.size() != 2 ||
      node.outputs.size() != 1 || uses_.is_static(node, 1 - input) || depth > kDeepest)
    return false;
  const OnnxValue& result = graph_.values[node.outputs[0]];
  const Shape& vector = *graph_.values[node.inputs[input]].shape;
  const OnnxNode* maker = uses_.maker(node.inputs[1 - input]);
  if (maker == nullptr || !result.shape || maker->outputs.empty()) return false;
  const bool one = std::all_of(vector.begin(), vector.end(), [](std::int64_t d) { return d == 1; });
  if (!one && !is_vector(vector)) return false;
  std::int64_t channels = 1;
  for (const std::int64_t d : vector) channels *= d;
  if (one ? vector.empty() : !lies_along_channels(vector, *result.shape, channels)) return false;

  const OnnxOp* op = find_onnx_op(maker->domain, maker->type);
  if (op == nullptr) return false;
  // Behind a product: a bias. One number is a bias only where there is one channel.
  if (is_matrix(*op)) {
    const Shape& made = graph_.values[maker->outputs[0]].shape.value_or(Shape());
    const bool weight = std::any_of(maker->inputs.begin(), maker->inputs.end(), [&](std::uint32_t i) {
      return i != kNoValue && graph_.values[i].is_static;
    });
    const bool fits = made.size() > 1 && (made[1] == channels || made.back() == channels);
    return weight && (!one || (node.type == "Add" && fits));
  }
  if (one) return false;
  // Behind a norm it is the affine part that an exporter wrote apart.
  if (op->roles.find('n') != std::string_view::npos) return true;
  if (maker->type == "Div" ||
      (maker->type == "Mul" && !uses_.is_static(*maker, 0) && !uses_.is_static(*maker, 1)))
    return true;
  for (std::size_t i = 0; i < maker->inputs.size(); ++i) {
    if (uses_.is_constant_tensor(*maker, i)) return is_affine(*maker, i, depth + 1);
  }
  return false;
}

// A single value that says nothing, or blocks: no weight unless it lies where a bias or scale does.
bool OnnxParameters::is_filler(const OnnxNode& node, const OnnxSource& source) const {
  if (graph_.values[source.value].origin == OnnxOrigin::stored) return false;
  const auto fill = fill_of(graph_, source.value);
  if (!fill) return false;
  const bool factor = node.type == "Mul" || node.type == "Div";
  // 1 as a factor, 0 as a summand, and large numbers (masks' -inf, -1e4) are no weights.
  return *fill == (factor ? 1.0 : 0.0) || !(std::abs(*fill) < 1000);
}

bool OnnxParameters::in_arithmetic(std::uint32_t index, std::size_t input, const OnnxSource& source) const {
  const OnnxValue& value = graph_.values[source.value];
  if (!is_weight(value, source)) return false;
  if (source.accepted || element_count(*value.shape, value.name) > 1) return true;
  return is_affine(graph_.nodes[index], input, 0);
}

OnnxKind OnnxParameters::by_role(std::uint32_t index, std::size_t input, const OnnxSource& source,
                                 char role) {
  const OnnxNode& node = graph_.nodes[index];
  const OnnxValue& value = graph_.values[source.value];
  const DType dtype = dtype_of_onnx(value.element_type);
  const bool weight = is_weight(value, source);
  // `weight` is by type and way alone; the roles below ask for more.
  const auto trained = [](bool is) { return is ? OnnxKind::trained : OnnxKind::nothing; };
  const auto buffer = [](bool is) { return is ? OnnxKind::buffer : OnnxKind::nothing; };
  // Frozen on the way, or running statistics by the operator's role.
  if (source.frozen || role == 'v') return buffer(weight);
  switch (role) {
    case 'w': {
      // Weights of a convolution that are 0, 1, 2 ... form an expectation over bins (detectors' distribution
      // focal loss).
      const bool frozen =
          frozen_.is_phase(node.outputs[0]) ||
          (node.type == "Conv" && value.origin != OnnxOrigin::generated && frozen_.counts_up(source.value));
      return weight && frozen ? OnnxKind::buffer : trained(weight);
    }
    case 'i':
      return trained(is_numeric(dtype));
    case 'n':
      return trained(weight && !has_no_affine(index));
    case 'e':
    case 'p':
    case 'q': {
      // Tables of int8 and int4 are quantised embeddings.
      const bool narrow = role == 'e' && is_narrow_integer(dtype);
      if (!narrow && !in_arithmetic(index, input, source)) return OnnxKind::nothing;
      const bool frozen = frozen_.only_frozen_uses(node.outputs[0]) || frozen_.is_frozen(index, input) ||
                          frozen_.is_sinusoid(source.value);
      if (frozen) return OnnxKind::buffer;
      return trained(role == 'e' || !is_filler(node, source));
    }
    default:
      if (!in_arithmetic(index, input, source)) return OnnxKind::nothing;
      if (frozen_.is_frozen(index, input) || frozen_.is_sinusoid(source.value)) return OnnxKind::buffer;
      // In element-wise arithmetic a constant is trained unless something speaks against it.
      if (is_affine(node, input, 0)) return OnnxKind::trained;
      if (frozen_.is_grid(index, source.value)) return OnnxKind::buffer;
      return trained(!is_filler(node, source));
  }
}

OnnxKind OnnxParameters::kind(std::uint32_t index, std::size_t input, const OnnxSource& source) {
  const OnnxNode& node = graph_.nodes[index];
  const OnnxOp* op = find_onnx_op(node.domain, node.type);
  const char role = op == nullptr ? 'x' : role_of(*op, input);
  const OnnxValue& value = graph_.values[source.value];
  if (role == 'c' || !value.shape || element_count(*value.shape, value.name) == 0) return OnnxKind::nothing;
  // Gemm with beta 0 never reads its third input.
  if (input == 2 && onnx_work::leaves_out_bias(OnnxNodeView(graph_, node))) return OnnxKind::nothing;
  const OnnxKind found = by_role(index, input, source, role);
  // Nobody stores what is made anew from numbers.
  const bool stored = value.origin != OnnxOrigin::generated || role == 'v';
  return found == OnnxKind::buffer && !stored ? OnnxKind::nothing : found;
}

// com.microsoft MatMulNBits stores an N x K matrix with several numbers in each byte; the shape of the stored
// tensor says nothing.
std::optional<OnnxPacked> packed_weight(const OnnxNodeView& node, std::size_t input) {
  if (node.type() != "MatMulNBits" || input != 1) return std::nullopt;
  const std::int64_t bits = node.int_attribute("bits", 4);
  return OnnxPacked{bits > 4 ? DType::int8 : DType::int4,
                    {node.int_attribute("N", 1), node.int_attribute("K", 1)}};
}

}  // namespace armilla
