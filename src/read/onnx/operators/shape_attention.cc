// Output shapes of attention in its many forms, and of what stands in its place: linear attention, causal
// convolution with a state.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units_text.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla {
namespace {

using Outputs = std::vector<OnnxType>;

std::int64_t divided(const OnnxNodeView& node, std::int64_t size, std::int64_t parts) {
  if (parts < 1 || size % parts != 0)
    node.fail(fmt::format("cannot divide a size of {} into {}", size, typed_count(parts, "head")));
  return size / parts;
}

// ai.onnx Attention: [batch, heads, length, head], or [batch, length, heads * head] with attributes.
OnnxHeads standard_heads(const OnnxNodeView& node) {
  const Shape& q = node.input_shape(0, 3);
  const Shape& k = node.input_shape(1, 3);
  const Shape& v = node.input_shape(2, 3);
  const bool flat = q.size() == 3;
  if (k.size() != q.size() || v.size() != q.size()) node.fail("its query, key and value differ in rank");
  OnnxHeads h;
  h.batch = q[0];
  h.heads = flat ? node.positive_attribute("q_num_heads") : q[1];
  h.kv_heads = flat ? node.positive_attribute("kv_num_heads") : k[1];
  h.query_length = flat ? q[1] : q[2];
  h.key_length = flat ? k[1] : k[2];
  h.head_size = flat ? divided(node, q[2], h.heads) : q[3];
  h.value_size = flat ? divided(node, v[2], h.kv_heads) : v[3];
  // Of FlexAttention there are no further inputs but what its modifiers take from outside.
  // Keys of the past come in front of the query's own.
  if (node.type() == "Attention" && node.has_input(4))
    h.key_length = checked_add(h.key_length, node.input_shape(4, 4)[2], node.where());
  return h;
}

// com.microsoft Attention: one weight matrix for query, key and value side by side.
void packed_heads(const OnnxNodeView& node, OnnxHeads& h) {
  // Unequal sizes of queries, keys and values are an attribute; else the weight's columns are three equal
  // parts.
  Shape sizes = node.ints_attribute("qkv_hidden_sizes");
  if (sizes.size() != 3) sizes.assign(3, node.input_shape(1, 2)[1] / 3);
  h.head_size = divided(node, sizes[0], h.heads);
  h.value_size = divided(node, sizes[2], h.heads);
  if (node.has_input(4))  // the past, [2, batch, heads, length, head]
    h.key_length = checked_add(h.key_length, node.input_shape(4, 5)[3], node.where());
}

void grouped_heads(const OnnxNodeView& node, OnnxHeads& h) {
  h.kv_heads = node.positive_attribute("kv_num_heads");
  // Without a key of its own, the query carries keys and values behind it.
  const std::int64_t parts = node.has_input(1) ? h.heads : h.heads + 2 * h.kv_heads;
  h.head_size = h.value_size = divided(node, node.input_shape(0, 3)[2], parts);
  if (!node.has_input(3)) return;
  // The past may lie in a buffer of full length; the total length, where it is known, tells.
  const std::int64_t past = node.input_shape(3, 4)[2];
  const OnnxConstant* total = node.constant_input(6);
  h.key_length = total != nullptr && total->size() == 1 && !total->floating
                     ? std::max(past, total->ints[0])
                     : checked_add(past, h.query_length, node.where());
}

// com.microsoft MultiHeadAttention; the query may hold all three, [batch, length, heads, 3, head].
void separate_heads(const OnnxNodeView& node, OnnxHeads& h) {
  const Shape& q = node.input_shape(0, 3);
  h.head_size = h.value_size = q.size() == 5 ? q[4] : divided(node, q[2], h.heads);
  if (!node.has_input(1)) return;
  const Shape& k = node.input_shape(1, 3);
  h.key_length = k.size() == 4 ? k[2] : k[1];
  if (!node.has_input(2)) return;
  const Shape& v = node.input_shape(2, 3);
  h.value_size = v.size() == 4 ? v[3] : divided(node, v[2], h.heads);
}

}  // namespace

OnnxHeads heads_of(const OnnxNodeView& node) {
  if (node.node().domain != "com.microsoft") return standard_heads(node);
  OnnxHeads h;
  h.batch = node.input_shape(0, 3)[0];
  h.query_length = h.key_length = node.input_shape(0, 3)[1];
  h.heads = h.kv_heads = node.positive_attribute("num_heads");
  if (node.type() == "Attention") {
    packed_heads(node, h);
  } else if (node.type() == "GroupQueryAttention") {
    grouped_heads(node, h);
  } else {
    separate_heads(node, h);
  }
  return h;
}

namespace onnx_shape {

// Outputs: the result, keys and values with the past in front, and on request the scores.
void attention(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxHeads h = heads_of(node);
  const bool flat = node.input_shape(0).size() == 3;
  const std::int32_t type = node.input(0).element_type;
  outputs[0] = {type,
                flat ? Shape{h.batch, h.query_length, checked_multiply(h.heads, h.value_size, node.where())}
                     : Shape{h.batch, h.heads, h.query_length, h.value_size}};
  const std::int32_t value_type = node.input(2).element_type;
  if (outputs.size() > 1) outputs[1] = {type, {h.batch, h.kv_heads, h.key_length, h.head_size}};
  if (outputs.size() > 2) outputs[2] = {value_type, {h.batch, h.kv_heads, h.key_length, h.value_size}};
  if (outputs.size() > 3) outputs[3] = {type, {h.batch, h.heads, h.query_length, h.key_length}};
}

// The present is keys and values stacked, [2, batch, heads, length, head].
void packed_attention(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxHeads h = heads_of(node);
  const std::int32_t type = node.input(0).element_type;
  outputs[0] = {type, {h.batch, h.query_length, checked_multiply(h.heads, h.value_size, node.where())}};
  if (outputs.size() > 1) outputs[1] = {type, {2, h.batch, h.heads, h.key_length, h.head_size}};
}

void multi_head_attention(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxHeads h = heads_of(node);
  const std::int32_t type = node.input(0).element_type;
  outputs[0] = {type, {h.batch, h.query_length, checked_multiply(h.heads, h.value_size, node.where())}};
  if (outputs.size() > 1) outputs[1] = {type, {h.batch, h.heads, h.key_length, h.head_size}};
  if (outputs.size() > 2) outputs[2] = {type, {h.batch, h.heads, h.key_length, h.value_size}};
}

void group_query_attention(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxHeads h = heads_of(node);
  const std::int32_t type = node.input(0).element_type;
  outputs[0] = {type, {h.batch, h.query_length, checked_multiply(h.heads, h.head_size, node.where())}};
  for (std::size_t i = 1; i < outputs.size(); ++i)
    outputs[i] = {type, {h.batch, h.kv_heads, h.key_length, h.head_size}};
}

// Query, key and value are [batch, length, heads * head]; the state is [batch, heads, key head, value head].
void linear_attention(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxHeads h = linear_heads_of(node);
  const Shape state = {h.batch, h.kv_heads, h.head_size, h.value_size};
  outputs[0] = {node.input(0).element_type,
                {h.batch, h.query_length, checked_multiply(h.heads, h.value_size, node.where())}};
  if (outputs.size() > 1) outputs[1] = {node.input(node.has_input(3) ? 3 : 0).element_type, state};
}

// A depthwise convolution over time; the state keeps the last kernel - 1 inputs for the next call.
void causal_convolution(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& w = node.input_shape(1, 3);
  if (w[0] != x[1] || w[1] != 1 || w[2] < 1)
    node.fail(fmt::format("cannot apply weights of shape {} to the shape {}", to_text(w), to_text(x)));
  outputs[0] = {node.input(0).element_type, x};
  if (outputs.size() > 1) outputs[1] = {node.input(0).element_type, {x[0], x[1], w[2] - 1}};
}

}  // namespace onnx_shape

OnnxHeads linear_heads_of(const OnnxNodeView& node) {
  const Shape& q = node.input_shape(0, 3);
  const Shape& v = node.input_shape(2, 3);
  OnnxHeads h;
  h.batch = q[0];
  h.query_length = h.key_length = q[1];
  h.heads = node.positive_attribute("q_num_heads");
  h.kv_heads = node.positive_attribute("kv_num_heads");
  h.head_size = divided(node, q[2], h.heads);
  h.value_size = divided(node, v[2], h.kv_heads);
  return h;
}

}  // namespace armilla
