// T5: an encoder, and a decoder whose layers also attend to the encoder's output.
#include <fmt/format.h>

#include "read/described/described_blocks.h"
#include "read/described/described_model.h"

namespace armilla {
namespace {

TensorId add_feed_forward(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  return b.residual("mlp", add_mlp(b, d, b.norm("mlp.norm", x)), x, d.mlp_bias);
}

TensorId add_self_attention(DescribedBuilder& b, const ModelDescription& d, TensorId x, bool causal,
                            const RelativeBias& bias) {
  const TensorId attended =
      add_biased_attention(b, d, "attention", b.norm("attention.norm", x), causal, bias);
  return b.residual("attention", attended, x, d.projection_bias);
}

}  // namespace

void build_t5(DescribedBuilder& b, const ModelDescription& d, std::int64_t decoder_sequence) {
  const TensorId tokens = b.input("tokens", {b.batch(), b.sequence()}, DType::int64);
  const TensorId decoder_tokens = b.input("decoder_tokens", {b.batch(), decoder_sequence}, DType::int64);
  const TensorId labels = b.input("labels", {b.batch(), decoder_sequence}, DType::int64);
  b.open_block("embedding", BlockKind::embedding, "embedding");
  const ParameterId table = b.parameter("tokens.weight", {d.vocabulary, d.hidden});
  TensorId x = b.dropout("dropout", b.look_up("tokens", tokens, table, d.hidden));
  // One table per stack, named after it: T5 learns the bias in the first layer and every other layer uses it.
  const RelativeBias encoder_bias{
      b.parameter_of("encoder", "position_bias.weight", {d.relative_buckets, d.heads})};
  for (std::int64_t i = 0; i < d.layers; ++i) {
    b.open_block(fmt::format("encoder.{}", i), BlockKind::encoder, "encoder");
    x = add_feed_forward(b, d, add_self_attention(b, d, x, false, encoder_bias));
  }
  // The encoder's last norm opens this block, so that the encoder's layers stay alike and can be stages by
  // themselves.
  b.open_block("decoder_embedding", BlockKind::embedding, "decoder_embedding");
  const TensorId memory = b.dropout("encoder_dropout", b.norm("encoder_norm", x));
  // From here on blocks have the decoder's tokens; only the memory keeps the encoder's length.
  b.set_sequence(decoder_sequence);
  x = b.dropout("dropout", b.look_up("tokens", decoder_tokens, table, d.hidden));
  const RelativeBias decoder_bias{
      b.parameter_of("decoder", "position_bias.weight", {d.relative_buckets, d.heads})};
  for (std::int64_t i = 0; i < d.decoder_layers; ++i) {
    b.open_block(fmt::format("decoder.{}", i), BlockKind::decoder, "decoder");
    x = add_self_attention(b, d, x, true, decoder_bias);
    const TensorId normed = b.norm("cross_attention.norm", x);
    // Every position of the decoder sees the whole encoder output, so there is no mask.
    const TensorId attended = add_attention(b, d, "cross_attention", normed, memory, false);
    x = b.residual("cross_attention", attended, x, d.projection_bias);
    x = add_feed_forward(b, d, x);
  }
  b.open_block("head", BlockKind::head, "head");
  x = b.dropout("dropout", b.norm("norm", x));
  const TensorId logits =
      b.product("logits", x, d.vocabulary, {Split::column, 0, false, d.tied_embeddings ? &table : nullptr});
  b.output(b.loss("loss", logits, labels, Split::vocabulary));
}

}  // namespace armilla
