// Encoders: BERT with its pretraining heads, and the Vision Transformer.
#include <fmt/format.h>

#include "base/checked.h"
#include "read/described/described_blocks.h"
#include "read/described/described_model.h"

namespace armilla {
namespace {

// The hidden state of the first token, [batch, hidden].
TensorId first_token(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const TensorId y = b.tensor("first_token", {b.batch(), d.hidden});
  Operator& op = b.add("first_token", "Slice", {x}, {y});
  // Reads what it writes.
  op.forward.bytes = size_of(checked_multiply(2, checked_multiply(b.batch(), d.hidden, op.name), op.name),
                             DType::bf16, op.name);
  op.saves = Saves::nothing;
  return y;
}

TensorId pool(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  // BERT's pooler: a dense layer and tanh over the first token ([CLS]) alone.
  const TensorId pooled =
      b.product("pooler", first_token(b, d, x), d.hidden, {Split::tokens, 0, true, nullptr});
  return b.elementwise({"pooler.tanh", "Tanh", 1, Split::tokens, 0, Saves::output}, {pooled},
                       b.shape_of(pooled));
}

TensorId add_bert_embedding(DescribedBuilder& b, const ModelDescription& d, TensorId tokens,
                            ParameterId table) {
  TensorId x = b.look_up("tokens", tokens, table, d.hidden);
  std::vector<TensorId> inputs = {x};
  std::vector<ParameterId> tables = {b.parameter("positions.weight", {d.max_positions, d.hidden})};
  // Word, position and segment embeddings are added up in one kernel, two additions per element.
  if (d.segments > 0) {
    inputs.push_back(b.input("segments", {b.batch(), b.sequence()}, DType::int64));
    tables.push_back(b.parameter("segments.weight", {d.segments, d.hidden}));
  }
  x = b.elementwise({"positions", "Add", d.segments > 0 ? 2 : 1, Split::tokens, 0, Saves::nothing},
                    std::move(inputs), b.shape_of(x), std::move(tables));
  return b.dropout("dropout", b.norm("norm", x));
}

// Layer norms after the residual additions (Devlin et al. 2019, as Vaswani et al. 2017).
TensorId add_bert_layer(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const TensorId attended = add_attention(b, d, "attention", x, x, false);
  const TensorId middle = b.norm("attention.norm", b.residual("attention", attended, x, d.projection_bias));
  return b.norm("mlp.norm", b.residual("mlp", add_mlp(b, d, middle), middle, d.mlp_bias));
}

void add_bert_heads(DescribedBuilder& b, const ModelDescription& d, TensorId x, ParameterId table) {
  if (d.pooler) {
    const TensorId pooled = pool(b, d, x);
    // The next-sentence classifier has two classes.
    if (d.nsp_head) {
      const TensorId labels = b.input("next_sentence_labels", {b.batch()}, DType::int64);
      const TensorId scores = b.product("next_sentence", pooled, 2, {Split::tokens, 0, true, nullptr});
      b.output(b.loss("next_sentence_loss", scores, labels, Split::tokens));
    } else {
      b.output(pooled);
    }
  }
  if (!d.mlm_head) {
    if (!d.pooler) b.output(x);
    return;
  }
  const TensorId labels = b.input("labels", {b.batch(), b.sequence()}, DType::int64);
  // BERT's masked-language-model head transforms the hidden state before the tied output matrix, which has a
  // bias of its own here (cls.predictions in transformers).
  TensorId y = b.product("transform", x, d.hidden, {Split::tokens, 0, true, nullptr});
  y = b.elementwise({"transform.activation", "Gelu", 5, Split::tokens, 0, Saves::inputs}, {y}, b.shape_of(y));
  y = b.norm("norm", y);
  const ParameterId* tied = d.tied_embeddings ? &table : nullptr;
  const TensorId logits = b.product("logits", y, d.vocabulary, {Split::column, 0, true, tied});
  b.output(b.loss("loss", logits, labels, Split::vocabulary));
}

TensorId add_patches(DescribedBuilder& b, const ModelDescription& d, TensorId image) {
  // One position is the class token's, which is no patch.
  const std::int64_t patches = d.sequence - 1;
  const std::int64_t pixels =
      checked_multiply(checked_multiply(d.patch, d.patch, d.place("patch")), d.channels, d.place("channels"));
  const ParameterId parameters[] = {b.parameter("patches.weight", {d.hidden, d.channels, d.patch, d.patch}),
                                    b.parameter("patches.bias", {d.hidden})};
  const TensorId x = b.tensor("patches", {b.batch(), patches, d.hidden});
  const std::int64_t rows = checked_multiply(b.batch(), patches, "embedding.patches");
  Operator& op = b.add("patches", "Conv", {image}, {x}, {parameters[0], parameters[1]});
  // A convolution whose stride is its kernel is one product: a row per patch, a column per hidden unit.
  b.set_matrix_work(op, {{rows, d.hidden, pixels, 1, true}});
  op.weight_is_operand = true;
  // Nothing trainable lies before the image.
  op.needs_input_gradient = false;
  const Shape shape = {b.batch(), d.sequence, d.hidden};
  const TensorId with_class = b.elementwise({"class_token", "Concat", 0, Split::tokens, 0, Saves::nothing},
                                            {x}, shape, {b.parameter("class_token", {1, 1, d.hidden})});
  return b.elementwise({"positions", "Add", 1, Split::tokens, 0, Saves::nothing}, {with_class}, shape,
                       {b.parameter("positions.weight", {d.sequence, d.hidden})});
}

}  // namespace

void build_bert(DescribedBuilder& b, const ModelDescription& d) {
  const TensorId tokens = b.input("tokens", {b.batch(), b.sequence()}, DType::int64);
  b.open_block("embedding", BlockKind::embedding, "embedding");
  const ParameterId table = b.parameter("tokens.weight", {d.vocabulary, d.hidden});
  TensorId x = add_bert_embedding(b, d, tokens, table);
  for (std::int64_t i = 0; i < d.layers; ++i) {
    b.open_block(fmt::format("layers.{}", i), BlockKind::encoder, "layer");
    x = add_bert_layer(b, d, x);
  }
  // Without any head the last layer's output is the model's.
  if (d.pooler || d.mlm_head) b.open_block("head", BlockKind::head, "head");
  add_bert_heads(b, d, x, table);
}

void build_vit(DescribedBuilder& b, const ModelDescription& d) {
  const TensorId image = b.input("image", {b.batch(), d.channels, d.image, d.image}, DType::bf16);
  b.open_block("embedding", BlockKind::embedding, "embedding");
  TensorId x = b.dropout("dropout", add_patches(b, d, image));
  for (std::int64_t i = 0; i < d.layers; ++i) {
    b.open_block(fmt::format("layers.{}", i), BlockKind::encoder, "layer");
    const TensorId normed = b.norm("attention.norm", x);
    const TensorId attended = add_attention(b, d, "attention", normed, normed, false);
    const TensorId middle = b.residual("attention", attended, x, d.projection_bias);
    x = b.residual("mlp", add_mlp(b, d, b.norm("mlp.norm", middle)), middle, d.mlp_bias);
  }
  b.open_block("head", BlockKind::head, "head");
  x = b.norm("norm", x);
  // Without classes (ViTModel) the model ends in its hidden state, or in the pooled one.
  if (d.classes == 0) return b.output(d.pooler ? pool(b, d, x) : x);
  const TensorId labels = b.input("labels", {b.batch()}, DType::int64);
  const TensorId scores =
      b.product("classifier", first_token(b, d, x), d.classes, {Split::tokens, 0, true, nullptr});
  b.output(b.loss("loss", scores, labels, Split::tokens));
}

}  // namespace armilla
