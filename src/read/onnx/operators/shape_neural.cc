// Output shapes of matrix products, normalisations and recurrent operators.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/units_text.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla {
namespace {

using Outputs = std::vector<OnnxType>;

// A vector on the left is a row, on the right a column, and the added dimension is dropped from the result.
Shape matrix_product(const OnnxNodeView& node, Shape a, Shape b) {
  if (a.empty() || b.empty()) node.fail("multiplies a scalar as a matrix");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a.back() != b[b.size() - 2])
    node.fail(fmt::format("cannot multiply the shapes {} and {}", to_text(a), to_text(b)));
  Shape result = onnx_shape::broadcast(node, Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!row) result.push_back(a[a.size() - 2]);
  if (!column) result.push_back(b.back());
  return result;
}

// Labels of one operand or result; `rank` is that of the ellipsis and -1 when there must be none.
std::vector<int> labels(const OnnxNodeView& node, std::string_view text, std::size_t ellipsis_rank) {
  std::vector<int> result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      // Labels from 256 on stand for the ellipsis, counted from its last dimension.
      for (std::size_t d = ellipsis_rank; d > 0; --d) result.push_back(255 + static_cast<int>(d));
      i += 2;
    } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
      result.push_back(text[i]);
    } else {
      node.fail(fmt::format("its equation has an unexpected '{}'",
                            text[i] >= ' ' && text[i] <= '~' ? text[i] : '?'));
    }
  }
  return result;
}

}  // namespace

Shape matrix_operand(const OnnxNodeView& node, std::size_t i, const std::string& which) {
  Shape shape = node.input_shape(i);
  // onnxruntime's FusedMatMul: transBatch turns the first dimension in front of the last one, trans swaps the
  // last two.
  if (shape.size() >= 3 && node.int_attribute("transBatch" + which, 0) != 0)
    std::rotate(shape.begin(), shape.begin() + 1, shape.end() - 1);
  if (shape.size() >= 2 && node.int_attribute("trans" + which, 0) != 0)
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

// Labels are letters, an ellipsis stands for as many dimensions as are left; sizes of one label must agree or
// broadcast.
OnnxEinsum parse_einsum(const OnnxNodeView& node) {
  std::string equation(node.text_attribute("equation", ""));
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != node.input_count())
    node.fail(fmt::format("its equation names {}, but it has {}", typed_count(terms.size(), "operand"),
                          node.input_count()));

  OnnxEinsum einsum;
  std::map<int, std::int64_t> sizes;
  std::map<int, int> uses;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Shape& shape = node.input_shape(i);
    const std::size_t dots = terms[i].find("...") == std::string::npos ? 0 : 3;
    const std::size_t named = terms[i].size() - dots;
    if (named > shape.size() || (dots == 0 && named != shape.size()))
      node.fail(fmt::format("its equation does not fit an operand of shape {}", to_text(shape)));
    widest = std::max(widest, shape.size() - named);
    einsum.operands.push_back(labels(node, terms[i], shape.size() - named));
    const std::vector<int>& own = einsum.operands.back();
    for (std::size_t d = 0; d < own.size(); ++d) {
      std::int64_t& size = sizes.try_emplace(own[d], 1).first->second;
      if (size != 1 && shape[d] != 1 && size != shape[d])
        node.fail(fmt::format("its equation gives one label the sizes {} and {}", size, shape[d]));
      if (shape[d] != 1) size = shape[d];
      ++uses[own[d]];
    }
  }
  if (arrow != std::string::npos) {
    einsum.result = labels(node, equation.substr(arrow + 2), widest);
  } else {
    // Without an arrow: the ellipsis, then every label that occurs once, in alphabetical order.
    einsum.result = labels(node, widest > 0 ? "..." : "", widest);
    for (const auto& [label, count] : uses) {
      if (label < 256 && count == 1) einsum.result.push_back(label);
    }
  }
  einsum.sizes.assign(256 + widest, 1);
  for (const auto& [label, size] : sizes) einsum.sizes[static_cast<std::size_t>(label)] = size;
  for (const int label : einsum.result) {
    if (!sizes.contains(label)) node.fail("its equation has a label in the result that no operand has");
  }
  return einsum;
}

namespace onnx_shape {

void gemm(const OnnxNodeView& node, Outputs& outputs) {
  Shape a = node.input_shape(0, 2);
  Shape b = node.input_shape(1, 2);
  if (a.size() != 2 || b.size() != 2) node.fail("needs two matrices");
  if (node.int_attribute("transA", 0) != 0) std::swap(a[0], a[1]);
  if (node.int_attribute("transB", 0) != 0) std::swap(b[0], b[1]);
  outputs[0] = {node.input(0).element_type, matrix_product(node, a, b)};
}

void matmul(const OnnxNodeView& node, Outputs& outputs) {
  outputs[0] = {node.input(0).element_type,
                matrix_product(node, matrix_operand(node, 0, "A"), matrix_operand(node, 1, "B"))};
}

void matmul_integer(const OnnxNodeView& node, Outputs& outputs) {
  const bool to_float = node.type() == "MatMulIntegerToFloat" || node.type() == "DynamicQuantizeMatMul";
  outputs[0] = {to_float ? onnx_type::kFloat : onnx_type::kInt32,
                matrix_product(node, node.input_shape(0), node.input_shape(1))};
}

void qlinear_matmul(const OnnxNodeView& node, Outputs& outputs) {
  outputs[0] = {node.has_input(7) ? node.input(7).element_type : node.input(0).element_type,
                matrix_product(node, node.input_shape(0), node.input_shape(3))};
}

void matmul_nbits(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 1);
  if (shape.back() != node.positive_attribute("K"))
    node.fail(fmt::format("its input has {}, but K is {}", typed_count(shape.back(), "column"),
                          node.int_attribute("K", 0)));
  shape.back() = node.positive_attribute("N");
  outputs[0] = {node.input(0).element_type, shape};
}

void einsum(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxEinsum parsed = parse_einsum(node);
  Shape shape;
  for (const int label : parsed.result) shape.push_back(parsed.sizes[static_cast<std::size_t>(label)]);
  outputs[0] = {node.input(0).element_type, shape};
}

// Outputs beyond the first are the statistics of training: one number per channel.
void batch_norm(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 1);
  outputs[0] = {node.input(0).element_type, x};
  for (std::size_t i = 1; i < outputs.size(); ++i)
    outputs[i] = {node.input(node.has_input(3) ? 3 : 0).element_type, {x.size() > 1 ? x[1] : 1}};
}

// Mean and inverse deviation keep the dimensions in front of the axis.
void layer_norm(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 1);
  outputs[0] = {node.input(0).element_type, x};
  Shape statistics = x;
  const std::size_t axis = node.axis(node.int_attribute("axis", -1), x.size());
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  for (std::size_t i = 1; i < outputs.size(); ++i) outputs[i] = {onnx_type::kFloat, statistics};
}

void skip_layer_norm(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 2);
  Shape statistics = x;
  statistics.back() = 1;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // Outputs: the result, mean, inverse deviation, and the sum of input and skip.
    const bool is_statistic = i == 1 || i == 2;
    outputs[i] = {is_statistic ? onnx_type::kFloat : node.input(0).element_type,
                  is_statistic ? statistics : x};
  }
}

// Outputs: the normed sum, the mask's lengths per sample, the sum itself (com.microsoft).
void embed_layer_norm(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& ids = node.input_shape(0, 2);
  const Shape& table = node.input_shape(2, 2);
  const Shape sum = {ids[0], ids[1], table[1]};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {i == 1 ? onnx_type::kInt32 : node.input(2).element_type, i == 1 ? Shape{ids[0]} : sum};
  }
}

// R is [directions, gates x hidden, hidden]. Outputs: all hidden states, the last one, and for LSTM the last
// cell state.
void recurrent(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& r = node.input_shape(2, 3);
  const bool batch_first = node.int_attribute("layout", 0) != 0;
  const std::int64_t length = x[batch_first ? 1 : 0];
  const std::int64_t batch = x[batch_first ? 0 : 1];
  const std::int64_t directions = r[0];
  const std::int64_t hidden = r[2];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Shape all =
        batch_first ? Shape{batch, length, directions, hidden} : Shape{length, directions, batch, hidden};
    const Shape last = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    outputs[i] = {node.input(0).element_type, i == 0 ? all : last};
  }
}

}  // namespace onnx_shape
}  // namespace armilla
