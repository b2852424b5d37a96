// Work of attention, of what stands in its place, of transforms and of linear models.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "read/onnx/operators/work_products.h"

namespace armilla::onnx_work {
namespace {

std::int64_t macs_of(const Gemm& gemm, const OnnxNodeView& node) {
  return times(times(gemm.m, gemm.n, node), times(gemm.k, gemm.count, node), node);
}

}  // namespace

std::int64_t times(std::int64_t a, std::int64_t b, const OnnxNodeView& node) {
  return checked_multiply(a, b, node.where());
}

// A product with an empty dimension computes nothing; without any product the operator only moves data.
void finish(const OnnxNodeView& node, OnnxWork& result, const std::vector<Gemm>& gemms, std::int64_t extra,
            DType dtype) {
  copy(node, {}, result);
  Work& work = result.work;
  work.kind = WorkKind::matrix;
  work.dtype = dtype;
  std::int64_t flops = extra;
  for (const Gemm& gemm : gemms) {
    const std::int64_t macs = macs_of(gemm, node);
    if (macs == 0) continue;
    flops = checked_add(flops, times(2, macs, node), node.where());
    work.gemms.push_back(gemm);
  }
  work.flops = Flops(flops);
  if (work.gemms.empty()) work.kind = WorkKind::copy;
}

DType dtype_of_input(const OnnxNodeView& node, std::size_t i) {
  return dtype_of_onnx(node.input(i).element_type);
}

std::int64_t bias(const OnnxNodeView& node, std::size_t input) {
  return node.has_input(input) ? node.output_elements(0) : 0;
}

// Scores and weighted sum with all keys, masked or not. com.microsoft's Attention projects its input itself.
void attention(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  const OnnxHeads h = heads_of(node);
  const bool projects = op.domain == "com.microsoft" && op.type == "Attention";
  const std::int64_t heads = times(h.batch, h.heads, node);
  std::vector<Gemm> gemms;
  if (projects) {
    const Shape& w = node.input_shape(1, 2);
    gemms.push_back({times(h.batch, h.query_length, node), w[1], w[0]});
  }
  gemms.push_back({h.query_length, h.key_length, h.head_size, heads, false});
  gemms.push_back({h.query_length, h.value_size, h.key_length, heads, false});
  const std::int64_t scores = times(times(h.query_length, h.key_length, node), heads, node);
  // Scale and softmax of the scores.
  finish(node, result, gemms, times(6, scores, node), dtype_of_input(node, 0));
}

// The arithmetic of the recurrence S += k v^T, o = S^T q (ONNX LinearAttention-27; Yang et al. 2024, "Gated
// Delta Networks"): two products of every token, a third one (S^T k) under the delta rule, and a product per
// element of the state for the decay. Kernels do it chunk by chunk as matrix products, with a little more.
void linear_attention(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const OnnxHeads h = linear_heads_of(node);
  // The rule is one of linear, gated, delta and gated_delta.
  const std::string_view rule = node.text_attribute("update_rule", "gated_delta");
  const std::int64_t kv_heads = times(h.batch, h.kv_heads, node);
  std::vector<Gemm> gemms = {
      {h.query_length, h.value_size, h.head_size, times(h.batch, h.heads, node), false},
      {h.head_size, h.value_size, h.query_length, kv_heads, false}};
  std::int64_t extra = node.output_elements(0);
  if (rule.find("delta") != std::string_view::npos) {
    gemms.push_back({h.query_length, h.value_size, h.head_size, kv_heads, false});
    extra = checked_add(extra, times(2, node.input_elements(2), node), node.where());
  }
  if (rule.starts_with("gated")) {
    const std::int64_t state = times(times(h.head_size, h.value_size, node), kv_heads, node);
    extra = checked_add(extra, times(state, h.query_length, node), node.where());
  }
  finish(node, result, gemms, extra, dtype_of_input(node, 0));
}

// One product per channel, with a single column.
void causal_convolution(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& w = node.input_shape(1, 3);
  const bool activates = node.text_attribute("activation", "none") != "none";
  const std::int64_t extra =
      checked_add(bias(node, 2), activates ? times(5, node.output_elements(0), node) : 0, node.where());
  finish(node, result, {{times(x[0], x[2], node), 1, w[2], x[1]}}, extra, dtype_of_input(node, 0));
  result.weight_is_operand = node.input(1).is_static;
}

// coefficients are [classes or targets, features] in one list.
void linear_model(const OnnxNodeView& node, const OnnxOp&, OnnxWork& result) {
  const Shape& x = node.input_shape(0, 1);
  const WireAttribute* coefficients = node.attribute("coefficients");
  const auto count = static_cast<std::int64_t>(coefficients != nullptr ? coefficients->floats.size() : 0);
  const std::int64_t features = std::max<std::int64_t>(1, x.back());
  const std::int64_t rows = node.input_elements(0) / features;
  finish(node, result, {{rows, count / features, features}}, times(rows, count / features, node),
         dtype_of_input(node, 0));
}

// A fast transform of n points takes 5 n log2 n flops, one of real numbers half of that (Frigo and Johnson,
// benchFFT). STFT multiplies every frame by a window first.
void fourier(const OnnxNodeView& node, const OnnxOp& op, OnnxWork& result) {
  const Shape& x = node.input_shape(0, 2);
  const Shape& y = node.output_shape(0);
  std::int64_t points = 0;
  std::int64_t transforms = 1;
  bool real = x.back() == 1;
  if (op.type == "STFT") {
    points = node.has_input(2) ? node.input_elements(2) : node.number(3).value_or(0);
    transforms = times(y[0], y[1], node);
    real = x.size() < 3 || real;
  } else {
    // Which dimension it is may be known to the file alone; then it is taken for the longest.
    OnnxFourier transform;
    try {
      transform = fourier_of(node);
    } catch (const OnnxUndetermined&) {
      transform.axis = static_cast<std::size_t>(std::max_element(y.begin(), y.end() - 1) - y.begin());
      transform.length = y[transform.axis];
    }
    points = transform.length;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      if (i != transform.axis) transforms = times(transforms, x[i], node);
    }
    real = real || y.back() == 1;
  }
  const double n = static_cast<double>(points);
  const double each = points > 1 ? (real ? 2.5 : 5) * n * std::log2(n) : 0;
  if (!(each < 1e17)) node.fail("transforms too many points");
  copy(node, {}, result);
  result.work.kind = WorkKind::vector;
  const std::int64_t window = op.type == "STFT" && node.has_input(2) ? points : 0;
  result.work.flops = Flops(times(checked_add(std::llround(each), window, node.where()), transforms, node));
}

}  // namespace armilla::onnx_work
