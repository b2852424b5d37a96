// Work of the operators that are matrix products.
#include <algorithm>
#include <set>

#include "base/checked.h"
#include "read/onnx/operators/work_products.h"

namespace armilla::onnx_work {
namespace {

// As im2col and one product per group: rows are output pixels, columns the output channels of a group, the
// inner size its window of input channels.
void convolution(const OnnxNodeView& node, std::size_t weight, std::size_t bias_input, OnnxWork& result) {
  const Shape& w = node.input_shape(weight, 3);
  const Shape& y = node.output_shape(0);
  const std::int64_t group = node.int_attribute("group", 1);
  Gemm gemm;
  gemm.m = y[0];
  gemm.k = w[1];
  for (std::size_t i = 2; i < y.size(); ++i) {
    gemm.m = times(gemm.m, y[i], node);
    gemm.k = times(gemm.k, w[i], node);
  }
  gemm.n = w[0] / group;
  gemm.count = group;
  finish(node, result, {gemm}, bias(node, bias_input), dtype_of_input(node, 0));
  result.weight_is_operand = node.input(weight).is_static;
}

// C[batch..., m, n] = A[batch..., m, k] B[batch..., k, n] with broadcasting.
void count_product(const OnnxNodeView& node, std::size_t left, std::size_t right, std::int64_t extra,
                   OnnxWork& result) {
  Shape a = matrix_operand(node, left, "A");
  Shape b = matrix_operand(node, right, "B");
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const bool weight_left = node.input(left).is_static && !node.input(right).is_static;
  const bool weight_right = node.input(right).is_static;
  if (weight_left) {
    // The transposed product has the weight on the right: C^T = B^T A^T.
    std::swap(a, b);
    std::swap(a[a.size() - 1], a[a.size() - 2]);
    std::swap(b[b.size() - 1], b[b.size() - 2]);
  }
  Gemm gemm{a[a.size() - 2], b.back(), a.back()};
  const std::size_t a_batch = a.size() - 2;
  const std::size_t b_batch = b.size() - 2;
  for (std::size_t i = 0; i < std::max(a_batch, b_batch); ++i) {  // from the last batch dimension
    // The same broadcasting as in the shape rule, dimension by dimension from the last.
    const std::int64_t x = i < a_batch ? a[a_batch - 1 - i] : 1;
    const std::int64_t y = i < b_batch ? b[b_batch - 1 - i] : 1;
    // A right operand that is the same for all of them makes their rows one tall matrix.
    std::int64_t& grows = y == 1 ? gemm.m : gemm.count;
    grows = times(grows, std::max(x, y) == 1 || x == 0 || y == 0 ? std::min(x, y) : std::max(x, y), node);
  }
  if (!weight_left && !weight_right) {
    // Of two activations, the outermost dimension is the batch: it is in m unless both operands have it.
    gemm.batch_in_m = a_batch == 0 || b_batch < a_batch || (b[0] == 1 && a[0] > 1);
  }
  finish(node, result, {gemm}, extra, dtype_of_input(node, left));
  result.weight_is_operand = weight_left || weight_right;
}

}  // namespace

// beta scales the bias: 0 leaves it out.
bool leaves_out_bias(const OnnxNodeView& node) {
  if (node.type() != "Gemm" && node.type() != "FusedGemm") return false;
  const WireAttribute* const beta = node.attribute("beta");
  return beta != nullptr && beta->f == 0;
}

void conv(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  const bool integer = op.type == "ConvInteger";  // its third input is a zero point
  convolution(node, 1, integer ? SIZE_MAX : 2, result);
}

void qlinear_conv(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  convolution(node, 3, 8, result);
}

void conv_transpose(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& w = node.input_shape(1, 3);
  const std::int64_t group = node.int_attribute("group", 1);
  // Every input pixel is multiplied into a window of output channels.
  Gemm gemm{x[0], w[1], x[1] / group, group};
  for (std::size_t i = 2; i < x.size(); ++i) {
    gemm.m = times(gemm.m, x[i], node);
    gemm.n = times(gemm.n, w[i], node);
  }
  finish(node, result, {gemm}, bias(node, 2), dtype_of_input(node, 0));
  result.weight_is_operand = node.input(1).is_static;
}

void deform_conv(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  convolution(node, 1, 3, result);
  // Each element of the im2col matrix is interpolated between the pixels around it, 4 in two dimensions: a
  // product and a sum for each, and the mask's product (Dai et al. 2017, Zhu et al. 2018).
  if (result.work.gemms.empty()) return;
  const Gemm& gemm = result.work.gemms[0];
  const std::int64_t sampled = times(times(gemm.m, gemm.k, node), gemm.count, node);
  const std::size_t spatial = std::min<std::size_t>(node.input_shape(0, 3).size() - 2, 30);
  const std::int64_t each = (std::int64_t{2} << spatial) + (node.has_input(4) ? 1 : 0);
  result.work.flops = Flops(checked_add(result.work.flops.value, times(each, sampled, node), node.where()));
}

// alpha and beta are folded into the product; only the bias is counted.
void gemm(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const Shape& a = node.input_shape(0, 2);
  const Shape& y = node.output_shape(0);
  const bool transposed = node.int_attribute("transA", 0) != 0;
  Gemm gemm{y[0], y[1], transposed ? a[0] : a[1]};
  const bool weight_left = node.input(0).is_static && !node.input(1).is_static;
  if (weight_left) std::swap(gemm.m, gemm.n);
  finish(node, result, {gemm}, leaves_out_bias(node) ? 0 : bias(node, 2), dtype_of_input(node, 0));
  result.weight_is_operand = weight_left || node.input(1).is_static;
}

void matmul(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  const std::size_t bias_input = op.type == "MatMulIntegerToFloat"    ? 6
                                 : op.type == "DynamicQuantizeMatMul" ? 4
                                                                      : SIZE_MAX;
  count_product(node, 0, 1, bias(node, bias_input), result);
}

void qlinear_matmul(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  count_product(node, 0, 3, 0, result);
}

// The weight is unpacked on the way; the product is that of the full matrix.
void matmul_nbits(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const std::int64_t k = node.int_attribute("K", 1);
  const Gemm gemm{node.input_elements(0) / k, node.int_attribute("N", 1), k};
  finish(node, result, {gemm}, bias(node, 5), dtype_of_input(node, 0));
  result.weight_is_operand = node.input(1).is_static;
}

// Every contraction of two operands is one GEMM: labels of the result that both have are the number of
// products, those of one side rows or columns, summed ones the inner size.
void einsum(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  const OnnxEinsum e = parse_einsum(node);
  if (e.operands.size() == 1) {
    const bool sums = std::set(e.operands[0].begin(), e.operands[0].end()).size() > e.result.size();
    if (!sums) return copy(node, op, result);
    return per_input(node, {"", "Einsum", nullptr, nullptr, 1, "w", Saves::inputs}, result);
  }
  const auto label_sets = [&](std::size_t i) { return std::set(e.operands[i].begin(), e.operands[i].end()); };
  std::set<int> left = label_sets(0);
  bool left_static = node.input(0).is_static;
  std::vector<Gemm> gemms;
  // The label of the batch: the first one of the first operand that is an activation.
  const int batch_label = [&] {
    for (std::size_t i = 0; i < e.operands.size(); ++i) {
      if (!node.input(i).is_static && !e.operands[i].empty()) return e.operands[i].front();
    }
    return -1;
  }();
  for (std::size_t i = 1; i < e.operands.size(); ++i) {
    // Operands are contracted from left to right; a label lives on while anything further needs it.
    std::set<int> right = label_sets(i);
    std::set<int> needed(e.result.begin(), e.result.end());
    for (std::size_t later = i + 1; later < e.operands.size(); ++later)
      needed.insert(e.operands[later].begin(), e.operands[later].end());
    const bool right_static = node.input(i).is_static;
    // The weight stands on the right, so that rows are activations.
    const bool swap = left_static && !right_static;
    const std::set<int>& rows = swap ? right : left;
    const std::set<int>& columns = swap ? left : right;
    Gemm gemm{1, 1, 1};
    std::set<int> kept;
    std::set<int> both = left;
    both.insert(right.begin(), right.end());
    for (const int label : both) {
      const std::int64_t size = e.sizes[static_cast<std::size_t>(label)];
      if (needed.contains(label)) kept.insert(label);
      const bool in_rows = rows.contains(label);
      const bool in_columns = columns.contains(label);
      std::int64_t& grows = !needed.contains(label) ? gemm.k
                            : in_rows && in_columns ? gemm.count
                            : in_rows               ? gemm.m
                                                    : gemm.n;
      grows = times(grows, size, node);
      if (label == batch_label) gemm.batch_in_m = in_rows && !in_columns;
    }
    gemms.push_back(gemm);
    if (i == 1) result.weight_is_operand = left_static || right_static;
    left = kept;
    left_static = left_static && right_static;
  }
  finish(node, result, gemms, 0, dtype_of_input(node, 0));
}

// W is multiplied with all steps at once, R with one hidden state after the other: batch rows only, which is
// why recurrent nets use devices so badly.
void recurrent(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& r = node.input_shape(2, 3);
  const bool batch_first = node.int_attribute("layout", 0) != 0;
  const std::int64_t length = x[batch_first ? 1 : 0];
  const std::int64_t batch = x[batch_first ? 0 : 1];
  const std::int64_t directions = r[0];
  const std::int64_t gates = r[1];  // gates * hidden
  const std::int64_t hidden = r[2];
  // The inputs of all steps are one product; the hidden state is multiplied step by step.
  const std::vector<Gemm> gemms = {{times(length, batch, node), gates, x[2], directions},
                                   {batch, gates, hidden, times(length, directions, node)}};
  const std::int64_t states = times(times(length, batch, node), times(directions, gates, node), node);
  const std::int64_t per_state = op.type == "LSTM" ? 7 : 5;  // biases, gate functions, state update
  finish(node, result, gemms, times(per_state, states, node), dtype_of_input(node, 0));
  result.weight_is_operand = node.input(1).is_static;
}

}  // namespace armilla::onnx_work
