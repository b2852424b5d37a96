#include "read/onnx/flatten/flatten.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units_text.h"
#include "read/onnx/flatten/random.h"
#include "read/onnx/node_view.h"
#include "read/onnx/order.h"

namespace armilla {
namespace {

// Inlining may multiply the nodes of a file by no more than this many on top.
constexpr std::int64_t kMaxInlinedNodes = std::int64_t{1} << 18;

// Subgraphs count, too: a file may well have many nodes, it is multiplying them that must be bounded.
std::int64_t count_nodes(const WireGraph& graph) {
  auto count = static_cast<std::int64_t>(graph.nodes.size());
  for (const WireNode& node : graph.nodes) {
    for (const WireAttribute& attribute : node.attributes) {
      if (attribute.graph != nullptr) count += count_nodes(*attribute.graph);
    }
  }
  return count;
}

// An operator set that the model does not import is taken in its first version.
std::int64_t opset_of(const std::vector<WireOpset>& opsets, std::string_view domain) {
  for (const WireOpset& opset : opsets) {
    if (plain_domain(opset.domain) == domain) return opset.version;
  }
  return 1;
}

// Domain and type (and overload) by which a node names a function.
std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}:{}:{}", plain_domain(domain), name, overload);
}

}  // namespace

OnnxFlattener::OnnxFlattener(const WireModel& model, const std::string& file, const ModelOptions& options)
    : model_(model),
      flat_(bind_dimensions(model, file, options), file),
      graph_(flat_.graph()),
      types_(flat_),
      containers_(flat_, types_),
      loops_(*this),
      maps_(*this) {
  // Functions may call functions: a small file could expand to billions of nodes.
  nodes_left_ = count_nodes(model.graph) + kMaxInlinedNodes;
  for (const WireFunction& function : model.functions)
    functions_.emplace(function_key(function.domain, function.name, function.overload), &function);
}

OnnxGraph OnnxFlattener::flatten() {
  // Initializers first, since files up to IR version 3 list them among the inputs as well.
  OnnxScope scope;
  add_initializers(model_.graph, scope, "");
  scope.add_infos(model_.graph);
  for (const WireValueInfo* input : true_inputs(model_.graph)) {
    const std::uint32_t value = flat_.new_value(readable(input->name));
    scope.define(input->name, value, graph_.file);
    if (!input->kind)
      throw Error(graph_.file, fmt::format("its input '{}' has no type", graph_.values[value].name));
    flat_.declare(value, *input);
    flat_.take_given(value, *input);
    graph_.inputs.push_back(value);
  }
  run_nodes(model_.graph.nodes, scope, {&model_.opsets, {}, "", 1, 0});
  for (const WireValueInfo& output : model_.graph.outputs) {
    const std::uint32_t value = scope.lookup(output.name, graph_.file + ": the graph's outputs");
    if (value == kNoValue) continue;
    // What a branch, a body or a function hands out has its own name inside; an initializer or an input that
    // is handed out keeps its name.
    OnnxValue& handed = graph_.values[value];
    const auto own = scope.values.find(handed.name);
    if (own == scope.values.end() || own->second != value) handed.name = readable(output.name);
    graph_.outputs.push_back(value);
  }
  return flat_.finish();
}

void OnnxFlattener::run_nodes(const std::vector<WireNode>& nodes, OnnxScope& scope, const OnnxFrame& frame) {
  const std::string where = frame.prefix.empty() ? graph_.file : graph_.file + ": " + frame.prefix;
  scope.nodes = &nodes;
  // Files may list nodes in any order, though the specification asks for a topological one.
  for (const std::uint32_t i : order_nodes(nodes, where)) run_node(nodes[i], i, scope, frame);
}

void OnnxFlattener::run_node(const WireNode& wire, std::size_t index, OnnxScope& scope,
                             const OnnxFrame& frame) {
  OnnxNode node;
  node.where = fmt::format("{}: {}{}", graph_.file, frame.prefix.empty() ? "" : frame.prefix + ": ",
                           describe(wire, index));
  if (--nodes_left_ < 0)
    throw Error(node.where, "the model's functions and subgraphs expand to too many operators",
                "they call each other again and again; inline or simplify the model first");
  node.type = wire.type;
  node.domain = plain_domain(wire.domain);
  node.opset = opset_of(*frame.opsets, node.domain);
  node.repeat = frame.repeat;
  const std::string own =
      wire.name.empty() ? fmt::format("{}_{}", readable(wire.type), index) : readable(wire.name);
  node.name = frame.prefix.empty() ? own : frame.prefix + "/" + own;
  // Inside a function an attribute may stand for one of the call's; where the call has none, it is left out.
  for (const WireAttribute& attribute : wire.attributes) {
    if (attribute.reference.empty()) {
      node.attributes.emplace_back(attribute.name, &attribute);
      continue;
    }
    for (const auto& [name, argument] : frame.arguments) {
      if (name == attribute.reference) node.attributes.emplace_back(attribute.name, argument);
    }
  }
  for (const std::string_view input : wire.inputs)
    node.inputs.push_back(input.empty() ? kNoValue : scope.lookup(input, node.where));

  // A function of the model comes before an operator of the same name: the file's meaning counts.
  const auto function = functions_.find(function_key(wire.domain, wire.type, wire.overload));
  if (function != functions_.end()) return run_function(node, wire, *function->second, scope, frame);
  if (node.domain.empty()) {
    if (node.type == "Constant") return run_constant(node, wire, scope);
    if (node.type == "If") return run_if(node, wire, scope, frame);
    if (node.type == "Loop") return loops_.run_loop(node, wire, scope, frame);
    if (node.type == "Scan") return loops_.run_scan(node, wire, scope, frame);
    if (node.type == "SequenceMap") return maps_.run(node, wire, scope, frame);
    if (containers_.run(node, wire, scope)) return;
  }
  if (node.type == "FlexAttention") return run_flex_attention(std::move(node), wire, scope, frame);
  // Unknown operators with a graph inside cannot be priced: their body would be lost silently.
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute->graph != nullptr)
      throw Error(node.where,
                  fmt::format("runs a graph of its own ('{}'), which Armilla does not know how to", name),
                  "only If, Loop, Scan, SequenceMap and FlexAttention may; expand the operator before the "
                  "export");
  }
  run_operator(std::move(node), wire, scope);
}

void OnnxFlattener::run_operator(OnnxNode node, const WireNode& wire, OnnxScope& scope) {
  for (const std::string_view name : wire.outputs) {
    node.outputs.push_back(name.empty() ? kNoValue : flat_.new_value(readable(name)));
    if (!name.empty()) scope.define(name, node.outputs.back(), node.where);
  }
  const OnnxOp* op = find_onnx_op(node.domain, node.type);
  types_.infer(node, op, wire, scope);
  // What follows from stored tensors alone is done once, by the exporter or the runtime, and not in every
  // pass. Random tensors are new in every pass, unless they stand for a weight.
  const bool all_static =
      std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](std::uint32_t i) { return i == kNoValue || graph_.values[i].is_static; }) &&
      op != nullptr && (!node.inputs.empty() || node.type == "Range" || is_random(node.type)) &&
      (!is_random(node.type) || becomes_weight(wire, scope, graph_));
  const bool folded = op != nullptr && fold(node);
  // Products of weights (low-rank updates) are real work of every pass.
  if (folded || (all_static && !is_matrix(*op))) {
    flat_.inherit_sources(node, *op);
    ++graph_.folded_nodes;
    return;
  }
  node.name = flat_.unique_name(node.name);
  graph_.nodes.push_back(std::move(node));
}

void OnnxFlattener::run_function(const OnnxNode& node, const WireNode& wire, const WireFunction& function,
                                 OnnxScope& scope, const OnnxFrame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("functions call each other more than {} deep", kMaxDepth),
                "a function must not call itself");
  // A function sees its arguments alone, no names of the graph around it, and has operator sets of its own.
  OnnxFrame inner{function.opsets.empty() ? frame.opsets : &function.opsets, node.attributes,
                  flat_.unique_name(node.name), frame.repeat, frame.depth + 1};
  for (const WireAttribute& fallback : function.defaults) {
    bool given = false;
    for (const auto& [name, argument] : node.attributes) given = given || name == fallback.name;
    if (!given) inner.arguments.emplace_back(fallback.name, &fallback);
  }
  if (node.inputs.size() > function.inputs.size())
    throw Error(node.where, fmt::format("passes {} to a function of {}",
                                        typed_count(node.inputs.size(), "input"), function.inputs.size()));
  OnnxScope body;
  body.add_infos(function.body);
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    // An input that is left out becomes a value without a type; operators see it as left out.
    if (i < node.inputs.size() && node.inputs[i] != kNoValue)
      body.define(function.inputs[i], node.inputs[i], node.where);
    else
      body.define(function.inputs[i], kNoValue, node.where);
  }
  run_nodes(function.body.nodes, body, inner);
  if (wire.outputs.size() > function.outputs.size())
    throw Error(node.where, fmt::format("takes {} from a function of {}",
                                        typed_count(wire.outputs.size(), "output"), function.outputs.size()));
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (!wire.outputs[i].empty())
      scope.define(wire.outputs[i], body.lookup(function.outputs[i], node.where), node.where);
  }
}

// A subgraph sees the names of the graphs around it.
std::vector<std::uint32_t> OnnxFlattener::run_graph(const WireGraph& graph,
                                                    const std::vector<std::uint32_t>& inputs,
                                                    const OnnxScope& scope, const OnnxFrame& frame) {
  OnnxScope body;
  body.parent = &scope;
  add_initializers(graph, body, frame.prefix);
  body.add_infos(graph);
  // Callers have checked that the graph has so many inputs.
  for (std::size_t i = 0; i < inputs.size(); ++i)
    body.define(graph.inputs[i].name, inputs[i], fmt::format("{}: {}", graph_.file, frame.prefix));
  run_nodes(graph.nodes, body, frame);
  std::vector<std::uint32_t> outputs;
  const std::string where = fmt::format("{}: {}: its outputs", graph_.file, frame.prefix);
  for (const WireValueInfo& output : graph.outputs) {
    outputs.push_back(body.lookup(output.name, where));
    if (outputs.back() == kNoValue)
      throw Error(where, fmt::format("'{}' is left out", readable(output.name)));
  }
  return outputs;
}

std::vector<std::uint32_t> OnnxFlattener::run_branch(const OnnxNode& node, const WireGraph& graph,
                                                     const OnnxScope& scope, const OnnxFrame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  const OnnxFrame inner{frame.opsets, frame.arguments, flat_.unique_name(node.name), frame.repeat,
                        frame.depth + 1};
  return run_graph(graph, {}, scope, inner);
}

void OnnxFlattener::run_if(const OnnxNode& node, const WireNode& wire, OnnxScope& scope,
                           const OnnxFrame& frame) {
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
    const double then_work = flat_.flops_since(static_cast<std::size_t>(first));
    const auto middle = static_cast<std::ptrdiff_t>(graph_.nodes.size());
    std::vector<std::uint32_t> other = run_branch(node, else_graph, scope, frame);
    const bool then_fits = types_.fits_file(wire, scope, outputs);
    const bool one_fits = then_fits != types_.fits_file(wire, scope, other);
    const double else_work = flat_.flops_since(static_cast<std::size_t>(middle));
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
    throw Error(node.where, fmt::format("has {}, but its branch has {}",
                                        typed_count(wire.outputs.size(), "output"), outputs.size()));
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (!wire.outputs[i].empty()) scope.define(wire.outputs[i], outputs[i], node.where);
  }
}

// A modifier of the scores or probabilities is part of the kernel: its arithmetic counts, but nothing of it
// moves through memory apart from what it takes from outside.
void OnnxFlattener::run_flex_attention(OnnxNode node, const WireNode& wire, OnnxScope& scope,
                                       const OnnxFrame& frame) {
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
    const std::uint32_t argument = flat_.new_value(readable(body.inputs[0].name));
    flat_.set_type(node, argument, {precision, scores});
    // The body is run only to be counted: its nodes are taken back, and what it reads from outside becomes an
    // input of the operator.
    const OnnxFlatGraph::Mark before = flat_.mark();
    const std::vector<std::uint32_t> result = run_body(node, body, {argument}, 1, scope, frame);
    if (graph_.values[result[0]].shape != scores)
      throw Error(node.where,
                  fmt::format("its '{}' changes the shape of the scores, {}", name, to_text(scores)));
    // Nodes of the body count their repetitions; inner_flops is of one execution.
    flops += flat_.flops_since(before.nodes) / static_cast<double>(frame.repeat);
    for (std::size_t i = before.nodes; i < graph_.nodes.size(); ++i) {
      for (const std::uint32_t input : graph_.nodes[i].inputs) {
        const bool known = std::find(node.inputs.begin(), node.inputs.end(), input) != node.inputs.end();
        // Values are numbered as they are made, so a smaller number than the argument's was there before the
        // body.
        if (input < argument && !known) node.inputs.push_back(input);
      }
    }
    flat_.take_back(before);
  }
  if (!(flops < 1e18)) throw Error(node.where, "its modifiers are absurdly large");
  node.inner_flops = static_cast<std::int64_t>(flops);
  run_operator(std::move(node), wire, scope);
}

// The forms of Constant: a tensor, or since operator set 12 numbers and lists as plain attributes.
void OnnxFlattener::run_constant(const OnnxNode& node, const WireNode& wire, OnnxScope& scope) {
  if (wire.outputs.size() != 1 || wire.outputs[0].empty())
    throw Error(node.where, "a Constant has one output");
  const std::uint32_t id = flat_.new_value(readable(wire.outputs[0]));
  scope.define(wire.outputs[0], id, node.where);
  OnnxValue& value = graph_.values[id];
  value.is_static = true;
  value.origin = OnnxOrigin::constant;
  OnnxConstant constant;
  for (const auto& [name, attribute] : node.attributes) {
    if ((name == "value" || name == "sparse_value") && attribute->tensor != nullptr) {
      value.tensor = attribute->tensor.get();
      flat_.set_type(node, id, {value.tensor->data_type, value.tensor->dims});
      value.sources = {{.value = id}};
      return;
    }
    const auto length = [](std::size_t size) { return Shape{static_cast<std::int64_t>(size)}; };
    if (name == "value_int") {
      constant = {{}, false, {attribute->i}, {}};
    } else if (name == "value_ints") {
      constant = {length(attribute->ints.size()), false, attribute->ints, {}};
    } else if (name == "value_float") {
      constant = {{}, true, {}, {static_cast<double>(attribute->f)}};
    } else if (name == "value_floats") {
      constant = {
          length(attribute->floats.size()), true, {}, {attribute->floats.begin(), attribute->floats.end()}};
    } else if (name == "value_string" || name == "value_strings") {
      flat_.set_type(
          node, id,
          {onnx_type::kString, name == "value_string" ? Shape{} : length(attribute->strings.size())});
      return;
    } else {
      continue;
    }
    flat_.set_type(node, id, {constant.floating ? onnx_type::kFloat : onnx_type::kInt64, constant.shape});
    value.constant = std::move(constant);
    value.sources = {{.value = id}};
    return;
  }
  throw Error(node.where, "has no value");
}

// Folding has a budget of elements, so that a hostile file cannot make it the most expensive part of reading.
bool OnnxFlattener::fold(const OnnxNode& node) try {
  const OnnxNodeView view(graph_, node);
  if (node.outputs.empty() || folds_left_ <= 0) return false;
  if (node.type == "Split" && node.domain.empty()) {
    std::vector<OnnxConstant> parts = fold_split(view);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      folds_left_ -= static_cast<std::int64_t>(parts[i].size());
      if (node.outputs[i] != kNoValue) graph_.values[node.outputs[i]].constant = std::move(parts[i]);
    }
    return !parts.empty();
  }
  if (node.outputs.size() != 1 || node.outputs[0] == kNoValue) return false;
  std::optional<OnnxConstant> constant = fold_constant(view);
  // The shape rule has decided already; a folded value that disagrees with it is not trusted.
  if (!constant || constant->shape != graph_.values[node.outputs[0]].shape) return false;
  folds_left_ -= static_cast<std::int64_t>(constant->size());
  graph_.values[node.outputs[0]].constant = std::move(constant);
  return true;
} catch (const OnnxUndetermined&) {
  return false;
}

void OnnxFlattener::add_initializers(const WireGraph& graph, OnnxScope& scope, const std::string& prefix) {
  for (const WireTensor& tensor : graph.initializers) {
    const std::string where = fmt::format("{}: initializer '{}'", graph_.file, readable(tensor.name));
    if (tensor.name.empty()) throw Error(graph_.file, "an initializer has no name");
    // Subgraphs that run several times get their names apart by the prefix.
    const std::uint32_t id =
        flat_.new_value(prefix.empty() ? readable(tensor.name) : prefix + "/" + readable(tensor.name));
    scope.define(tensor.name, id, where);
    OnnxNode initializer;
    initializer.where = where;
    flat_.set_type(initializer, id, {tensor.data_type, tensor.dims});
    OnnxValue& value = graph_.values[id];
    value.is_static = true;
    value.tensor = &tensor;
    value.origin = OnnxOrigin::stored;
    value.sources = {{.value = id}};
  }
}

OnnxGraph flatten_onnx(const WireModel& model, const std::string& file, const ModelOptions& options) {
  return OnnxFlattener(model, file, options).flatten();
}

}  // namespace armilla
