// Sequences and optionals: operators that put tensors into them and take them out again (ONNX 11 to 27).
//
// They are followed element by element while their length is known, so what is taken out has the shape of
// what was put in. Of a sequence of unknown length only the type of its elements is known, if at all.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "read/onnx/flatten/flatten.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostItems = 65536;

// Where in `count` items the integer input `i` points; `fallback` when it is left out, nullopt when not
// known.
std::optional<std::int64_t> position(const OnnxNodeView& view, std::size_t i, std::int64_t count,
                                     std::int64_t end, std::int64_t fallback) {
  if (!view.has_input(i)) return fallback;
  const OnnxConstant* given = view.constant_input(i);
  if (given == nullptr || given->floating || given->size() != 1) return std::nullopt;
  const std::int64_t at = given->ints[0];
  // Negative positions count from the end; an insertion may also stand behind the last one.
  if (at < -count || at >= end) view.fail(fmt::format("has position {} in a sequence of {}", at, count));
  return at < 0 ? at + count : at;
}

void need_kind(const OnnxNodeView& view, std::size_t i, ValueKind kind) {
  const OnnxValue& value = view.input(i);
  if (value.kind != kind)
    view.fail(
        fmt::format("its input '{}' is a {} and no {}", value.name, name_of(value.kind), name_of(kind)));
}

void need_items(const OnnxNodeView& view, std::int64_t items) {
  if (items > kMostItems) view.fail(fmt::format("makes a sequence of {} tensors", items));
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

std::uint32_t OnnxFlattener::container(ValueKind kind, std::int32_t element_type) {
  const std::uint32_t value = new_value({});
  graph_.values[value].kind = kind;
  graph_.values[value].element_type = element_type;
  return value;
}

// `element` stands for any of the items; where they differ it has no shape, and only items are trusted.
void OnnxFlattener::fill(std::uint32_t container, std::vector<std::uint32_t> items) {
  // The budget of what values refer to: sequences that are made longer again and again must end.
  sources_left_ -= static_cast<std::int64_t>(items.size());
  if (sources_left_ < 0) throw Error(graph_.file, "its sequences hold too many tensors together");
  std::uint32_t element = items.empty() ? kNoValue : items.front();
  const auto same = [&](std::uint32_t item) {
    return graph_.values[item].shape == graph_.values[element].shape &&
           graph_.values[item].kind == graph_.values[element].kind;
  };
  if (!std::all_of(items.begin(), items.end(), same)) {
    element = like(element, {});
    graph_.values[element].shape.reset();
  }
  OnnxValue& value = graph_.values[container];
  value.is_static = std::all_of(items.begin(), items.end(),
                                [&](std::uint32_t item) { return graph_.values[item].is_static; });
  value.element = element;
  if (element != kNoValue) value.element_type = graph_.values[element].element_type;
  value.items = std::move(items);
}

// Copies refer to the same items: they count towards the budget, too.
std::uint32_t OnnxFlattener::alias(std::uint32_t value, const std::string& name) {
  const std::uint32_t copy = new_value(name);
  OnnxValue same = graph_.values[value];
  sources_left_ -= static_cast<std::int64_t>(same.items ? same.items->size() : 0);
  if (sources_left_ < 0) throw Error(graph_.file, "its sequences hold too many tensors together");
  same.name = name;
  graph_.values[copy] = std::move(same);
  return copy;
}

std::uint32_t OnnxFlattener::constant_scalar(std::int32_t element_type, std::optional<std::int64_t> value) {
  const std::uint32_t scalar = new_value({});
  graph_.values[scalar].element_type = element_type;
  graph_.values[scalar].shape = Shape{};
  graph_.values[scalar].is_static = value.has_value();
  if (value) graph_.values[scalar].constant = OnnxConstant{{}, false, {*value}, {}};
  return scalar;
}

// Numbers given by --dim: the value of an integer input, or the length of an input that is a sequence.
void OnnxFlattener::take_given_values(std::uint32_t value, const WireValueInfo& input) {
  const std::string name = readable(input.name);
  if (is_single_integer(input)) {
    if (const auto given = dims_.values.find(name); given != dims_.values.end())
      graph_.values[value].constant = OnnxConstant{*graph_.values[value].shape, false, {given->second}, {}};
    return;
  }
  const auto length = dims_.values.find(name + ".length");
  if (input.kind != ValueKind::sequence || length == dims_.values.end()) return;
  if (length->second > kMostItems)
    throw Error(fmt::format("--dim {}={}", length->first, length->second), "is too long for a sequence");
  const std::uint32_t element = graph_.values[value].element;
  if (element == kNoValue) return;
  std::vector<std::uint32_t> items;
  for (std::int64_t i = 0; i < length->second; ++i)
    items.push_back(like(element, fmt::format("{}.{}", name, i)));
  fill(value, std::move(items));
}

// SequenceEmpty, SequenceConstruct, SequenceInsert, SequenceErase and Optional.
std::uint32_t OnnxFlattener::put_together(const OnnxNode& node, OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  if (node.type == "SequenceEmpty" || (node.type == "Optional" && !view.has_input(0))) {
    const WireAttribute* type = view.attribute("type");
    const std::uint32_t empty =
        container(node.type == "Optional" ? ValueKind::optional : ValueKind::sequence,
                  static_cast<std::int32_t>(view.int_attribute("dtype", onnx_type::kFloat)));
    fill(empty, {});
    if (type != nullptr && type->type != nullptr) {
      const std::uint32_t element = new_value("element");
      declare(element, *type->type);
      graph_.values[empty].element_type = graph_.values[element].element_type;
    }
    return empty;
  }
  if (node.type == "SequenceConstruct" || node.type == "Optional") {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) view.input(i);
    if (node.inputs.empty()) view.fail("makes a sequence of nothing", "SequenceEmpty does");
    const std::uint32_t made = container(node.type == "Optional" ? ValueKind::optional : ValueKind::sequence,
                                         view.input(0).element_type);
    fill(made, node.inputs);
    return made;
  }
  // What is left are SequenceInsert and SequenceErase.
  need_kind(view, 0, ValueKind::sequence);
  const bool inserts = node.type == "SequenceInsert";
  const OnnxValue before = view.input(0);
  if (inserts) view.input(1);
  const std::uint32_t after = container(ValueKind::sequence, before.element_type);
  const auto count = static_cast<std::int64_t>(before.items ? before.items->size() : 0);
  const auto at = before.items ? position(view, inserts ? 2 : 1, count, inserts ? count + 1 : count,
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
    fill(after, std::move(items));
    return after;
  }
  // Which element moves is not known, so all must be alike for any to be.
  std::uint32_t element = before.element;
  if (inserts && element == kNoValue) {
    element = node.inputs[1];
  } else if (inserts && graph_.values[element].shape != graph_.values[node.inputs[1]].shape) {
    element = like(element, {});
    graph_.values[element].shape.reset();
  }
  graph_.values[after].element = element;
  flat.inputs = node.inputs;
  return after;
}

// SequenceAt and OptionalGetElement.
std::uint32_t OnnxFlattener::taken_out(const OnnxNode& node, const WireNode& wire, const Scope& scope,
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
      const auto at = position(view, 1, count, count, 0);
      if (count == 0) view.fail("asks for an element of an empty sequence");
      if (at) item = (*from.items)[static_cast<std::size_t>(*at)];
    }
  }
  // Taking an element out moves nothing.
  if (item != kNoValue) {
    flat.inputs = {item};
    return alias(item, {});
  }
  if (from.element != kNoValue &&
      (graph_.values[from.element].shape || graph_.values[from.element].kind != ValueKind::tensor))
    return like(from.element, {});
  // The element's own shape is not known: what the file records of this output may be.
  const auto said = recorded(node, wire.outputs[0], scope);
  if (!said)
    view.fail(fmt::format("the shape of its output '{}' depends on what '{}' holds, which is not known",
                          readable(wire.outputs[0]), from.name),
              "put the shape into the file, or make the sequence inside of the graph");
  const std::uint32_t value = new_value(readable(wire.outputs[0]));
  set_type(node, value, *said);
  return value;
}

std::uint32_t OnnxFlattener::split_to_sequence(const OnnxNode& node, OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  const Shape from = view.input_shape(0, 1);
  const std::int32_t type = view.input(0).element_type;
  const std::size_t axis = view.axis(view.int_attribute("axis", 0), from.size());
  const std::uint32_t made = container(ValueKind::sequence, type);
  flat.inputs = {node.inputs[0]};
  const auto sizes = split_sizes(view, from[axis]);
  // keepdims matters only where every part is a single slice.
  const auto part = [&](std::optional<std::int64_t> size) {
    const std::uint32_t item = new_value(fmt::format("{}.part", node.name));
    graph_.values[item].element_type = type;
    if (!size) return item;
    Shape shape = from;
    shape[axis] = *size;
    if (!view.has_input(1) && view.int_attribute("keepdims", 1) == 0)
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    set_type(node, item, {type, shape});
    return item;
  };
  if (sizes) {
    std::vector<std::uint32_t> items;
    for (const std::int64_t size : *sizes) items.push_back(part(size));
    flat.outputs = items;
    fill(made, std::move(items));
    return made;
  }
  // The sizes are not known; as many as there are of them, if they are a list.
  const Shape& given = view.input_shape(1);
  const std::uint32_t element = part(std::nullopt);
  if (given.size() == 1) {
    need_items(view, given[0]);
    fill(made, std::vector<std::uint32_t>(static_cast<std::size_t>(given[0]), element));
  }
  graph_.values[made].element = element;
  return made;
}

// Concatenated along an existing axis, or stacked along a new one; then all items need one shape.
std::uint32_t OnnxFlattener::concat_from_sequence(const OnnxNode& node, const WireNode& wire,
                                                  const Scope& scope, OnnxNode& flat) {
  const OnnxNodeView view(graph_, node);
  need_kind(view, 0, ValueKind::sequence);
  const OnnxValue from = view.input(0);
  const std::uint32_t value = new_value(readable(wire.outputs[0]));
  if (!from.items) {
    const auto said = recorded(node, wire.outputs[0], scope);
    if (!said)
      view.fail(fmt::format("the length of the sequence '{}' is not known", from.name),
                fmt::format("if it is an input, --dim {}.length=N gives it", from.name));
    set_type(node, value, *said);
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
  set_type(node, value, type);
  return value;
}

bool OnnxFlattener::run_container(const OnnxNode& node, const WireNode& wire, Scope& scope,
                                  const Frame& frame) {
  const std::string_view type = node.type;
  const OnnxNodeView view(graph_, node);
  const bool no_tensor = view.has_input(0) && view.input(0).kind != ValueKind::tensor;
  if (type == "SequenceMap") {
    run_sequence_map(node, wire, scope, frame);
    return true;
  }
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
    value = constant_scalar(onnx_type::kInt64,
                            items ? std::optional(static_cast<std::int64_t>(items->size())) : std::nullopt);
  } else if (type == "OptionalHasElement") {
    // An open optional may or may not hold something; then the answer is not known.
    const bool open = no_tensor && view.input(0).kind == ValueKind::optional && !view.input(0).items;
    const bool has = no_tensor && view.input(0).items && view.input(0).kind == ValueKind::optional
                         ? !view.input(0).items->empty()
                         : view.has_input(0);
    value = constant_scalar(onnx_type::kBool, open ? std::nullopt : std::optional<std::int64_t>(has));
  } else if (type == "Identity" && no_tensor) {
    value = alias(node.inputs[0], {});
  } else {
    return false;
  }
  if (wire.outputs.empty() || wire.outputs[0].empty()) return true;
  OnnxValue& made = graph_.values[value];
  made.name = readable(wire.outputs[0]);
  define(scope, wire.outputs[0], value, node.where);
  // Sequences of static tensors only move weights: nothing is left to be executed.
  if (made.is_static) {
    ++graph_.folded_nodes;
    return true;
  }
  if (flat.inputs.empty()) flat.inputs = node.inputs;
  flat.outputs.push_back(value);
  flat.name = unique_name(node.name);
  graph_.nodes.push_back(std::move(flat));
  return true;
}

std::vector<std::uint32_t> OnnxFlattener::run_body(const OnnxNode& node, const WireGraph& body,
                                                   const std::vector<std::uint32_t>& arguments,
                                                   std::int64_t repeat, const Scope& scope,
                                                   const Frame& frame) {
  if (frame.depth >= kMaxDepth)
    throw Error(node.where, fmt::format("graphs are nested more than {} deep", kMaxDepth));
  const Frame inner{frame.opsets, frame.arguments, unique_name(node.name),
                    checked_multiply(frame.repeat, repeat, node.where), frame.depth + 1};
  return run_graph(body, arguments, scope, inner);
}

// All elements have one shape: the body appears once.
std::vector<std::vector<std::uint32_t>> OnnxFlattener::map_alike(const OnnxNode& node, const WireGraph& body,
                                                                 std::int64_t length, const Scope& scope,
                                                                 const Frame& frame) {
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
    arguments[i] = like(sequence.element, readable(body.inputs[i].name));
    inside.push_back(arguments[i]);
  }
  border(node, "begin", outside, inside, frame.repeat);
  const std::vector<std::uint32_t> given = run_body(node, body, arguments, length, scope, frame);
  std::vector<std::vector<std::uint32_t>> results(given.size());
  std::vector<std::uint32_t> handed_out;
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (std::int64_t k = 0; k < length; ++k)
      results[i].push_back(like(given[i], fmt::format("{}.{}.{}", node.name, i, k)));
    handed_out.insert(handed_out.end(), results[i].begin(), results[i].end());
  }
  border(node, "end", given, handed_out, frame.repeat);
  return results;
}

// Elements of different shapes: the body once for each.
std::vector<std::vector<std::uint32_t>> OnnxFlattener::map_each(const OnnxNode& node, const WireGraph& body,
                                                                std::size_t length, const Scope& scope,
                                                                const Frame& frame) {
  std::vector<std::vector<std::uint32_t>> results(body.outputs.size());
  for (std::size_t k = 0; k < length; ++k) {
    std::vector<std::uint32_t> arguments = node.inputs;
    for (std::uint32_t& argument : arguments) {
      const OnnxValue& value = graph_.values[argument];
      if (value.kind == ValueKind::sequence) argument = value.items ? (*value.items)[k] : value.element;
    }
    const std::vector<std::uint32_t> given = run_body(node, body, arguments, 1, scope, frame);
    for (std::size_t i = 0; i < given.size(); ++i) results[i].push_back(given[i]);
  }
  return results;
}

void OnnxFlattener::run_sequence_map(const OnnxNode& node, const WireNode& wire, Scope& scope,
                                     const Frame& frame) {
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
    const std::uint32_t value = container(ValueKind::sequence, body.outputs[i].data_type);
    fill(value, std::move(results[i]));
    if (!known) graph_.values[value].items.reset();
    graph_.values[value].name = readable(wire.outputs[i]);
    define(scope, wire.outputs[i], value, node.where);
  }
}

}  // namespace armilla
