// Output shapes of the classical models of ai.onnx.ml and of the training operators of ai.onnx.preview.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/units_text.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla::onnx_shape {
namespace {

using Outputs = std::vector<OnnxType>;

// Attributes of these operators are lists of integers, floats or strings; one of the three is there.
std::int64_t list_length(const OnnxNodeView& node, std::string_view name) {
  const WireAttribute* list = node.attribute(name);
  if (list == nullptr) return 0;
  return static_cast<std::int64_t>(std::max({list->ints.size(), list->floats.size(), list->strings.size()}));
}

// One vector of features stands for a batch of one.
std::int64_t samples(const OnnxNodeView& node) {
  const Shape& x = node.input_shape(0, 1);
  return x.size() == 1 ? 1 : x[0];
}

std::int64_t class_count(const OnnxNodeView& node, bool& text) {
  std::int64_t count = 0;
  for (const std::string_view name : {"classlabels_ints", "classlabels_int64s", "classlabels_strings"}) {
    const std::int64_t length = list_length(node, name);
    if (length > 0) text = name == "classlabels_strings";
    count = std::max(count, length);
  }
  return count;
}

}  // namespace

void feature_extractor(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 1);
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  shape.back() = node.input_elements(1);
  outputs[0] = {node.input(0).element_type, shape};
}

void to_float(const OnnxNodeView& node, Outputs& outputs) {
  outputs[0] = {onnx_type::kFloat, node.input_shape(0)};
}

// The older operator maps strings to numbers and back, the newer one by its value lists.
void label_encoder(const OnnxNodeView& node, Outputs& outputs) {
  std::int32_t type =
      node.input(0).element_type == onnx_type::kString ? onnx_type::kInt64 : onnx_type::kString;
  if (node.type() == "LabelEncoder") {
    const WireAttribute* values = node.attribute("values_tensor");
    if (values != nullptr && values->tensor != nullptr) type = values->tensor->data_type;
    if (list_length(node, "values_floats") > 0) type = onnx_type::kFloat;
    if (list_length(node, "values_int64s") > 0) type = onnx_type::kInt64;
    if (list_length(node, "values_strings") > 0) type = onnx_type::kString;
  }
  outputs[0] = {type, node.input_shape(0)};
}

void one_hot_encoder(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  shape.push_back(std::max(list_length(node, "cats_int64s"), list_length(node, "cats_strings")));
  outputs[0] = {onnx_type::kFloat, shape};
}

void feature_vectorizer(const OnnxNodeView& node, Outputs& outputs) {
  std::int64_t width = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    width = checked_add(width, node.input_shape(i, 1).back(), node.where());
  outputs[0] = {onnx_type::kFloat, {samples(node), width}};
}

void dict_vectorizer(const OnnxNodeView& node, Outputs& outputs) {
  const std::int64_t width =
      std::max(list_length(node, "int64_vocabulary"), list_length(node, "string_vocabulary"));
  outputs[0] = {onnx_type::kFloat, {1, width}};
}

// A dense map has one column per key.
void cast_map(const OnnxNodeView& node, Outputs& outputs) {
  const std::string_view to = node.text_attribute("cast_to", "TO_FLOAT");
  if (node.text_attribute("map_form", "DENSE") != "SPARSE")
    node.undetermined("how many keys the map has is in its data");
  outputs[0] = {to == "TO_STRING"  ? onnx_type::kString
                : to == "TO_INT64" ? onnx_type::kInt64
                                   : onnx_type::kFloat,
                {1, std::max<std::int64_t>(1, node.int_attribute("max_map", 1))}};
}

// Labels, and a score for every class.
void classifier(const OnnxNodeView& node, Outputs& outputs) {
  bool text = false;
  const std::int64_t classes = class_count(node, text);
  const std::int64_t batch = samples(node);
  outputs[0] = {text ? onnx_type::kString : onnx_type::kInt64, {batch}};
  if (outputs.size() < 2) return;
  if (classes == 0) node.undetermined("it names no classes");
  outputs[1] = {onnx_type::kFloat, {batch, classes}};
}

void regressor(const OnnxNodeView& node, Outputs& outputs) {
  const std::string_view name = node.type() == "LinearRegressor" ? "targets" : "n_targets";
  const std::int64_t targets =
      node.type() == "SVMRegressor" ? 1 : std::max<std::int64_t>(1, node.int_attribute(name, 1));
  // A TreeEnsemble computes in the type of its input, the older operators in fp32.
  const bool keeps = node.type() == "TreeEnsemble";
  outputs[0] = {keeps ? node.input(0).element_type : onnx_type::kFloat, {samples(node), targets}};
}

// Each output is the gradient by the input of the same place.
void gradient(const OnnxNodeView& node, Outputs& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = {node.input(i).element_type, node.input_shape(i)};
}

// Inputs are the learning rate, the step, all weights, all gradients, then the states; the outputs, all new
// weights and all new states.
void optimizer(const OnnxNodeView& node, Outputs& outputs) {
  const std::size_t states = node.type() == "Adam" ? 2 : 1;
  const std::size_t weights = outputs.size() / (1 + states);
  if (weights == 0 || outputs.size() != weights * (1 + states) ||
      node.input_count() != 2 + weights * (2 + states))
    node.fail(fmt::format("has {} for {}", typed_count(node.input_count(), "input"),
                          typed_count(outputs.size(), "output")));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t from = i < weights ? 2 + i : 2 + weights + i;  // the gradients are skipped
    outputs[i] = {node.input(from).element_type, node.input_shape(from)};
  }
}

}  // namespace armilla::onnx_shape
