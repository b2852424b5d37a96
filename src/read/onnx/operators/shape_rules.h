// Output shapes of ONNX operators, from the operator definitions (ONNX 1.22: operator sets 1 to 27,
// ai.onnx.ml to 5, the preview domains) and onnxruntime's com.microsoft.
//
// An input that became an attribute or the reverse between opsets (axes, pads, split ...) is looked for in
// both places. Where a size depends on data (NonZero, Unique, NonMaxSuppression), a rule gives the largest it
// can be and says so (OnnxType::at_most). Operators on sequences and optionals are in
// read/onnx/flatten/sequence.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "read/onnx/node_view.h"

namespace armilla {

struct OnnxType {
  std::int32_t element_type = 0;
  Shape shape;
  bool at_most = false;  // the size depends on data, and this is the largest it can be
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
void linear_attention(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void causal_convolution(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Signals; the last dimension is the real and the imaginary part.
void fourier(const OnnxNodeView& node, std::vector<OnnxType>& outputs);             // DFT
void short_time_fourier(const OnnxNodeView& node, std::vector<OnnxType>& outputs);  // STFT

// Images and regions (read/onnx/operators/shape_image.cc).
void col2im(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void center_crop_pad(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void grid_sample(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void affine_grid(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void roi_align(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void roi_pool(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void image_decoder(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void non_max_suppression(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void max_unpool(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// What is picked or made by value, text, losses (read/onnx/operators/shape_picks.cc).
void non_zero(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void unique(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void compress(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void multinomial(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void bit_cast(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void window_function(const OnnxNodeView& node, std::vector<OnnxType>& outputs);  // HannWindow ...
void mel_weights(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void determinant(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void loss(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void string_normalizer(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void string_split(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void tf_idf(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

// Classical models and training operators (read/onnx/operators/shape_learning.cc).
void feature_extractor(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void to_float(const OnnxNodeView& node, std::vector<OnnxType>& outputs);  // input shape, fp32
void label_encoder(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void one_hot_encoder(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void feature_vectorizer(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void dict_vectorizer(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void cast_map(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void classifier(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void regressor(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void gradient(const OnnxNodeView& node, std::vector<OnnxType>& outputs);
void optimizer(const OnnxNodeView& node, std::vector<OnnxType>& outputs);

}  // namespace onnx_shape

// Which dimension a DFT transforms, and the points of one transform.
struct OnnxFourier {
  std::size_t axis = 0;
  std::int64_t length = 0;
};
OnnxFourier fourier_of(const OnnxNodeView& node);

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
OnnxHeads linear_heads_of(const OnnxNodeView& node);  // LinearAttention

}  // namespace armilla
