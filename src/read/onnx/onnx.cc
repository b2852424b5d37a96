// Assembly of ir::Model from the flat graph (read/onnx/graph.h), and the checks before it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "read/file_format.h"
#include "read/onnx/copies.h"
#include "read/onnx/dims.h"
#include "read/onnx/graph.h"
#include "read/onnx/node_view.h"
#include "read/onnx/operators/ops.h"
#include "read/onnx/parameters.h"
#include "read/onnx/wire.h"
#include "read/read.h"

namespace armilla {
namespace {

constexpr std::string_view kExport = "export the model with torch.onnx.export, tf2onnx or the like";

// What is known to be something else is not walked as protobuf, whose complaints would say nothing.
void refuse_foreign(std::span<const char> bytes, const std::string& file) {
  const FileKind kind = sniff(bytes);
  if (kind != FileKind::onnx && kind != FileKind::binary) throw wrong_kind(file, kind, "an ONNX model");
}

std::string stem(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.ends_with(".onnx")) name.resize(name.size() - 5);
  return name;
}

// Values and nodes of the flat graph become tensors, parameters and operators of the model, each once, in the
// order in which they are first met.
class Assembly {
 public:
  Assembly(OnnxGraph graph, const std::string& file)
      : graph_(std::move(graph)),
        tensor_of_(graph_.values.size(), kNone),
        parameter_of_(graph_.values.size(), kNone),
        carries_gradient_(graph_.values.size()),
        trained_(graph_.values.size()) {
    model_.name = stem(file);
    model_.source = file;
    model_.batch = graph_.batch;
    model_.notes = graph_.notes;
  }

  Model model() {
    for (const std::uint32_t input : graph_.inputs) {
      model_.inputs.push_back(tensor(input));
    }
    find_parameters();
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) add(n);
    for (const std::uint32_t output : graph_.outputs) {
      model_.outputs.push_back(tensor(output));
    }
    for (auto& [type, unknown] : unknown_) model_.unknown.push_back(std::move(unknown));
    if (model_.operators.empty())
      model_.notes.push_back("nothing in the model depends on an input, so there is nothing to simulate");
    return std::move(model_);
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  std::uint32_t tensor(std::uint32_t value) {
    std::uint32_t& index = tensor_of_[value];
    if (index == kNone) {
      index = static_cast<std::uint32_t>(model_.tensors.size());
      const OnnxValue& v = graph_.values[value];
      model_.tensors.push_back({v.name, dtype_of_onnx(v.element_type), v.shape.value_or(Shape{}), v.kind});
    }
    return index;
  }

  // What is trained anywhere is trained where another operator sees a buffer.
  // What is trained anywhere is trained where another operator sees a buffer.
  void find_parameters() {
    OnnxParameters parameters(graph_);
    parameters_.resize(graph_.nodes.size());
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const OnnxNode& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue || !graph_.values[node.inputs[i]].is_static) continue;
        for (const OnnxSource& source : graph_.values[node.inputs[i]].sources) {
          const OnnxKind kind = parameters.kind(n, i, source);
          if (kind == OnnxKind::nothing) continue;
          add_once(parameters_[n], source.value);
          if (kind == OnnxKind::trained) trained_[source.value] = true;
          if (const auto packed = packed_weight(OnnxNodeView(graph_, node), i))
            packed_.emplace(source.value, *packed);
        }
      }
    }
    merge_copies();
  }

  // A tied weight that the file stores twice is one parameter.
  void merge_copies() {
    std::vector<std::uint32_t> trained;
    for (const std::vector<std::uint32_t>& values : parameters_) {
      for (const std::uint32_t value : values) {
        if (trained_[value] && !packed_.contains(value)) add_once(trained, value);
      }
    }
    const std::map<std::uint32_t, std::uint32_t> copies = find_copies(graph_, trained);
    if (copies.empty()) return;
    for (std::vector<std::uint32_t>& values : parameters_) {
      std::vector<std::uint32_t> merged;
      for (const std::uint32_t value : values) {
        const auto copy = copies.find(value);
        add_once(merged, copy == copies.end() ? value : copy->second);
      }
      values = std::move(merged);
    }
    const auto& [copy, original] = *copies.begin();
    model_.notes.push_back(
        fmt::format("'{}' holds the values of '{}'{}: counted once", graph_.values[copy].name,
                    graph_.values[original].name,
                    copies.size() > 1 ? fmt::format(" ({} such weights)", copies.size()) : std::string()));
  }

  std::uint32_t parameter(std::uint32_t value) {
    std::uint32_t& index = parameter_of_[value];
    if (index == kNone) {
      index = static_cast<std::uint32_t>(model_.parameters.size());
      const OnnxValue& v = graph_.values[value];
      const auto packed = packed_.find(value);
      const OnnxPacked type =
          packed != packed_.end() ? packed->second : OnnxPacked{dtype_of_onnx(v.element_type), *v.shape};
      model_.parameters.push_back(
          {v.name, type.dtype, type.shape, element_count(type.shape, v.name), trained_[value]});
    }
    return index;
  }

  // Activations become inputs, static values the parameters they are made of.
  void add_inputs(std::uint32_t index, Operator& target) {
    for (const std::uint32_t input : graph_.nodes[index].inputs) {
      if (input == kNoValue) continue;
      const OnnxValue& value = graph_.values[input];
      if (value.is_static) continue;
      if (value.shape) add_once(target.inputs, tensor(input));
      target.needs_input_gradient = target.needs_input_gradient || carries_gradient_[input];
    }
    for (const std::uint32_t value : parameters_[index]) add_once(target.parameters, parameter(value));
  }

  static void add_once(std::vector<std::uint32_t>& list, std::uint32_t index) {
    if (std::find(list.begin(), list.end(), index) == list.end()) list.push_back(index);
  }

  void add(std::uint32_t index) {
    const OnnxNode& node = graph_.nodes[index];
    const OnnxOp* op = find_onnx_op(node.domain, node.type);
    Operator target;
    target.name = node.name;
    target.type =
        node.domain.empty() ? readable(node.type) : readable(node.domain) + "." + readable(node.type);
    // What comes before the first parameter needs no gradient: frameworks stop there, too.
    target.needs_input_gradient = false;
    add_inputs(index, target);
    const OnnxWork work = work_of(OnnxNodeView(graph_, node), op);
    target.forward = work.work;
    target.weight_is_operand = work.weight_is_operand;
    target.is_view = work.is_view;
    target.saves = op != nullptr ? op->saves : Saves::inputs;
    const bool trains = std::any_of(target.parameters.begin(), target.parameters.end(),
                                    [&](std::uint32_t p) { return model_.parameters[p].trainable; });
    // A product of two parameters (a low-rank update) has a gradient for its left operand, too.
    if (target.inputs.empty() && target.parameters.size() > 1) target.needs_input_gradient = trains;
    for (const std::uint32_t output : node.outputs) {
      if (output == kNoValue) continue;
      const OnnxValue& value = graph_.values[output];
      // Integers and booleans (indices, masks) carry no gradient.
      carries_gradient_[output] = (trains || target.needs_input_gradient) &&
                                  (!value.shape || is_floating(dtype_of_onnx(value.element_type)));
      if (value.shape) target.outputs.push_back(tensor(output));
    }
    // Unknown operators cost their traffic alone; the user is told which and how many.
    if (!knows_work(op)) {
      UnknownOperator& unknown = unknown_[target.type];
      unknown.type = target.type;
      ++unknown.nodes;
      unknown.bytes += target.forward.bytes;
    }
    model_.operators.push_back(std::move(target));
  }

  OnnxGraph graph_;
  std::vector<std::uint32_t> tensor_of_;
  std::vector<std::uint32_t> parameter_of_;
  std::vector<bool> carries_gradient_;
  std::vector<bool> trained_;                           // by value
  std::vector<std::vector<std::uint32_t>> parameters_;  // values, by node
  std::map<std::uint32_t, OnnxPacked> packed_;          // by value
  std::map<std::string, UnknownOperator> unknown_;
  Model model_;
};

}  // namespace

Model read_onnx(std::span<const char> bytes, const std::string& name, const ModelOptions& options) {
  // Before anything else, so that a text file or a picture gets a message that says what it is.
  refuse_foreign(bytes, name);
  const WireModel wire = parse_onnx(bytes, name);
  if (!wire.has_graph || (wire.graph.nodes.empty() && wire.graph.outputs.empty()))
    throw Error(name,
                wire.has_graph ? "its graph has no operators" : "has no graph, so it is not an ONNX model",
                std::string(kExport));
  OnnxGraph graph = flatten_onnx(wire, name, options);
  const bool batch_is_fixed = graph.batch_is_fixed;
  Model model = Assembly(std::move(graph), name).model();
  derive_layers(model);
  validate_model(model);
  // A batch in the file's shapes cannot be changed there: all work is scaled instead, with a note.
  if (batch_is_fixed && options.batch && *options.batch != model.batch) {
    model.notes.push_back(fmt::format("the file is made for a batch of {}; its work is scaled to {}",
                                      model.batch, *options.batch));
    rescale_batch(model, *options.batch);
    validate_model(model);
  }
  return model;
}

}  // namespace armilla
