#include "read/onnx/flatten/flat_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"
#include "read/onnx/node_view.h"
#include "read/onnx/sources.h"

namespace armilla {
namespace {

constexpr std::size_t kMaxRank = 64;

}  // namespace

OnnxFlatGraph::OnnxFlatGraph(OnnxDimensions dims, const std::string& file) : dims_(std::move(dims)) {
  graph_.file = file;
  graph_.batch = dims_.batch;
  graph_.batch_is_fixed = dims_.batch_is_fixed;
  graph_.notes = dims_.notes;
}

std::uint32_t OnnxFlatGraph::new_value(std::string name) {
  graph_.values.emplace_back();
  graph_.values.back().name = std::move(name);
  return static_cast<std::uint32_t>(graph_.values.size() - 1);
}

void OnnxFlatGraph::set_type(const OnnxNode& node, std::uint32_t value, OnnxType type) {
  OnnxValue& v = graph_.values[value];
  v.element_type = type.element_type;
  v.shape = std::move(type.shape);
  const DType dtype = dtype_of_onnx(v.element_type);
  if (dtype == DType::unknown)
    throw Error(node.where,
                fmt::format("its output '{}' has the element type {}, which Armilla does not know", v.name,
                            v.element_type));
  if (v.shape->size() > kMaxRank)
    throw Error(node.where, fmt::format("its output '{}' has {} dimensions", v.name, v.shape->size()));
  // Only for its error: sizes that overflow are refused where they arise.
  size_of(element_count(*v.shape, node.where), dtype, node.where);
}

void OnnxFlatGraph::declare(std::uint32_t value, const WireValueInfo& info) {
  OnnxValue& v = graph_.values[value];
  v.kind = info.kind.value_or(ValueKind::tensor);
  v.element_type = info.data_type;
  v.shape = dims_.resolve(info);
  if (v.kind == ValueKind::tensor && dtype_of_onnx(info.data_type) == DType::unknown)
    throw Error(graph_.file, fmt::format("'{}' has the element type {}, which ONNX does not define", v.name,
                                         info.data_type));
  if (info.element == nullptr || !info.element->kind) return;
  const std::uint32_t element = new_value(v.name + ".element");
  declare(element, *info.element);
  graph_.values[value].element = element;
  graph_.values[value].element_type = graph_.values[element].element_type;
}

// The same type and shape, but neither constant nor static: what a loop's body sees changes from trip to
// trip.
std::uint32_t OnnxFlatGraph::like(std::uint32_t value, const std::string& name) {
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

void OnnxFlatGraph::border(const OnnxNode& node, std::string_view what,
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

std::uint32_t OnnxFlatGraph::container(ValueKind kind, std::int32_t element_type) {
  const std::uint32_t value = new_value({});
  graph_.values[value].kind = kind;
  graph_.values[value].element_type = element_type;
  return value;
}

// `element` stands for any of the items; where they differ it has no shape, and only items are trusted.
void OnnxFlatGraph::fill(std::uint32_t container, std::vector<std::uint32_t> items) {
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
std::uint32_t OnnxFlatGraph::alias(std::uint32_t value, const std::string& name) {
  const std::uint32_t copy = new_value(name);
  OnnxValue same = graph_.values[value];
  sources_left_ -= static_cast<std::int64_t>(same.items ? same.items->size() : 0);
  if (sources_left_ < 0) throw Error(graph_.file, "its sequences hold too many tensors together");
  same.name = name;
  graph_.values[copy] = std::move(same);
  return copy;
}

std::uint32_t OnnxFlatGraph::constant_scalar(std::int32_t element_type, std::optional<std::int64_t> value) {
  const std::uint32_t scalar = new_value({});
  graph_.values[scalar].element_type = element_type;
  graph_.values[scalar].shape = Shape{};
  graph_.values[scalar].is_static = value.has_value();
  if (value) graph_.values[scalar].constant = OnnxConstant{{}, false, {*value}, {}};
  return scalar;
}

// Numbers given by --dim: the value of an integer input, or the length of an input that is a sequence.
void OnnxFlatGraph::take_given(std::uint32_t value, const WireValueInfo& input) {
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

// Counts on from the last number given to the same name, so that many equal names stay linear.
std::string OnnxFlatGraph::unique_name(const std::string& wanted) {
  std::string name = wanted;
  while (!used_names_.try_emplace(name, 1).second) name = fmt::format("{}#{}", wanted, ++used_names_[wanted]);
  return name;
}

// Weights go on through static operators under their own identity: a transposed weight is the stored one.
void OnnxFlatGraph::inherit_sources(const OnnxNode& node, const OnnxOp& op) {
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

// Values are not taken back: nothing refers to those of a run that was given up.
OnnxFlatGraph::Mark OnnxFlatGraph::mark() const {
  return {graph_.nodes.size(), graph_.notes.size(), graph_.folded_nodes, contradictions_, bounds_};
}

void OnnxFlatGraph::take_back(const OnnxFlatGraph::Mark& mark) {
  graph_.nodes.erase(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(mark.nodes), graph_.nodes.end());
  graph_.notes.resize(mark.notes);
  graph_.folded_nodes = mark.folded_nodes;
  contradictions_ = mark.contradictions;
  bounds_ = mark.bounds;
}

// Sequences of unequal length are of different types here, since their elements are followed one by one.
bool OnnxFlatGraph::same_type(std::uint32_t a, std::uint32_t b) const {
  const OnnxValue& from = graph_.values[a];
  const OnnxValue& to = graph_.values[b];
  const auto count = [](const OnnxValue& value) {
    return value.items ? static_cast<std::int64_t>(value.items->size()) : -1;
  };
  return from.kind == to.kind && from.shape == to.shape && count(from) == count(to);
}

// Arithmetic of the nodes from `first` on, with their repetitions.
double OnnxFlatGraph::flops_since(std::size_t first) {
  double flops = 0;
  for (std::size_t i = first; i < graph_.nodes.size(); ++i) {
    const OnnxNode& node = graph_.nodes[i];
    flops += static_cast<double>(
        work_of(OnnxNodeView(graph_, node), find_onnx_op(node.domain, node.type)).work.flops.value);
  }
  return flops;
}

OnnxGraph OnnxFlatGraph::finish() {
  if (graph_.folded_nodes > 0)
    graph_.notes.push_back(
        graph_.folded_nodes == 1
            ? "1 operator that only computes shapes or prepares weights costs nothing"
            : fmt::format("{} operators that only compute shapes or prepare weights cost nothing",
                          graph_.folded_nodes));
  if (contradictions_ > 0)
    graph_.notes.push_back(
        fmt::format("the file's shapes of {} contradict its operators, which are believed; "
                    "the first: {}",
                    typed_count(contradictions_, "tensor"), first_contradiction_));
  if (bounds_ > 0)
    graph_.notes.push_back(
        bounds_ == 1
            ? fmt::format("the size of one tensor depends on data; the largest possible is taken: {}",
                          first_bound_)
            : fmt::format("the sizes of {} tensors depend on data; the largest possible are taken; the "
                          "first: {}",
                          bounds_, first_bound_));
  return std::move(graph_);
}

}  // namespace armilla
