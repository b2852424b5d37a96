#include "read/onnx/flatten/sequence_map.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "read/onnx/flatten/sequence.h"
#include "read/onnx/node_view.h"

namespace armilla {

// All elements have one shape: the body appears once.
std::vector<std::vector<std::uint32_t>> OnnxSequenceMap::map_alike(const OnnxNode& node,
                                                                   const WireGraph& body, std::int64_t length,
                                                                   const OnnxScope& scope,
                                                                   const OnnxFrame& frame) {
  std::vector<std::uint32_t> arguments = node.inputs;
  std::vector<std::uint32_t> outside;
  std::vector<std::uint32_t> inside;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const OnnxValue sequence = graph_.values[arguments[i]];
    if (sequence.kind != ValueKind::sequence) continue;
    if (sequence.items) {
      outside.insert(outside.end(), sequence.items->begin(), sequence.items->end());
    } else {
      outside.push_back(arguments[i]);
    }
    arguments[i] = flat_.like(sequence.element, readable(body.inputs[i].name));
    inside.push_back(arguments[i]);
  }
  flat_.border(node, "begin", outside, inside, frame.repeat);
  const std::vector<std::uint32_t> given = runner_.run_body(node, body, arguments, length, scope, frame);
  std::vector<std::vector<std::uint32_t>> results(given.size());
  std::vector<std::uint32_t> handed_out;
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::int64_t k = 0; k < length; ++k)
      results[i].push_back(flat_.like(given[i], fmt::format("{}.{}.{}", node.name, i, k)));
    handed_out.insert(handed_out.end(), results[i].begin(), results[i].end());
  }
  flat_.border(node, "end", given, handed_out, frame.repeat);
  return results;
}

// Elements of different shapes: the body once for each.
std::vector<std::vector<std::uint32_t>> OnnxSequenceMap::map_each(const OnnxNode& node, const WireGraph& body,
                                                                  std::size_t length, const OnnxScope& scope,
                                                                  const OnnxFrame& frame) {
  std::vector<std::vector<std::uint32_t>> results(body.outputs.size());
  for (std::size_t k = 0; k < length; ++k) {
    std::vector<std::uint32_t> arguments = node.inputs;
    for (std::uint32_t& argument : arguments) {
      const OnnxValue& value = graph_.values[argument];
      if (value.kind == ValueKind::sequence) argument = value.items ? (*value.items)[k] : value.element;
    }
    const std::vector<std::uint32_t> given = runner_.run_body(node, body, arguments, 1, scope, frame);
    for (std::size_t i = 0; i < given.size(); ++i) results[i].push_back(given[i]);
  }
  return results;
}

void OnnxSequenceMap::run(const OnnxNode& node, const WireNode& wire, OnnxScope& scope,
                          const OnnxFrame& frame) {
  const OnnxNodeView view(graph_, node);
  const WireGraph& body = subgraph(node, "body");
  need_kind(view, 0, ValueKind::sequence);
  if (body.inputs.size() != node.inputs.size() || body.outputs.size() < wire.outputs.size())
    throw Error(node.where, "its body does not take and give what the operator does");
  const bool known = view.input(0).items.has_value();  // how often the body runs
  const std::size_t length = known ? view.input(0).items->size() : 1;
  bool alike = true;  // all elements of a sequence have one shape
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& value = view.input(i);
    if (value.kind != ValueKind::sequence) continue;
    if (value.items && known && value.items->size() != length)
      view.fail(fmt::format("maps sequences of {} and {} tensors together", length, value.items->size()));
    const bool has_shape = value.element != kNoValue && graph_.values[value.element].shape;
    // Nothing to run the body with, and nothing to tell the shape of its results.
    if (length > 0 && !has_shape && !(known && value.items))
      view.fail(fmt::format("the shape of the elements of '{}' is not known", value.name),
                "declare it in the sequence's type, or make the sequence inside of the graph");
    alike = alike && has_shape;
  }
  std::vector<std::vector<std::uint32_t>> results(body.outputs.size());
  if (!alike) {
    results = map_each(node, body, length, scope, frame);
  } else {
    if (!known)
      graph_.notes.push_back(fmt::format(
          "'{}' runs for every element of a sequence whose length is not known; one is counted", node.name));
    results = map_alike(node, body, static_cast<std::int64_t>(length), scope, frame);
  }
  for (std::size_t i = 0; i < wire.outputs.size(); ++i) {
    if (wire.outputs[i].empty()) continue;
    const std::uint32_t value = flat_.container(ValueKind::sequence, body.outputs[i].data_type);
    flat_.fill(value, std::move(results[i]));
    if (!known) graph_.values[value].items.reset();
    graph_.values[value].name = readable(wire.outputs[i]);
    scope.define(wire.outputs[i], value, node.where);
  }
}

}  // namespace armilla
