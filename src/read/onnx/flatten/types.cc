#include "read/onnx/flatten/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "read/onnx/node_view.h"

namespace armilla {

void OnnxTypes::infer(const OnnxNode& node, const OnnxOp* op, const WireNode& wire, const OnnxScope& scope) {
  std::string reason;
  const std::vector<OnnxType> types = infer_by_rule(node, op, reason);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::uint32_t value = node.outputs[i];
    if (value == kNoValue) continue;
    // A size that is only an upper bound gives way to what the file records.
    if (!types.empty() && !types[i].at_most) {
      compare_with_file(wire.outputs[i], scope, types[i]);
      flat_.set_type(node, value, types[i]);
    } else if (const auto said = recorded(node, wire.outputs[i], scope)) {
      flat_.set_type(node, value, *said);
    } else if (!types.empty()) {
      note_bound(wire.outputs[i], scope, types[i]);
      flat_.set_type(node, value, types[i]);
    } else if (const auto info = scope.infos.find(wire.outputs[i]);
               info != scope.infos.end() && info->second->kind && !info->second->is_tensor()) {
      // Sequences and optionals: the file's type is all there is.
      flat_.declare(value, *info->second);
    } else {
      throw Error(node.where,
                  fmt::format("the shape of its output '{}' cannot be inferred: {}",
                              readable(wire.outputs[i]), reason),
                  hint_for_shape(node));
    }
  }
}

// An input of the graph that is a single integer may be given by name, also where arithmetic on single
// numbers lies between.
std::string OnnxTypes::hint_for_shape(const OnnxNode& node) {
  std::set<std::uint32_t> needed(node.inputs.begin(), node.inputs.end());
  const auto is_single = [&](std::uint32_t index) {
    const OnnxValue& value = graph_.values[index];
    return value.shape && element_count(*value.shape, value.name) == 1;
  };
  for (auto maker = graph_.nodes.rbegin(); maker != graph_.nodes.rend(); ++maker) {
    if (std::any_of(maker->outputs.begin(), maker->outputs.end(), [&](std::uint32_t output) {
          return output != kNoValue && needed.contains(output) && is_single(output);
        }))
      needed.insert(maker->inputs.begin(), maker->inputs.end());
  }
  for (const std::uint32_t input : graph_.inputs) {
    if (!needed.contains(input) || graph_.constant(input) != nullptr) continue;
    const OnnxValue& value = graph_.values[input];
    const bool integer = value.element_type == onnx_type::kInt64 || value.element_type == onnx_type::kInt32;
    if (integer && is_single(input))
      return fmt::format("if its value is known, give it, for example --dim {}=1", value.name);
  }
  return "put the shape into the file (run ONNX shape inference on it, for example "
         "onnxruntime's symbolic_shape_infer) and name dimensions that depend on data with --dim NAME=VALUE";
}

std::vector<OnnxType> OnnxTypes::infer_by_rule(const OnnxNode& node, const OnnxOp* op, std::string& reason) {
  if (op == nullptr || op->shape == nullptr) {
    reason = "Armilla has no shape rule for this operator";
    return {};
  }
  std::vector<OnnxType> types(std::max<std::size_t>(1, node.outputs.size()));
  // A rule that needs a value nobody knows says so by an exception; then the file's record may help.
  try {
    op->shape(OnnxNodeView(graph_, node), types);
  } catch (const OnnxUndetermined& undetermined) {
    reason = undetermined.message;
    return {};
  }
  return types;
}

std::optional<OnnxType> OnnxTypes::recorded(const OnnxNode& node, std::string_view output,
                                            const OnnxScope& scope) const {
  const auto found = scope.infos.find(output);
  if (found == scope.infos.end()) return std::nullopt;
  std::optional<Shape> shape = flat_.dims().resolve(*found->second);
  if (!shape) return std::nullopt;
  std::int32_t element_type = found->second->data_type;
  // A record may have a shape but no element type: then the first input has the same.
  if (element_type == 0 && !node.inputs.empty() && node.inputs[0] != kNoValue)
    element_type = graph_.values[node.inputs[0]].element_type;
  return OnnxType{element_type, std::move(*shape)};
}

// Only counted: value_info often outlives an edit of the model, and our own rule is what the work follows.
void OnnxTypes::compare_with_file(std::string_view output, const OnnxScope& scope, const OnnxType& type) {
  const auto info = scope.infos.find(output);
  if (info == scope.infos.end()) return;
  const std::optional<Shape> said = flat_.dims().resolve(*info->second);
  if (!said || said == type.shape) return;
  flat_.count_contradiction([&] {
    return fmt::format("'{}' is {}, not {}", readable(output), to_text(type.shape), to_text(*said));
  });
}

void OnnxTypes::note_bound(std::string_view output, const OnnxScope& scope, const OnnxType& type) {
  flat_.count_bound([&] {
    const std::string text = fmt::format("'{}' is {}", readable(output), to_text(type.shape));
    const auto info = scope.infos.find(output);
    if (info == scope.infos.end()) return text;
    for (const WireDimension& dimension : info->second->dims) {
      if (dimension.symbol.empty() || flat_.dims().values.contains(readable(dimension.symbol))) continue;
      return fmt::format("{} (--dim {}=SIZE sets it)", text, readable(dimension.symbol));
    }
    return text;
  });
}

// Whether what a branch hands out has the shapes that the file records.
bool OnnxTypes::fits_file(const WireNode& wire, const OnnxScope& scope,
                          const std::vector<std::uint32_t>& values) const {
  for (std::size_t i = 0; i < std::min(wire.outputs.size(), values.size()); ++i) {
    const auto info = scope.infos.find(wire.outputs[i]);
    if (info == scope.infos.end()) continue;
    const std::optional<Shape> said = flat_.dims().resolve(*info->second);
    if (said && said != graph_.values[values[i]].shape) return false;
  }
  return true;
}

}  // namespace armilla
