#include "read/onnx/sources.h"

#include <algorithm>
#include <cmath>

#include "read/onnx/constant.h"
#include "read/onnx/node_view.h"

namespace armilla {
namespace {

using Sources = std::vector<OnnxSource>;

void add_once(Sources& sources, const OnnxSource& source) {
  if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
}

bool has_spread(const OnnxValue& value) {
  return std::any_of(value.sources.begin(), value.sources.end(),
                     [](const OnnxSource& source) { return source.spread; });
}

bool has_integers(const OnnxValue& value) {
  return std::any_of(value.sources.begin(), value.sources.end(),
                     [](const OnnxSource& source) { return source.quantized; });
}

// A root marks a variance (OnnxSource::spread), which belongs to the statistics of a norm.
bool is_root(const OnnxNodeView& node) {
  if (node.type() == "Sqrt") return true;
  if (node.type() != "Pow") return false;
  const OnnxConstant* exponent = node.constant_input(1);
  return exponent != nullptr && exponent->size() == 1 && std::abs(exponent->real(0)) == 0.5;
}

// Whether the operator makes of its input `i` what training does not change.
bool freezes(const OnnxNodeView& node, std::size_t i) {
  const std::string_view type = node.type();
  return type == "Sin" || type == "Cos" || type == "Reciprocal" || (type == "Div" && i == 1);
}

// The other operand of Mul, Div or Sub; kNoValue elsewhere.
std::uint32_t other_operand(const OnnxNode& node, std::size_t i) {
  const bool binary = node.type == "Mul" || node.type == "Div" || node.type == "Sub";
  return binary && node.inputs.size() == 2 ? node.inputs[1 - i] : kNoValue;
}

OnnxSource marked(OnnxGraph& graph, const OnnxNodeView& view, std::size_t i, OnnxSource source) {
  const OnnxNode& node = view.node();
  source.reduced = source.reduced || node.type.starts_with("Reduce");
  // A sum of squares under a root is a norm of the tensor itself, which says nothing about training.
  const bool root = is_root(view) && i == 0 && !source.reduced;
  source.spread = source.spread || root;
  source.frozen = source.frozen || root || freezes(view, i);
  const bool sum = node.type == "Add" || node.type == "Sub";
  source.frozen = source.frozen || (sum && has_spread(graph.values[node.inputs[i]]));
  return source;
}

// The same source as its way through a static operator continues; nullopt when it ends there.
std::optional<OnnxSource> pass_on(const OnnxGraph& graph, const OnnxSource& source, char role) {
  // The way ends here: nothing that configuration or running statistics go into is a weight by them.
  if (role == 'c' || role == 'v') return std::nullopt;
  OnnxSource next = source;
  if (role == 'q') next.quantized = true;
  if (role == 'p' || role == 'q' || role == 'e') return next;
  const OnnxValue& value = graph.values[source.value];
  const bool numeric = is_numeric(dtype_of_onnx(value.element_type));
  if (role == 'i' ? !numeric : !is_weight(value, source)) return std::nullopt;
  const bool one = element_count(*value.shape, value.name) <= 1;
  // A single number scales or shifts; it is a weight only where an operator has already shown so.
  if (role == 'x' && one && !source.accepted) return std::nullopt;
  next.accepted = true;
  return next;
}

void inherit(OnnxGraph& graph, const OnnxNodeView& view, const OnnxOp& op, std::size_t i, Sources& sources) {
  const OnnxNode& node = view.node();
  const std::uint32_t other = other_operand(node, i);
  for (const OnnxSource& source : graph.values[node.inputs[i]].sources) {
    std::optional<OnnxSource> next = pass_on(graph, source, role_of(op, i));
    if (!next) continue;
    // What multiplies or shifts stored integers is their scale or zero point.
    if (!source.quantized && other != kNoValue && has_integers(graph.values[other])) continue;
    const DType from = dtype_of_onnx(view.input(i).element_type);
    // int8 and int4 that become floating numbers are quantised weights.
    if (node.type == "Cast" && (from == DType::int8 || from == DType::int4) && view.has_output(0) &&
        is_floating(dtype_of_onnx(view.output(0).element_type)))
      next->quantized = true;
    add_once(sources, marked(graph, view, i, *next));
  }
}

bool is_generator(std::string_view type) {
  return type == "ConstantOfShape" || type == "Range" || type.starts_with("Random");
}

bool is_one_number(const OnnxValue& value) {
  return value.shape && element_count(*value.shape, value.name) == 1;
}

// Whether the node's output follows from numbers alone, with no stored tensor in it.
bool is_generated(const OnnxGraph& graph, const OnnxNode& node, const OnnxOp& op) {
  if (is_generator(node.type)) return true;
  bool any = node.type == "Expand" || node.type == "Tile";
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || role_of(op, i) == 'c') continue;
    const OnnxValue& input = graph.values[node.inputs[i]];
    const bool generated = input.origin == OnnxOrigin::generated;
    if (!generated && !is_one_number(input)) return false;
    any = any || generated;
  }
  return any;
}

// Whether the output of a node that generates is the tensor to name, rather than what it was made of: numbers
// spread to a tensor, integers that become floating ones, a sequence that gets its shape.
bool begins(const OnnxGraph& graph, const OnnxNode& node) {
  if (is_generator(node.type)) return true;
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return false;
  const OnnxValue& input = graph.values[node.inputs[0]];
  if (node.type == "Cast" || node.type == "CastLike") return !is_floating(dtype_of_onnx(input.element_type));
  if (node.type == "Expand" || node.type == "Tile") return is_one_number(input);
  return node.type == "Reshape" && input.shape && input.shape->size() == 1;
}

std::optional<double> filled_with(const OnnxNodeView& node) {
  if (node.type() == "ConstantOfShape") {
    const WireAttribute* value = node.attribute("value");
    if (value == nullptr || value->tensor == nullptr) return 0.0;
    const auto given = decode_tensor(*value->tensor, node.where());
    return given && given->size() == 1 ? std::optional(given->real(0)) : std::nullopt;
  }
  if (node.type() == "Expand") {
    const OnnxConstant* number = node.constant_input(0);
    return number != nullptr && number->size() == 1 ? std::optional(number->real(0)) : std::nullopt;
  }
  return std::nullopt;
}

// Sizes of an activation, and whatever is computed from them.
bool follows_data(const OnnxGraph& graph, const OnnxNode& node) {
  const bool asks = node.type == "Shape" || node.type == "Size";
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](std::uint32_t input) {
    if (input == kNoValue) return false;
    const OnnxValue& value = graph.values[input];
    return asks ? !value.is_static : value.sized_by_data;
  });
}

// What nodes filled with one value scales or shifts a tensor of at least its size, but is none itself.
void drop_fillers(OnnxGraph& graph, Sources& sources) {
  std::int64_t largest = 0;
  const auto elements = [&](const OnnxSource& source) {
    const OnnxValue& value = graph.values[source.value];
    return element_count(*value.shape, value.name);
  };
  const auto is_filler = [&](const OnnxSource& source) {
    return graph.values[source.value].origin != OnnxOrigin::stored && fill_of(graph, source.value);
  };
  for (const OnnxSource& source : sources) {
    if (!source.frozen && !is_filler(source)) largest = std::max(largest, elements(source));
  }
  std::erase_if(sources,
                [&](const OnnxSource& source) { return is_filler(source) && elements(source) <= largest; });
}

}  // namespace

bool is_numeric(DType dtype) {
  // int64 is the type of indices and shapes.
  return dtype != DType::unknown && dtype != DType::boolean && dtype != DType::text && dtype != DType::int64;
}

bool is_weight(const OnnxValue& value, const OnnxSource& source) {
  const DType dtype = dtype_of_onnx(value.element_type);
  return source.accepted || is_floating(dtype) || (source.quantized && is_numeric(dtype));
}

// Decodes at most a small tensor; a generated one knows its fill already.
std::optional<double> fill_of(OnnxGraph& graph, std::uint32_t value) {
  if (graph.values[value].fill) return graph.values[value].fill;
  const OnnxConstant* constant = graph.constant(value);
  if (constant == nullptr || constant->size() == 0) return std::nullopt;
  for (std::size_t i = 1; i < constant->size(); ++i) {
    if (constant->real(i) != constant->real(0)) return std::nullopt;
  }
  return constant->real(0);
}

std::vector<OnnxSource> sources_through(OnnxGraph& graph, const OnnxNode& node, const OnnxOp& op) {
  const OnnxNodeView view(graph, node);
  // Whatever is computed from an activation's size differs with the batch and is no weight.
  const bool sized_by_data = follows_data(graph, node);
  for (const std::uint32_t output : node.outputs) {
    if (output != kNoValue) graph.values[output].sized_by_data = sized_by_data;
  }
  if (node.domain.empty() && node.outputs.size() == 1 && is_generated(graph, node, op)) {
    OnnxValue& value = graph.values[node.outputs[0]];
    value.origin = OnnxOrigin::generated;
    value.fill = filled_with(view);
    if (sized_by_data || !value.shape) return {};
    if (begins(graph, node)) return {{.value = node.outputs[0]}};
  }
  Sources sources;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNoValue) inherit(graph, view, op, i, sources);
  }
  if (sources.size() > 1 && role_of(op, 0) == 'x') drop_fillers(graph, sources);
  return sources;
}

}  // namespace armilla
