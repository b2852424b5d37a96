// Functions, If, Loop and Scan: graphs within the graph, made flat.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "read/onnx_flatten.h"

namespace armilla {
namespace {

constexpr std::string_view kUnrollHint =
    "unroll the loop at export (torch.jit.trace does), or replace it by a single operator";

// One number that is known, if it is.
std::optional<std::int64_t> known_number(OnnxGraph& graph, std::uint32_t value) {
  if (value == kNoValue) return std::nullopt;
  const OnnxConstant* constant = graph.constant(value);
  if (constant == nullptr || constant->size() != 1 || constant->floating) return std::nullopt;
  return constant->ints[0];
}

// Whether a loop hands its carried value on to the next iteration as it came.
bool stays_the_same(const WireGraph& body, std::size_t input, std::size_t output) {
  std::string_view name = body.outputs[output].name;
  for (std::size_t step = 0; step <= body.nodes.size(); ++step) {
    if (name == body.inputs[input].name) return true;
    const auto maker = std::find_if(body.nodes.begin(), body.nodes.end(), [&](const WireNode& node) {
      return node.type == "Identity" && node.inputs.size() == 1 && node.outputs.size() == 1 &&
             node.outputs[0] == name;
    });
    if (maker == body.nodes.end()) return false;
    name = maker->inputs[0];
  }
  return false;
}

}  // namespace

void OnnxFlattener::run_function(const OnnxNode& node, const WireNode& wire, const WireFunction& function,
                                 Scope& scope, const Frame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("functions call each other more than {} deep", kMaxDepth),
                "a function must not call itself");
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

std::vector<std::uint32_t> OnnxFlattener::run_graph(const WireGraph& graph,
                                                    const std::vector<std::uint32_t>& inputs,
                                                    const Scope& scope, const Frame& frame) {
  Scope body;
  body.parent = &scope;
  add_initializers(graph, body, frame.prefix);
  add_infos(graph, body);
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

void OnnxFlattener::run_if(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame) {
  const WireGraph& then_graph = subgraph(node, "then_branch");
  const WireGraph& else_graph = subgraph(node, "else_branch");
  const auto condition = known_number(graph_, node.inputs.empty() ? kNoValue : node.inputs[0]);
  std::vector<std::uint32_t> outputs;
  if (condition) {
    outputs = run_branch(node, *condition != 0 ? then_graph : else_graph, scope, frame);
  } else {
    const auto work_since = [&](std::size_t first) {
      double flops = 0;
      for (std::size_t i = first; i < graph_.nodes.size(); ++i) {
        const OnnxNode& inner = graph_.nodes[i];
        flops += static_cast<double>(
            work_of(OnnxNodeView(graph_, inner), find_onnx_op(inner.domain, inner.type)).work.flops.value);
      }
      return flops;
    };
    const auto first = static_cast<std::ptrdiff_t>(graph_.nodes.size());
    outputs = run_branch(node, then_graph, scope, frame);
    const double then_work = work_since(static_cast<std::size_t>(first));
    const auto middle = static_cast<std::ptrdiff_t>(graph_.nodes.size());
    std::vector<std::uint32_t> other = run_branch(node, else_graph, scope, frame);
    const bool take_then = then_work >= work_since(static_cast<std::size_t>(middle));
    const auto begin = graph_.nodes.begin();
    if (take_then) {
      graph_.nodes.erase(begin + middle, graph_.nodes.end());
    } else {
      graph_.nodes.erase(begin + first, begin + middle);
      outputs = std::move(other);
    }
    graph_.notes.push_back(
        fmt::format("'{}' depends on data: its {} branch, the one with more arithmetic, is taken", node.name,
                    take_then ? "then" : "else"));
  }
  if (outputs.size() < wire.outputs.size())
    throw Error(node.where,
                fmt::format("has {} outputs, but its branch has {}", wire.outputs.size(), outputs.size()));
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (!wire.outputs[i].empty()) define(scope, wire.outputs[i], outputs[i], node.where);
  }
}

std::uint32_t OnnxFlattener::like(std::uint32_t value, const std::string& name) {
  const std::uint32_t copy = new_value(name);
  graph_.values[copy].element_type = graph_.values[value].element_type;
  graph_.values[copy].shape = graph_.values[value].shape;
  graph_.values[copy].type_message = graph_.values[value].type_message;
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

void OnnxFlattener::check_carried(const OnnxNode& node, std::uint32_t before, std::uint32_t after) {
  const OnnxValue& from = graph_.values[before];
  const OnnxValue& to = graph_.values[after];
  if (from.shape != to.shape)
    throw Error(node.where,
                fmt::format("its carried '{}' changes its shape from {} to {} in every iteration", from.name,
                            from.shape ? to_text(*from.shape) : "no tensor",
                            to.shape ? to_text(*to.shape) : "no tensor"),
                std::string(kUnrollHint));
}

std::optional<std::int64_t> OnnxFlattener::most_trips(const OnnxNode& node) {
  const std::optional<std::int64_t> trips = known_number(graph_, node.inputs[0]);
  const std::optional<std::int64_t> condition = known_number(graph_, node.inputs[1]);
  if (node.inputs[0] != kNoValue && !trips)
    throw Error(node.where, "its trip count depends on data", std::string(kUnrollHint));
  if ((trips && *trips < 1) || (condition && *condition == 0))
    throw Error(node.where, "its body never runs", "remove the loop from the model");
  // Exporters write 2^63 - 1 for "as long as the condition holds".
  constexpr std::int64_t kMost = 1 << 30;
  return trips && *trips <= kMost ? trips : std::nullopt;
}

std::uint32_t OnnxFlattener::scalar(const WireValueInfo& info, std::int32_t element_type) {
  const std::uint32_t value = new_value(readable(info.name));
  graph_.values[value].element_type = element_type;
  graph_.values[value].shape = Shape{};
  return value;
}

void OnnxFlattener::hand_out(const OnnxNode& node, const WireNode& wire, Scope& scope,
                             const std::vector<std::uint32_t>& results, const Stacking& stacking) {
  std::vector<std::uint32_t> pieces;
  std::vector<std::uint32_t> stacked;
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    std::uint32_t value = results[i];
    if (i >= stacking.first) {
      if (!graph_.values[value].shape)
        throw Error(node.where, "stacks values that are no tensors", std::string(kUnrollHint));
      pieces.push_back(value);
      value = like(value, readable(wire.outputs[i]));
      Shape shape = *graph_.values[value].shape;
      const std::size_t which = i - stacking.first;
      const std::size_t axis =
          OnnxNodeView(graph_, node)
              .axis(which < stacking.axes.size() ? stacking.axes[which] : 0, shape.size() + 1);
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), stacking.trips);
      set_type(node, value, {graph_.values[value].element_type, shape, {}});
      stacked.push_back(value);
    }
    if (!wire.outputs[i].empty()) define(scope, wire.outputs[i], value, node.where);
  }
  if (!stacked.empty()) border(node, "end", pieces, stacked, stacking.repeat);
}

void OnnxFlattener::run_loop(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame) {
  const WireGraph& body = subgraph(node, "body");
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  if (body.inputs.size() != node.inputs.size() || node.inputs.size() < 2 ||
      body.outputs.size() + 1 < node.inputs.size() || wire.outputs.size() + 1 > body.outputs.size())
    throw Error(node.where, "its body does not take and give what the loop does");
  const std::size_t carried = node.inputs.size() - 2;
  std::optional<std::int64_t> trips = most_trips(node);
  const Frame inner{frame.opsets, frame.arguments, unique_name(node.name),
                    checked_multiply(frame.repeat, trips.value_or(1), node.where), frame.depth + 1};

  const std::uint32_t iteration = scalar(body.inputs[0], onnx_type::kInt64);
  const std::uint32_t keeps_on = scalar(body.inputs[1], onnx_type::kBool);
  graph_.values[keeps_on].is_static = true;
  graph_.values[keeps_on].constant = OnnxConstant{{}, false, {1}, {}};  // while the body runs, it is true
  std::vector<std::uint32_t> outside;
  std::vector<std::uint32_t> inside = {iteration};
  std::vector<std::uint32_t> begun = {iteration};
  for (std::size_t i = 2; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) throw Error(node.where, fmt::format("its input {} is missing", i));
    // A constant that every iteration hands on, such as a weight, is the same one inside.
    if (graph_.values[node.inputs[i]].is_static && stays_the_same(body, i, i - 1)) {
      inside.push_back(node.inputs[i]);
      continue;
    }
    outside.push_back(node.inputs[i]);
    inside.push_back(like(outside.back(), readable(body.inputs[i].name)));
    begun.push_back(inside.back());
  }
  border(node, "begin", outside, begun, frame.repeat);
  std::vector<std::uint32_t> arguments = inside;
  arguments.insert(arguments.begin() + 1, keeps_on);
  const std::size_t first = graph_.nodes.size();
  std::vector<std::uint32_t> results = run_graph(body, arguments, scope, inner);

  const std::optional<std::int64_t> goes_on = known_number(graph_, results[0]);
  if (goes_on && *goes_on == 0) {
    trips = 1;
    for (std::size_t i = first; i < graph_.nodes.size(); ++i)
      graph_.nodes[i].repeat = graph_.nodes[i].repeat / inner.repeat * frame.repeat;
  } else if (!trips) {
    throw Error(node.where, "runs until a condition on data holds, so its trip count is not known",
                std::string(kUnrollHint));
  } else if (!goes_on) {
    graph_.notes.push_back(
        fmt::format("'{}' may stop early; all of its {} iterations are counted", node.name, *trips));
  }
  results.erase(results.begin());
  for (std::size_t i = 0; i < carried; ++i) check_carried(node, inside[i + 1], results[i]);
  hand_out(node, wire, scope, results, {carried, *trips, frame.repeat, {}});
}

void OnnxFlattener::run_scan(const OnnxNode& node, const WireNode& wire, Scope& scope, const Frame& frame) {
  const WireGraph& body = subgraph(node, "body");
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  if (node.opset < 9)
    throw Error(node.where, fmt::format("Scan of operator set {} is not known", node.opset),
                "convert the model to operator set 9 or newer");
  const OnnxNodeView view(graph_, node);
  const std::int64_t scanned = view.int_attribute("num_scan_inputs", 0);
  const auto total = static_cast<std::int64_t>(node.inputs.size());
  if (scanned < 1 || scanned > total || body.inputs.size() != node.inputs.size() ||
      body.outputs.size() != wire.outputs.size() ||
      body.outputs.size() + static_cast<std::size_t>(scanned) < node.inputs.size())
    throw Error(node.where, "its body does not take and give what the scan does");
  const auto states = static_cast<std::size_t>(total - scanned);
  const std::vector<std::int64_t> axes = view.ints_attribute("scan_input_axes");
  std::vector<std::uint32_t> outside;
  std::vector<std::uint32_t> inside;
  std::vector<std::uint32_t> begun;
  std::int64_t trips = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    view.input_shape(i);
    const bool constant = graph_.values[node.inputs[i]].is_static;
    if (i < states && constant && stays_the_same(body, i, i)) {
      inside.push_back(node.inputs[i]);
      continue;
    }
    inside.push_back(like(node.inputs[i], readable(body.inputs[i].name)));
    if (i >= states && constant) {
      // One slice after the other of constants, such as the weights of one layer after the other.
      graph_.values[inside.back()].is_static = true;
      graph_.values[inside.back()].sources = graph_.values[node.inputs[i]].sources;
    } else {
      outside.push_back(node.inputs[i]);
      begun.push_back(inside.back());
    }
    if (i < states) continue;
    Shape& shape = *graph_.values[inside.back()].shape;
    const std::size_t axis = view.axis(i - states < axes.size() ? axes[i - states] : 0, shape.size());
    if (i > states && shape[axis] != trips)
      throw Error(node.where, fmt::format("scans inputs of {} and {} steps together", trips, shape[axis]));
    trips = shape[axis];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  if (trips < 1) throw Error(node.where, "its body never runs", "remove the scan from the model");
  border(node, "begin", outside, begun, frame.repeat);
  const Frame inner{frame.opsets, frame.arguments, unique_name(node.name),
                    checked_multiply(frame.repeat, trips, node.where), frame.depth + 1};
  const std::vector<std::uint32_t> results = run_graph(body, inside, scope, inner);
  for (std::size_t i = 0; i < states; ++i) check_carried(node, inside[i], results[i]);
  hand_out(node, wire, scope, results,
           {states, trips, frame.repeat, view.ints_attribute("scan_output_axes")});
}

}  // namespace armilla
