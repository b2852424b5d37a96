#include "read/onnx/flatten/random.h"

#include <algorithm>

#include "read/onnx/operators/ops.h"

namespace armilla {
namespace {

constexpr std::size_t kMostFollowed = 32;  // tensors between one that is drawn and a weight

}  // namespace

// Bernoulli and Multinomial draw from their input.
bool is_random(std::string_view type) {
  return type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial";
}

bool becomes_weight(const WireNode& wire, const OnnxScope& scope, const OnnxGraph& graph) {
  if (wire.outputs.empty() || !wire.type.starts_with("Random")) return false;
  const auto is_static = [&](std::string_view name) {
    const auto found = scope.values.find(name);
    return found != scope.values.end() && found->second != kNoValue && graph.values[found->second].is_static;
  };
  // Follows the drawn tensor through what only passes it on or scales it, until an operator takes it as a
  // weight.
  std::vector<std::string_view> open = {wire.outputs[0]};
  for (std::size_t next = 0; next < open.size() && open.size() < kMostFollowed; ++next) {
    for (const WireNode& node : *scope.nodes) {
      const auto found = std::find(node.inputs.begin(), node.inputs.end(), open[next]);
      const OnnxOp* op = find_onnx_op(plain_domain(node.domain), node.type);
      if (found == node.inputs.end() || op == nullptr) continue;
      const auto input = static_cast<std::size_t>(found - node.inputs.begin());
      const char role = role_of(*op, input);
      const bool both = node.inputs.size() == 2;
      // A product of it with a weight on the right has it as data.
      const bool data = input == 0 && is_matrix(*op) && node.inputs.size() > 1 && is_static(node.inputs[1]);
      if ((role == 'w' || role == 'n' || role == 'i') && !data) return true;
      const bool scales =
          role == 'x' && both && op->shape == onnx_shape::elementwise && is_static(node.inputs[1 - input]);
      if ((role == 'p' || scales) && !node.outputs.empty()) open.push_back(node.outputs[0]);
      if (role == 'e' && input == 0) return true;
    }
  }
  return false;
}

}  // namespace armilla
