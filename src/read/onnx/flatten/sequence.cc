#include "read/onnx/flatten/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "read/onnx/node_view.h"

namespace armilla {
namespace {

// Where in `count` items the integer input `i` points; `fallback` when it is left out, nullopt when not
// known.
std::optional<std::int64_t> sequence_position(const OnnxNodeView& view, std::size_t i, std::int64_t count,
                                              std::int64_t end, std::int64_t fallback) {
  if (!view.has_input(i)) return fallback;
  const OnnxConstant* given = view.constant_input(i);
  if (given == nullptr || given->floating || given->size() != 1) return std::nullopt;
  const std::int64_t at = given->ints[0];
  // Negative positions count from the end; an insertion may also stand behind the last one.
  if (at < -count || at >= end) view.fail(fmt::format("has position {} in a sequence of {}", at, count));
  return at < 0 ? at + count : at;
}

void need_items(const OnnxNodeView& view, std::int64_t items) {
  if (items > OnnxFlatGraph::kMostItems) view.fail(fmt::format("makes a sequence of {} tensors", items));
}

// Sizes of the parts of a SplitToSequence; nullopt when they depend on data.
std::optional<std::vector<std::int64_t>> split_sizes(const OnnxNodeView& view, std::int64_t whole) {
  std::vector<std::int64_t> sizes;
  const OnnxConstant* given = view.constant_input(1);
  if (view.has_input(1) && (given == nullptr || given->floating)) return std::nullopt;
  // One number is the size of every part, a list the size of each.
  if (given != nullptr && !given->shape.empty()) {
    std::int64_t sum = 0;
    for (const std::int64_t size : given->ints) {
      if (size < 0) view.fail(fmt::format("asks for a dimension of {}", size));
      sum = checked_add(sum, size, view.where());
    }
    if (sum != whole) view.fail(fmt::format("splits {} into parts of {} together", whole, sum));
    return given->ints;
  }
  const std::int64_t part = given != nullptr ? given->ints[0] : 1;
  if (part < 1) view.fail(fmt::format("splits into parts of {}", part));
  need_items(view, whole / part);
  for (std::int64_t left = whole; left > 0; left -= part) sizes.push_back(std::min(part, left));
  return sizes;
}

}  // namespace

void need_kind(const OnnxNodeView& view, std::size_t i, ValueKind kind) {
  const OnnxValue& value = view.input(i);
  if (value.kind != kind)
    view.fail(
        fmt::format("its input '{}' is a {} and no {}", value.name, name_of(value.kind), name_of(kind)));
}

// SequenceEmpty, SequenceConstruct, SequenceInsert, SequenceErase and Optional.
std::uint32_t OnnxContainers::put_together(const OnnxNode& node, OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  if (node.type == "SequenceEmpty" || (node.type == "Optional" && !view.has_input(0))) {
    const WireAttribute* type = view.attribute("type");
    const std::uint32_t empty =
        flat_.container(node.type == "Optional" ? ValueKind::optional : ValueKind::sequence,
                        static_cast<std::int32_t>(view.int_attribute("dtype", onnx_type::kFloat)));
    flat_.fill(empty, {});
    if (type != nullptr && type->type != nullptr) {
      const std::uint32_t element = flat_.new_value("element");
      flat_.declare(element, *type->type);
      graph_.values[empty].element_type = graph_.values[element].element_type;
    }
    return empty;
  }
  if (node.type == "SequenceConstruct" || node.type == "Optional") {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) view.input(i);
    if (node.inputs.empty()) view.fail("makes a sequence of nothing", "SequenceEmpty does");
    const std::uint32_t made = flat_.container(
        node.type == "Optional" ? ValueKind::optional : ValueKind::sequence, view.input(0).element_type);
    flat_.fill(made, node.inputs);
    return made;
  }
  // What is left are SequenceInsert and SequenceErase.
  need_kind(view, 0, ValueKind::sequence);
  const bool inserts = node.type == "SequenceInsert";
  const OnnxValue before = view.input(0);
  if (inserts) view.input(1);
  const std::uint32_t after = flat_.container(ValueKind::sequence, before.element_type);
  const auto count = static_cast<std::int64_t>(before.items ? before.items->size() : 0);
  const auto at = before.items ? sequence_position(view, inserts ? 2 : 1, count, inserts ? count + 1 : count,
                                                   inserts ? count : count - 1)
                               : std::nullopt;
  if (before.items && at) {
    std::vector<std::uint32_t> items = *before.items;
    if (!inserts && items.empty()) view.fail("erases from an empty sequence");
    if (inserts) {
      need_items(view, count + 1);
      items.insert(items.begin() + *at, node.inputs[1]);
    } else {
      items.erase(items.begin() + *at);
    }
    flat_.fill(after, std::move(items));
    return after;
  }
  // Which element moves is not known, so all must be alike for any to be.
  std::uint32_t element = before.element;
  if (inserts && element == kNoValue) {
    element = node.inputs[1];
  } else if (inserts && graph_.values[element].shape != graph_.values[node.inputs[1]].shape) {
    element = flat_.like(element, {});
    graph_.values[element].shape.reset();
  }
  graph_.values[after].element = element;
  flat.inputs = node.inputs;
  return after;
}

// SequenceAt and OptionalGetElement.
std::uint32_t OnnxContainers::taken_out(const OnnxNode& node, const WireNode& wire, const OnnxScope& scope,
                                        OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  const OnnxValue from = view.input(0);
  std::uint32_t item = kNoValue;
  if (node.type == "OptionalGetElement" && from.kind != ValueKind::optional) {
    item = node.inputs[0];
  } else if (node.type == "OptionalGetElement") {
    if (from.items && from.items->empty()) view.fail("asks for the element of an empty optional");
    if (from.items) item = from.items->front();
  } else {
    need_kind(view, 0, ValueKind::sequence);
    if (from.items) {
      const auto count = static_cast<std::int64_t>(from.items->size());
      const auto at = sequence_position(view, 1, count, count, 0);
      if (count == 0) view.fail("asks for an element of an empty sequence");
      if (at) item = (*from.items)[static_cast<std::size_t>(*at)];
    }
  }
  // Taking an element out moves nothing.
  if (item != kNoValue) {
    flat.inputs = {item};
    return flat_.alias(item, {});
  }
  if (from.element != kNoValue &&
      (graph_.values[from.element].shape || graph_.values[from.element].kind != ValueKind::tensor))
    return flat_.like(from.element, {});
  // The element's own shape is not known: what the file records of this output may be.
  const auto said = types_.recorded(node, wire.outputs[0], scope);
  if (!said)
    view.fail(fmt::format("the shape of its output '{}' depends on what '{}' holds, which is not known",
                          readable(wire.outputs[0]), from.name),
              "put the shape into the file, or make the sequence inside of the graph");
  const std::uint32_t value = flat_.new_value(readable(wire.outputs[0]));
  flat_.set_type(node, value, *said);
  return value;
}

std::uint32_t OnnxContainers::split_to_sequence(const OnnxNode& node, OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  const Shape from = view.input_shape(0, 1);
  const std::int32_t type = view.input(0).element_type;
  const std::size_t axis = view.axis(view.int_attribute("axis", 0), from.size());
  const std::uint32_t made = flat_.container(ValueKind::sequence, type);
  flat.inputs = {node.inputs[0]};
  const auto sizes = split_sizes(view, from[axis]);
  // keepdims matters only where every part is a single slice.
  const auto part = [&](std::optional<std::int64_t> size) {
    const std::uint32_t item = flat_.new_value(fmt::format("{}.part", node.name));
    graph_.values[item].element_type = type;
    if (!size) return item;
    Shape shape = from;
    shape[axis] = *size;
    if (!view.has_input(1) && view.int_attribute("keepdims", 1) == 0)
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    flat_.set_type(node, item, {type, shape});
    return item;
  };
  if (sizes) {
    std::vector<std::uint32_t> items;
    for (const std::int64_t size : *sizes) items.push_back(part(size));
    flat.outputs = items;
    flat_.fill(made, std::move(items));
    return made;
  }
  // The sizes are not known; as many as there are of them, if they are a list.
  const Shape& given = view.input_shape(1);
  const std::uint32_t element = part(std::nullopt);
  if (given.size() == 1) {
    need_items(view, given[0]);
    flat_.fill(made, std::vector<std::uint32_t>(static_cast<std::size_t>(given[0]), element));
  }
  graph_.values[made].element = element;
  return made;
}

// Concatenated along an existing axis, or stacked along a new one; then all items need one shape.
std::uint32_t OnnxContainers::concat_from_sequence(const OnnxNode& node, const WireNode& wire,
                                                   const OnnxScope& scope, OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  need_kind(view, 0, ValueKind::sequence);
  const OnnxValue from = view.input(0);
  const std::uint32_t value = flat_.new_value(readable(wire.outputs[0]));
  if (!from.items) {
    const auto said = types_.recorded(node, wire.outputs[0], scope);
    if (!said)
      view.fail(fmt::format("the length of the sequence '{}' is not known", from.name),
                fmt::format("if it is an input, --dim {}.length=N gives it", from.name));
    flat_.set_type(node, value, *said);
    return value;
  }
  if (from.items->empty()) view.fail("concatenates an empty sequence");
  flat.inputs = *from.items;
  OnnxType type;
  if (view.int_attribute("new_axis", 0) == 0) {
    std::vector<OnnxType> types(1);
    onnx_shape::concat(OnnxNodeView(graph_, flat), types);
    type = types[0];
  } else {
    const OnnxNodeView parts(graph_, flat);
    type = {parts.input(0).element_type, parts.input_shape(0)};
    for (std::size_t i = 1; i < flat.inputs.size(); ++i) {
      if (parts.input_shape(i) != type.shape)
        view.fail(
            fmt::format("stacks the shapes {} and {}", to_text(type.shape), to_text(parts.input_shape(i))));
    }
    const std::size_t axis = view.axis(view.int_attribute("axis", 0), type.shape.size() + 1);
    type.shape.insert(type.shape.begin() + static_cast<std::ptrdiff_t>(axis),
                      static_cast<std::int64_t>(flat.inputs.size()));
  }
  flat_.set_type(node, value, type);
  return value;
}

bool OnnxContainers::run(const OnnxNode& node, const WireNode& wire, OnnxScope& scope) {
  const std::string_view type = node.type;
  const OnnxNodeView view(graph_, node);
  const bool no_tensor = view.has_input(0) && view.input(0).kind != ValueKind::tensor;
  // The node as it appears in the flat graph, reading the items instead of the sequence.
  OnnxNode flat = node;
  flat.inputs.clear();
  std::uint32_t value = kNoValue;
  if (type == "SequenceEmpty" || type == "SequenceConstruct" || type == "SequenceInsert" ||
      type == "SequenceErase" || type == "Optional") {
    value = put_together(node, flat);
  } else if (wire.outputs.empty()) {
    return false;
  } else if (type == "SequenceAt" || type == "OptionalGetElement") {
    value = taken_out(node, wire, scope, flat);
  } else if (type == "SplitToSequence") {
    value = split_to_sequence(node, flat);
  } else if (type == "ConcatFromSequence") {
    value = concat_from_sequence(node, wire, scope, flat);
  } else if (type == "SequenceLength") {
    need_kind(view, 0, ValueKind::sequence);
    const auto& items = view.input(0).items;
    value = flat_.constant_scalar(
        onnx_type::kInt64, items ? std::optional(static_cast<std::int64_t>(items->size())) : std::nullopt);
  } else if (type == "OptionalHasElement") {
    // An open optional may or may not hold something; then the answer is not known.
    const bool open = no_tensor && view.input(0).kind == ValueKind::optional && !view.input(0).items;
    const bool has = no_tensor && view.input(0).items && view.input(0).kind == ValueKind::optional
                         ? !view.input(0).items->empty()
                         : view.has_input(0);
    value = flat_.constant_scalar(onnx_type::kBool, open ? std::nullopt : std::optional<std::int64_t>(has));
  } else if (type == "Identity" && no_tensor) {
    value = flat_.alias(node.inputs[0], {});
  } else {
    return false;
  }
  if (wire.outputs.empty() || wire.outputs[0].empty()) return true;
  OnnxValue& made = graph_.values[value];
  made.name = readable(wire.outputs[0]);
  scope.define(wire.outputs[0], value, node.where);
  // Sequences of static tensors only move weights: nothing is left to be executed.
  if (made.is_static) {
    ++graph_.folded_nodes;
    return true;
  }
  if (flat.inputs.empty()) flat.inputs = node.inputs;
  flat.outputs.push_back(value);
  flat.name = flat_.unique_name(node.name);
  graph_.nodes.push_back(std::move(flat));
  return true;
}

}  // namespace armilla
