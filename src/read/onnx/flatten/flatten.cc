#include "read/onnx/flatten/flatten.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "read/onnx/order.h"
#include "read/onnx/sources.h"

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

}  // namespace

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

std::string function_key(std::string_view domain, std::string_view name, std::string_view overload) {
  return fmt::format("{}:{}:{}", plain_domain(domain), name, overload);
}

OnnxFlattener::OnnxFlattener(const WireModel& model, const std::string& file, const ModelOptions& options)
    : model_(model), dims_(bind_dimensions(model, file, options)) {
  graph_.file = file;
  graph_.batch = dims_.batch;
  graph_.batch_is_fixed = dims_.batch_is_fixed;
  graph_.notes = dims_.notes;
  // Functions may call functions: a small file could expand to billions of nodes.
  nodes_left_ = count_nodes(model.graph) + kMaxInlinedNodes;
  for (const WireFunction& function : model.functions)
    functions_.emplace(function_key(function.domain, function.name, function.overload), &function);
}

OnnxGraph OnnxFlattener::flatten() {
  // Initializers first, since files up to IR version 3 list them among the inputs as well.
  Scope scope;
  add_initializers(model_.graph, scope, "");
  add_infos(model_.graph, scope);
  for (const WireValueInfo* input : true_inputs(model_.graph)) {
    const std::uint32_t value = new_value(readable(input->name));
    define(scope, input->name, value, graph_.file);
    if (!input->kind)
      throw Error(graph_.file, fmt::format("its input '{}' has no type", graph_.values[value].name));
    declare(value, *input);
    take_given_values(value, *input);
    graph_.inputs.push_back(value);
  }
  run_nodes(model_.graph.nodes, scope, {&model_.opsets, {}, "", 1, 0});
  for (const WireValueInfo& output : model_.graph.outputs) {
    const std::uint32_t value = lookup(scope, output.name, graph_.file + ": the graph's outputs");
    if (value == kNoValue) continue;
    // What a branch, a body or a function hands out has its own name inside; an initializer or an input that
    // is handed out keeps its name.
    OnnxValue& handed = graph_.values[value];
    const auto own = scope.values.find(handed.name);
    if (own == scope.values.end() || own->second != value) handed.name = readable(output.name);
    graph_.outputs.push_back(value);
  }
  finish_notes();
  return std::move(graph_);
}

void OnnxFlattener::finish_notes() {
  if (graph_.folded_nodes > 0)
    graph_.notes.push_back(fmt::format(
        "{} operators that only compute shapes or prepare weights cost nothing", graph_.folded_nodes));
  if (contradictions_ > 0)
    graph_.notes.push_back(
        fmt::format("the file's shapes of {} tensors contradict its operators, which are believed; "
                    "the first: {}",
                    contradictions_, first_contradiction_));
  if (bounds_ > 0)
    graph_.notes.push_back(
        bounds_ == 1
            ? fmt::format("the size of one tensor depends on data; the largest possible is taken: {}",
                          first_bound_)
            : fmt::format("the sizes of {} tensors depend on data; the largest possible are taken; the "
                          "first: {}",
                          bounds_, first_bound_));
}

void OnnxFlattener::run_nodes(const std::vector<WireNode>& nodes, Scope& scope, const Frame& frame) {
  const std::string where = frame.prefix.empty() ? graph_.file : graph_.file + ": " + frame.prefix;
  scope.nodes = &nodes;
  // Files may list nodes in any order, though the specification asks for a topological one.
  for (const std::uint32_t i : order_nodes(nodes, where)) run_node(nodes[i], i, scope, frame);
}

void OnnxFlattener::run_node(const WireNode& wire, std::size_t index, Scope& scope, const Frame& frame) {
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
    node.inputs.push_back(input.empty() ? kNoValue : lookup(scope, input, node.where));

  // A function of the model comes before an operator of the same name: the file's meaning counts.
  const auto function = functions_.find(function_key(wire.domain, wire.type, wire.overload));
  if (function != functions_.end()) return run_function(node, wire, *function->second, scope, frame);
  if (node.domain.empty()) {
    if (node.type == "Constant") return run_constant(node, wire, scope);
    if (node.type == "If") return run_if(node, wire, scope, frame);
    if (node.type == "Loop") return run_loop(node, wire, scope, frame);
    if (node.type == "Scan") return run_scan(node, wire, scope, frame);
    if (run_container(node, wire, scope, frame)) return;
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

void OnnxFlattener::run_operator(OnnxNode node, const WireNode& wire, Scope& scope) {
  for (const std::string_view name : wire.outputs) {
    node.outputs.push_back(name.empty() ? kNoValue : new_value(readable(name)));
    if (!name.empty()) define(scope, name, node.outputs.back(), node.where);
  }
  const OnnxOp* op = find_onnx_op(node.domain, node.type);
  infer(node, op, wire, scope);
  // What follows from stored tensors alone is done once, by the exporter or the runtime, and not in every
  // pass. Random tensors are new in every pass, unless they stand for a weight.
  const bool all_static =
      std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](std::uint32_t i) { return i == kNoValue || graph_.values[i].is_static; }) &&
      op != nullptr && (!node.inputs.empty() || node.type == "Range" || is_random(node.type)) &&
      (!is_random(node.type) || becomes_weight(wire, scope));
  const bool folded = op != nullptr && fold(node);
  // Products of weights (low-rank updates) are real work of every pass.
  if (folded || (all_static && !is_matrix(*op))) {
    inherit_sources(node, *op);
    ++graph_.folded_nodes;
    return;
  }
  node.name = unique_name(node.name);
  graph_.nodes.push_back(std::move(node));
}

// The forms of Constant: a tensor, or since operator set 12 numbers and lists as plain attributes.
void OnnxFlattener::run_constant(const OnnxNode& node, const WireNode& wire, Scope& scope) {
  if (wire.outputs.size() != 1 || wire.outputs[0].empty())
    throw Error(node.where, "a Constant has one output");
  const std::uint32_t id = new_value(readable(wire.outputs[0]));
  define(scope, wire.outputs[0], id, node.where);
  OnnxValue& value = graph_.values[id];
  value.is_static = true;
  value.origin = OnnxOrigin::constant;
  OnnxConstant constant;
  for (const auto& [name, attribute] : node.attributes) {
    if ((name == "value" || name == "sparse_value") && attribute->tensor != nullptr) {
      value.tensor = attribute->tensor.get();
      set_type(node, id, {value.tensor->data_type, value.tensor->dims});
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
      set_type(node, id,
               {onnx_type::kString, name == "value_string" ? Shape{} : length(attribute->strings.size())});
      return;
    } else {
      continue;
    }
    set_type(node, id, {constant.floating ? onnx_type::kFloat : onnx_type::kInt64, constant.shape});
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

// Weights go on through static operators under their own identity: a transposed weight is the stored one.
void OnnxFlattener::inherit_sources(const OnnxNode& node, const OnnxOp& op) {
  const std::vector<OnnxSource> sources = sources_through(graph_, node, op);
  for (const std::uint32_t output : node.outputs) {
    if (output == kNoValue) continue;
    graph_.values[output].is_static = true;
    sources_left_ -= static_cast<std::int64_t>(sources.size());
    graph_.values[output].sources = sources;
  }
  if (sources_left_ < 0)
    throw Error(node.where, "too many initializers are combined into one tensor again and again");
}

void OnnxFlattener::add_initializers(const WireGraph& graph, Scope& scope, const std::string& prefix) {
  for (const WireTensor& tensor : graph.initializers) {
    const std::string where = fmt::format("{}: initializer '{}'", graph_.file, readable(tensor.name));
    if (tensor.name.empty()) throw Error(graph_.file, "an initializer has no name");
    // Subgraphs that run several times get their names apart by the prefix.
    const std::uint32_t id =
        new_value(prefix.empty() ? readable(tensor.name) : prefix + "/" + readable(tensor.name));
    define(scope, tensor.name, id, where);
    OnnxNode initializer;
    initializer.where = where;
    set_type(initializer, id, {tensor.data_type, tensor.dims});
    OnnxValue& value = graph_.values[id];
    value.is_static = true;
    value.tensor = &tensor;
    value.origin = OnnxOrigin::stored;
    value.sources = {{.value = id}};
  }
}

void OnnxFlattener::add_infos(const WireGraph& graph, Scope& scope) {
  for (const auto* list : {&graph.outputs, &graph.value_infos}) {
    for (const WireValueInfo& info : *list) {
      // A graph's outputs may say no shape that value_info does.
      const WireValueInfo*& known = scope.infos[info.name];
      if (known == nullptr || !known->has_shape) known = &info;
    }
  }
}

std::uint32_t OnnxFlattener::new_value(std::string name) {
  graph_.values.emplace_back();
  graph_.values.back().name = std::move(name);
  return static_cast<std::uint32_t>(graph_.values.size() - 1);
}

void OnnxFlattener::define(Scope& scope, std::string_view name, std::uint32_t value,
                           const std::string& where) {
  if (!scope.values.emplace(name, value).second)
    throw Error(where, fmt::format("defines '{}', which is defined already", readable(name)));
}

// From the innermost graph outwards, as ONNX scopes names.
std::uint32_t OnnxFlattener::lookup(const Scope& scope, std::string_view name,
                                    const std::string& where) const {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    const auto found = at->values.find(name);
    if (found != at->values.end()) return found->second;
  }
  // Suggestions compare with every name; large graphs have too many.
  constexpr std::size_t kMostCompared = 2000;
  std::vector<std::string> known;
  for (const auto& [other, value] : scope.values) {
    if (known.size() == kMostCompared) break;
    known.push_back(readable(other));
  }
  std::sort(known.begin(), known.end());
  std::string hint = suggest(readable(name), known);
  if (!hint.starts_with("did you mean")) hint = "the file is incomplete; export it again";
  throw Error(where, fmt::format("uses '{}', which nothing defines", readable(name)), hint);
}

// Counts on from the last number given to the same name, so that many equal names stay linear.
std::string OnnxFlattener::unique_name(const std::string& wanted) {
  std::string name = wanted;
  while (!used_names_.try_emplace(name, 1).second) name = fmt::format("{}#{}", wanted, ++used_names_[wanted]);
  return name;
}

OnnxGraph flatten_onnx(const WireModel& model, const std::string& file, const ModelOptions& options) {
  return OnnxFlattener(model, file, options).flatten();
}

}  // namespace armilla
