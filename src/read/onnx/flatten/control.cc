// Functions, If and other operators that run a graph once; what loops share with them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "read/onnx/flatten/flatten.h"

namespace armilla {

void OnnxFlattener::run_function(const OnnxNode& node, const WireNode& wire, const WireFunction& function,
                                 Scope& scope, const Frame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("functions call each other more than {} deep", kMaxDepth),
                "a function must not call itself");
  // A function sees its arguments alone, no names of the graph around it, and has operator sets of its own.
  Frame inner{function.opsets.empty() ? frame.opsets : &function.opsets, node.attributes,
              unique_name(node.name), frame.repeat, frame.depth + 1};
  for (const WireAttribute& fallback : function.defaults) {
    bool given = false;
    for (const auto& [name, argument] : node.attributes) given = given || name == fallback.name;
    if (!given) inner.arguments.emplace_back(fallback.name, &fallback);
  }
  if (node.inputs.size() > function.inputs.size())
    throw Error(node.where, fmt::format("passes {} inputs to a function of {}", node.inputs.size(),
                                        function.inputs.size()));
  Scope body;
  add_infos(function.body, body);
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    // An input that is left out becomes a value without a type; operators see it as left out.
    if (i < node.inputs.size() && node.inputs[i] != kNoValue)
      define(body, function.inputs[i], node.inputs[i], node.where);
    else
      define(body, function.inputs[i], kNoValue, node.where);
  }
  run_nodes(function.body.nodes, body, inner);
  if (wire.outputs.size() > function.outputs.size())
    throw Error(node.where, fmt::format("takes {} outputs from a function of {}", wire.outputs.size(),
                                        function.outputs.size()));
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (!wire.outputs[i].empty())
      define(scope, wire.outputs[i], lookup(body, function.outputs[i], node.where), node.where);
  }
}

const WireGraph& OnnxFlattener::subgraph(const OnnxNode& node, std::string_view attribute) const {
  for (const auto& [name, value] : node.attributes) {
    if (name == attribute && value->graph != nullptr) return *value->graph;
  }
  throw Error(node.where, fmt::format("has no graph '{}'", attribute));
}

// A subgraph sees the names of the graphs around it.
std::vector<std::uint32_t> OnnxFlattener::run_graph(const WireGraph& graph,
                                                    const std::vector<std::uint32_t>& inputs,
                                                    const Scope& scope, const Frame& frame) {
  Scope body;
  body.parent = &scope;
  add_initializers(graph, body, frame.prefix);
  add_infos(graph, body);
  // Callers have checked that the graph has so many inputs.
  for (std::size_t i = 0; i < inputs.size(); ++i)
    define(body, graph.inputs[i].name, inputs[i], fmt::format("{}: {}", graph_.file, frame.prefix));
  run_nodes(graph.nodes, body, frame);
  std::vector<std::uint32_t> outputs;
  const std::string where = fmt::format("{}: {}: its outputs", graph_.file, frame.prefix);
  for (const WireValueInfo& output : graph.outputs) {
    outputs.push_back(lookup(body, output.name, where));
    if (outputs.back() == kNoValue)
      throw Error(where, fmt::format("'{}' is left out", readable(output.name)));
  }
  return outputs;
}

std::vector<std::uint32_t> OnnxFlattener::run_branch(const OnnxNode& node, const WireGraph& graph,
                                                     const Scope& scope, const Frame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  const Frame inner{frame.opsets, frame.arguments, unique_name(node.name), frame.repeat, frame.depth + 1};
  return run_graph(graph, {}, scope, inner);
}

// Whether what a branch hands out has the shapes that the file records.
bool OnnxFlattener::fits_file(const WireNode& wire, const Scope& scope,
                              const std::vector<std::uint32_t>& values) const {
  for (std::size_t i = 0; i < std::min(wire.outputs.size(), values.size()); ++i) {
    const auto info = scope.infos.find(wire.outputs[i]);
    if (info == scope.infos.end()) continue;
    const std::optional<Shape> said = dims_.resolve(*info->second);
    if (said && said != graph_.values[values[i]].shape) return false;
  }
  return true;
}

void OnnxFlattener::run_if(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame) {
  const WireGraph& then_graph = subgraph(node, "then_branch");
  const WireGraph& else_graph = subgraph(node, "else_branch");
  const auto condition = graph_.number(node.inputs.empty() ? kNoValue : node.inputs[0]);
  std::vector<std::uint32_t> outputs;
  // A condition that follows from shapes decides at once; exporters write such branches in numbers.
  if (condition) {
    outputs = run_branch(node, *condition != 0 ? then_graph : else_graph, scope, frame);
  } else {
    // Both branches are written behind each other, and the one that is not taken is removed again.
    const auto first = static_cast<std::ptrdiff_t>(graph_.nodes.size());
    outputs = run_branch(node, then_graph, scope, frame);
    const double then_work = flops_since(static_cast<std::size_t>(first));
    const auto middle = static_cast<std::ptrdiff_t>(graph_.nodes.size());
    std::vector<std::uint32_t> other = run_branch(node, else_graph, scope, frame);
    const bool then_fits = fits_file(wire, scope, outputs);
    const bool one_fits = then_fits != fits_file(wire, scope, other);
    const double else_work = flops_since(static_cast<std::size_t>(middle));
    const bool take_then = one_fits ? then_fits : then_work >= else_work;
    const auto begin = graph_.nodes.begin();
    if (take_then) {
      graph_.nodes.erase(begin + middle, graph_.nodes.end());
    } else {
      graph_.nodes.erase(begin + first, begin + middle);
      outputs = std::move(other);
    }
    graph_.notes.push_back(fmt::format("'{}' depends on data: its {} branch, the one {}, is taken", node.name,
                                       take_then ? "then" : "else",
                                       one_fits                 ? "that gives the shapes in the file"
                                       : then_work == else_work ? "that comes first"
                                                                : "with more arithmetic"));
  }
  if (outputs.size() < wire.outputs.size())
    throw Error(node.where,
                fmt::format("has {} outputs, but its branch has {}", wire.outputs.size(), outputs.size()));
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (!wire.outputs[i].empty()) define(scope, wire.outputs[i], outputs[i], node.where);
  }
}

// Arithmetic of the nodes from `first` on, with their repetitions.
double OnnxFlattener::flops_since(std::size_t first) {
  double flops = 0;
  for (std::size_t i = first; i < graph_.nodes.size(); ++i) {
    const OnnxNode& node = graph_.nodes[i];
    flops += static_cast<double>(
        work_of(OnnxNodeView(graph_, node), find_onnx_op(node.domain, node.type)).work.flops.value);
  }
  return flops;
}

// A modifier of the scores or probabilities is part of the kernel: its arithmetic counts, but nothing of it
// moves through memory apart from what it takes from outside.
void OnnxFlattener::run_flex_attention(OnnxNode node, const WireNode& wire, Scope& scope,
                                       const Frame& frame) {
  const OnnxHeads h = heads_of(OnnxNodeView(graph_, node));
  const Shape scores = {h.batch, h.heads, h.query_length, h.key_length};
  const OnnxNodeView view(graph_, node);
  const bool is_double = view.input(0).element_type == onnx_type::kDouble;
  const auto precision = static_cast<std::int32_t>(
      view.int_attribute("softmax_precision", is_double ? onnx_type::kDouble : onnx_type::kFloat));
  double flops = 0;
  for (const auto& [name, attribute] : OnnxAttributes(node.attributes)) {
    if (attribute->graph == nullptr) continue;
    const WireGraph& body = *attribute->graph;
    if (body.inputs.size() != 1 || body.outputs.size() != 1)
      throw Error(node.where, fmt::format("its '{}' does not take and give one tensor", name));
    const std::uint32_t argument = new_value(readable(body.inputs[0].name));
    set_type(node, argument, {precision, scores});
    // The body is run only to be counted: its nodes are taken back, and what it reads from outside becomes an
    // input of the operator.
    const Mark before = mark();
    const std::vector<std::uint32_t> result = run_body(node, body, {argument}, 1, scope, frame);
    if (graph_.values[result[0]].shape != scores)
      throw Error(node.where,
                  fmt::format("its '{}' changes the shape of the scores, {}", name, to_text(scores)));
    // Nodes of the body count their repetitions; inner_flops is of one execution.
    flops += flops_since(before.nodes) / static_cast<double>(frame.repeat);
    for (std::size_t i = before.nodes; i < graph_.nodes.size(); ++i) {
      for (const std::uint32_t input : graph_.nodes[i].inputs) {
        const bool known = std::find(node.inputs.begin(), node.inputs.end(), input) != node.inputs.end();
        // Values are numbered as they are made, so a smaller number than the argument's was there before the
        // body.
        if (input < argument && !known) node.inputs.push_back(input);
      }
    }
    take_back(before);
  }
  if (!(flops < 1e18)) throw Error(node.where, "its modifiers are absurdly large");
  node.inner_flops = static_cast<std::int64_t>(flops);
  run_operator(std::move(node), wire, scope);
}

// The same type and shape, but neither constant nor static: what a loop's body sees changes from trip to
// trip.
std::uint32_t OnnxFlattener::like(std::uint32_t value, const std::string& name) {
  const std::uint32_t copy = new_value(name);
  OnnxValue& to = graph_.values[copy];
  const OnnxValue& from = graph_.values[value];
  to.element_type = from.element_type;
  to.kind = from.kind;
  to.shape = from.shape;
  to.items = from.items;
  sources_left_ -= static_cast<std::int64_t>(from.items ? from.items->size() : 0);
  if (sources_left_ < 0) throw Error(graph_.file, "its sequences hold too many tensors together");
  to.element = from.element;
  return copy;
}

void OnnxFlattener::border(const OnnxNode& node, std::string_view what,
                           const std::vector<std::uint32_t>& inputs,
                           const std::vector<std::uint32_t>& outputs, std::int64_t repeat) {
  OnnxNode border;
  border.name = unique_name(fmt::format("{}/{}", node.name, what));
  border.type = node.type;
  border.where = node.where;
  border.opset = node.opset;
  border.inputs = inputs;
  border.outputs = outputs;
  border.repeat = repeat;
  graph_.nodes.push_back(std::move(border));
}

}  // namespace armilla
