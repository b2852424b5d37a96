// Output shapes of operators that pick or make elements by their values, work on text, or compute losses.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla::onnx_shape {
namespace {

using Outputs = std::vector<OnnxType>;

// An integer input that must be known.
std::int64_t known_size(const OnnxNodeView& node, std::size_t input, std::string_view what) {
  const auto value = node.number(input);
  if (!value) node.undetermined(fmt::format("its {} is not known", what));
  if (*value < 0) node.fail(fmt::format("has a {} of {}", what, *value));
  return *value;
}

std::int32_t type_of(const OnnxNodeView& node, std::string_view name, std::int32_t fallback) {
  return static_cast<std::int32_t>(node.int_attribute(name, fallback));
}

}  // namespace

// How many there are is in the data; if they are not known, at most all elements.
void non_zero(const OnnxNodeView& node, Outputs& outputs) {
  if (const auto folded = fold_constant(node)) {
    outputs[0] = {onnx_type::kInt64, folded->shape};
    return;
  }
  // A scalar counts as a vector of one.
  const auto rank = static_cast<std::int64_t>(std::max<std::size_t>(1, node.input_shape(0).size()));
  outputs[0] = {onnx_type::kInt64, {rank, node.input_elements(0)}, true};
}

// Outputs: the elements, where each occurs first, which of them each input element is, how often each occurs.
void unique(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  std::int64_t most = node.input_elements(0);
  if (node.attribute("axis") != nullptr) {
    most = shape[node.axis(node.int_attribute("axis", 0), shape.size())];
  } else {
    shape = {most};
  }
  // The third output says for each input element which one it is: its length is known.
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {i == 0 ? node.input(0).element_type : onnx_type::kInt64, i == 0 ? shape : Shape{most},
                  i != 2};
  }
}

void compress(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  std::size_t axis = 0;
  if (node.attribute("axis") != nullptr) {
    axis = node.axis(node.int_attribute("axis", 0), shape.size());
  } else {
    shape = {node.input_elements(0)};
  }
  // As many as the condition has ones, if it is known, else at most all.
  const OnnxConstant* chosen = node.constant_input(1);
  const std::int64_t size = shape[axis];
  shape[axis] = std::min(size, node.input_elements(1));
  if (chosen != nullptr && !chosen->floating)
    shape[axis] = std::min<std::int64_t>(
        size, std::count_if(chosen->ints.begin(), chosen->ints.end(), [](std::int64_t c) { return c != 0; }));
  outputs[0] = {node.input(0).element_type, shape, chosen == nullptr};
}

void multinomial(const OnnxNodeView& node, Outputs& outputs) {
  outputs[0] = {type_of(node, "dtype", onnx_type::kInt32),
                {node.input_shape(0, 2)[0], std::max<std::int64_t>(0, node.int_attribute("sample_size", 1))}};
}

void bit_cast(const OnnxNodeView& node, Outputs& outputs) {
  const std::int32_t from = node.input(0).element_type;
  const std::int32_t to = type_of(node, "to", 0);
  if (bits_of(dtype_of_onnx(from)) != bits_of(dtype_of_onnx(to)))
    node.fail(fmt::format("reads {} as {}, which is not as wide", name_of(dtype_of_onnx(from)),
                          name_of(dtype_of_onnx(to))));
  outputs[0] = {to, node.input_shape(0)};
}

void window_function(const OnnxNodeView& node, Outputs& outputs) {
  outputs[0] = {type_of(node, "output_datatype", onnx_type::kFloat), {known_size(node, 0, "size")}};
}

// [frequencies of a one-sided spectrum, mel bins].
void mel_weights(const OnnxNodeView& node, Outputs& outputs) {
  const std::int64_t bins = known_size(node, 0, "number of mel bins");
  outputs[0] = {type_of(node, "output_datatype", onnx_type::kFloat),
                {known_size(node, 1, "transform length") / 2 + 1, bins}};
}

void determinant(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 2);
  if (shape[shape.size() - 1] != shape[shape.size() - 2])
    node.fail(fmt::format("needs square matrices, but has the shape {}", to_text(shape)));
  shape.resize(shape.size() - 2);
  outputs[0] = {node.input(0).element_type, shape};
}

// The labels lack the dimension of classes, the second one.
void loss(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& scores = node.input_shape(0, 2);
  const Shape& labels = node.input_shape(1, 1);
  Shape expected = scores;
  expected.erase(expected.begin() + 1);
  if (labels != expected)
    node.fail(fmt::format("its labels have the shape {}, its scores {}", to_text(labels), to_text(scores)));
  const bool each = node.text_attribute("reduction", "mean") == "none";
  outputs[0] = {node.input(0).element_type, each ? labels : Shape{}};
  if (outputs.size() > 1) outputs[1] = {node.input(0).element_type, scores};
}

void string_normalizer(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 1);
  if (shape.size() > 2 || (shape.size() == 2 && shape[0] != 1))
    node.fail(fmt::format("takes [C] or [1, C], but has the shape {}", to_text(shape)));
  const WireAttribute* dropped = node.attribute("stopwords");
  // What remains is never nothing: an empty text stands for it.
  shape.back() = std::max<std::int64_t>(1, shape.back());
  outputs[0] = {onnx_type::kString, shape, dropped != nullptr && !dropped->strings.empty()};
}

// Without maxsplit nothing bounds the number of parts.
void string_split(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  if (outputs.size() > 1) outputs[1] = {onnx_type::kInt64, shape};
  const std::int64_t most = node.int_attribute("maxsplit", -1);
  if (most < 0) node.undetermined("into how many parts the texts fall depends on them");
  shape.push_back(checked_add(most, 1, node.where()));
  outputs[0] = {onnx_type::kString, shape, true};
}

// One column for each place that an n-gram counts in.
void tf_idf(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 1);
  if (shape.size() > 2) node.fail(fmt::format("takes [C] or [N, C], but has the shape {}", to_text(shape)));
  const std::vector<std::int64_t> places = node.ints_attribute("ngram_indexes");
  if (places.empty()) node.fail("has no attribute 'ngram_indexes'");
  shape.back() = checked_add(*std::max_element(places.begin(), places.end()), 1, node.where());
  outputs[0] = {onnx_type::kFloat, shape};
}

}  // namespace armilla::onnx_shape
