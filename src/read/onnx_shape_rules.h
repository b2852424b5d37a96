// Output shapes of ONNX operators, from the operator definitions (ONNX operator reference, all opsets to 24).
//
// They cover what models are made of, so that reading a common model never pays libonnx's 9 ms of schema
// registration, and what changed or appeared after opset 17, which libonnx 1.12 does not know. An input that
// became an attribute or the reverse between opsets (axes, pads, split ...) is looked for in both places.
// Operators with data-dependent shapes have no rule.
#pragma once

#include <cstdint>
#include <vector>

#include "read/onnx_node_view.h"

namespace armilla {

struct OnnxType {
  std::int32_t element_type = 0;
  Shape shape;
};

// `outputs` has one entry per output of the node, left-out ones included.
using OnnxShapeRule = void (*)(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

namespace onnx_shape {

// Multidirectional broadcasting; an Error when the shapes do not fit.
Shape broadcast(const OnnxNodeView& node, const Shape& a, const Shape& b);

// Element-wise and type changes.
void same_as_input(const OnnxNodeView& node, std::vector<OnnxType>& outputs);  // every output
void elementwise(const OnnxNodeView& node, std::vector<OnnxType>& outputs);    // broadcast of all inputs
void comparison(const OnnxNodeView& node, std::vector<OnnxType>& outputs);     // the same, boolean
void predicate(const OnnxNodeView& node, std::vector<OnnxType>& outputs);      // input shape, boolean
void select(const OnnxNodeView& node, std::vector<OnnxType>& outputs);         // Where
void cast(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void cast_like(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void quantize(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void dequantize(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void dynamic_quantize(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void dropout(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Data movement.
void reshape(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void flatten(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void squeeze(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void unsqueeze(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void transpose(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void concat(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void split(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void slice(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void gather(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void gather_elements(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void gather_nd(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void expand(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void tile(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void pad(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void resize(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void depth_to_space(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void space_to_depth(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void one_hot(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Values made of nothing but shapes.
void shape_of(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void size_of_input(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void constant_of_shape(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void range(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void random(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Reductions.
void reduce(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void arg_reduce(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void top_k(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Matrix products.
void gemm(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void matmul(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void matmul_integer(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void qlinear_matmul(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void matmul_nbits(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void einsum(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Windows.
void conv(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void conv_integer(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void qlinear_conv(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void conv_transpose(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void pool(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void global_pool(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Normalisation, recurrence, attention.
void batch_norm(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void layer_norm(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void skip_layer_norm(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void embed_layer_norm(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void recurrent(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void attention(const OnnxNodeView& node, std::vector<OnnxType>& outputs);              // ai.onnx
void packed_attention(const OnnxNodeView& node, std::vector<OnnxType>& outputs);       // com.microsoft
void multi_head_attention(const OnnxNodeView& node, std::vector<OnnxType>& outputs);   // com.microsoft
void group_query_attention(const OnnxNodeView& node, std::vector<OnnxType>& outputs);  // com.microsoft

// Signals; the last dimension is the real and the imaginary part.
void fourier(const OnnxNodeView& node, std::vector<OnnxType>& outputs);             // DFT
void short_time_fourier(const OnnxNodeView& node, std::vector<OnnxType>& outputs);  // STFT

}  // namespace onnx_shape

// Spatial geometry of a Conv or pool: what its shape and its work both need.
struct OnnxWindow {
  Shape kernel, strides, dilations, pads_begin, pads_end, output;  // spatial dimensions only
};
// `weight` is the input that carries the kernel, or SIZE_MAX where the attribute kernel_shape does.
OnnxWindow window_of(const OnnxNodeView& node, std::size_t weight);

// An operand of MatMul as it enters the product; `which` ("A" or "B") names the attributes that transpose it
// in com.microsoft's FusedMatMul.
Shape matrix_operand(const OnnxNodeView& node, std::size_t input, const std::string& which);

// One einsum: labels of every operand and of the result, ellipses expanded; sizes by label.
struct OnnxEinsum {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  std::vector<std::int64_t> sizes;  // by label
};
OnnxEinsum parse_einsum(const OnnxNodeView& node);

// How an attention operator's heads lie: samples, heads, query and key lengths, head sizes.
struct OnnxHeads {
  std::int64_t batch = 0, heads = 0, kv_heads = 0;
  std::int64_t query_length = 0, key_length = 0;
  std::int64_t head_size = 0, value_size = 0;
};
OnnxHeads heads_of(const OnnxNodeView& node);

}  // namespace armilla
