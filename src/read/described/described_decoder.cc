// Decoders of the gpt, llama, mixtral, deepseek and hybrid families.
#include <fmt/format.h>

#include <string>

#include "base/checked.h"
#include "read/described/described_blocks.h"
#include "read/described/described_model.h"

namespace armilla {
namespace {

// What blocks far apart share.
struct Shared {
  TensorId tokens, labels;
  ParameterId table;
  ParameterId head;  // as `table` when tied
};

// Kernels of their own there: before latent attention and before experts. Transformer Engine's products of
// attention and of the MLP have theirs inside (Megatron-Core, gpt_layer_specs.py).
TensorId add_attention_norm(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  if (!d.latent) return b.norm("attention.norm", x);
  const PartScope part(b, Part::layernorm);
  return b.norm("attention.norm", x);
}
TensorId add_mlp_norm(DescribedBuilder& b, TensorId x, bool experts) {
  const PartScope part(b, experts ? Part::layernorm : Part::mlp);
  if (!experts) return b.norm("mlp.norm", x);
  const PartScope router(b, Part::moe_router);
  return b.norm("mlp.norm", x);
}

TensorId add_attention_layer(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const PartScope part(b, Part::attn);
  const TensorId normed = add_attention_norm(b, d, x);
  const TensorId attended = add_attention(b, d, "attention", normed, normed, true);
  // The output projection leaves its bias to the residual: a row-parallel product adds it after the
  // reduction.
  return b.residual("attention", attended, x, d.projection_bias);
}

// Of `x`, added to `residual`.
TensorId add_mlp_layer(DescribedBuilder& b, const ModelDescription& d, TensorId x, TensorId residual,
                       bool experts) {
  const PartScope part(b, experts ? Part::moe_layer : Part::mlp_layer);
  const TensorId normed = add_mlp_norm(b, x, experts);
  if (experts) return b.residual("mlp", add_experts(b, d, normed), residual, false);
  return b.residual("mlp", add_mlp(b, d, normed), residual, d.mlp_bias);
}

TensorId add_decoder_layer(DescribedBuilder& b, const ModelDescription& d, TensorId x, bool experts) {
  const TensorId middle = add_attention_layer(b, d, x);
  // GPT-NeoX's parallel residual: the MLP reads the block's input, too, while both results are added to it.
  return add_mlp_layer(b, d, d.parallel_residual ? x : middle, middle, experts);
}

// A hybrid's layer is one part with its norm and its residual.
TensorId add_part(DescribedBuilder& b, const ModelDescription& d, TensorId x, char letter) {
  if (letter == '*') return add_attention_layer(b, d, x);
  if (letter != 'M') return add_mlp_layer(b, d, x, x, letter == 'E');
  const PartScope part(b, Part::mamba);
  return b.residual("ssm", add_state_space(b, d, b.norm("ssm.norm_in", x)), x, false);
}

TensorId add_embedding(DescribedBuilder& b, const ModelDescription& d, Shared& shared) {
  b.open_block("embedding", BlockKind::embedding, "embedding");
  shared.table = b.parameter("tokens.weight", {d.vocabulary, d.hidden});
  TensorId x = b.look_up("tokens", shared.tokens, shared.table, d.hidden);
  if (d.positions == Positions::learned) {
    const ParameterId positions = b.parameter("positions.weight", {d.max_positions, d.hidden});
    // The table has a row for every position it was trained with, whatever the samples' length.
    x = b.elementwise({"positions", "Add", 1, Split::tokens, 0, Saves::nothing}, {x}, b.shape_of(x),
                      {positions});
  }
  return b.dropout("dropout", x);
}

TensorId add_logits_and_loss(DescribedBuilder& b, const ModelDescription& d, const Shared& shared,
                             TensorId x) {
  const TensorId normed = b.norm("norm", x);
  const PartScope part(b, Part::logits);
  const TensorId logits = b.product("logits", normed, d.vocabulary, {Split::column, 0, false, &shared.head});
  return b.loss("loss", logits, shared.labels, Split::vocabulary);
}

// Predicts one token further from the hidden state before it and the embedding of the next token; table and
// output matrix are the main model's (DeepSeek-AI 2024, section 2.2, figure 3).
TensorId add_prediction(DescribedBuilder& b, const ModelDescription& d, const Shared& shared,
                        std::int64_t index, TensorId hidden) {
  b.open_block(fmt::format("mtp.{}", index), BlockKind::other, "mtp");
  if (d.repeated_prediction && index > 0) b.share_parameters_of("mtp.0");
  const PartScope part(b, Part::prediction);
  const TensorId embedded = b.look_up("tokens", shared.tokens, shared.table, d.hidden);
  const TensorId both[] = {b.norm("hidden_norm", hidden), b.norm("embedding_norm", embedded)};
  Shape wide = b.shape_of(hidden);
  wide.back() = checked_multiply(2, d.hidden, "mtp");
  const TensorId joined =
      b.elementwise({"concat", "Concat", 0, Split::tokens, 0, Saves::nothing}, {both[0], both[1]}, wide);
  const TensorId x = b.product("projection", joined, d.hidden, {});
  // Of a hybrid its layers of attention and of experts, or of an MLP, one behind the other.
  const bool experts =
      d.family == Family::hybrid ? d.pattern.find('E') != std::string::npos : has_experts(d, d.layers - 1);
  const TensorId y = add_decoder_layer(b, d, x, experts);
  b.output(add_logits_and_loss(b, d, shared, y));
  return y;
}

}  // namespace

void build_decoder(DescribedBuilder& b, const ModelDescription& d) {
  Shared shared{};
  shared.tokens = b.input("tokens", {b.batch(), b.sequence()}, DType::int64);
  shared.labels = b.input("labels", {b.batch(), b.sequence()}, DType::int64);
  TensorId x = add_embedding(b, d, shared);
  ModelDescription unwindowed = d;
  unwindowed.window = 0;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    if (d.family == Family::hybrid) {
      const char letter = layer_letter(d, i);
      b.open_block(fmt::format("layers.{}", i), BlockKind::decoder, std::string(1, letter));
      x = add_part(b, d, x, letter);
      continue;
    }
    // Layers come in four kinds at most, so a model of any depth has as many shapes to divide and to price.
    const bool experts = has_experts(d, i), narrow = i % d.window_every == 0;
    b.open_block(fmt::format("layers.{}", i), BlockKind::decoder,
                 fmt::format("{} {}", experts ? "experts" : "dense", narrow ? "window" : "all"));
    x = add_decoder_layer(b, narrow ? d : unwindowed, x, experts);
  }
  // The output matrix belongs to the head, also where an extra prediction uses it first.
  shared.head =
      d.tied_embeddings ? shared.table : b.parameter_of("head", "logits.weight", {d.vocabulary, d.hidden});
  TensorId hidden = x;
  for (std::int64_t i = 0; i < d.multi_token_prediction; ++i)
    hidden = add_prediction(b, d, shared, i, hidden);
  // Opened after the extra predictions, so that the head is the last block and goes to the last pipeline
  // stage.
  b.open_block("head", BlockKind::head, "head");
  b.output(add_logits_and_loss(b, d, shared, x));
}

}  // namespace armilla
