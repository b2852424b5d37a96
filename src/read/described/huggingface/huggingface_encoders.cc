// Encoders, and models with one, from Hugging Face configurations.
#include <algorithm>
#include <array>

#include "base/units_text.h"
#include "read/described/huggingface/huggingface_source.h"

namespace armilla {
namespace {

using Source = HuggingfaceSource;

void read_t5_sizes(Source& s, std::int64_t feed_forward, std::int64_t layers, std::int64_t heads,
                   std::int64_t vocabulary) {
  s.number(s.d.hidden, "hidden", "d_model", kMostWidth, 512);
  s.number(s.d.layers, "layers", "num_layers", kMostLayers, layers);
  s.number(s.d.heads, "heads", "num_heads", kMostHeads, heads);
  s.number(s.d.head_dim, "head_dim", "d_kv", kMostHeads, 64);
  s.number(s.d.feed_forward, "feed_forward", "d_ff", kMostWidth, feed_forward);
  s.number(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows, vocabulary);
  s.fields.count(s.d.decoder_layers, "decoder_layers", "num_decoder_layers", 1, kMostLayers);
  s.fields.count(s.d.relative_buckets, "relative_buckets", "relative_attention_num_buckets", 1, 1 << 20);
  s.fields.flag(s.d.tied_embeddings, "tied_embeddings", "tie_word_embeddings");
  read_positions(s, "n_positions", 512);
  read_dropout(s, "dropout_rate");
  if (const auto value = s.fields.find("feed_forward_proj")) {
    constexpr std::array kKinds = {Activation::relu, Activation::gelu, Activation::geglu, Activation::swiglu};
    s.d.activation = kKinds[value->choice({"relu", "gelu", "gated-gelu", "gated-silu"})];
  }
}

}  // namespace

void read_bert(HuggingfaceSource& s) {
  read_common(s, {30522, 768, 3072, 12, 12, 0, 0, 512});
  read_activation(s, "hidden_act", false);
  read_positions(s, "max_position_embeddings", 512);
  s.fields.count(s.d.segments, "segments", "type_vocab_size", 0, 1 << 16);
  read_dropout(s, "hidden_dropout_prob");
  const std::string head = s.architecture();
  // Which heads a checkpoint has follows from its architecture; without one it is BertForPreTraining, with
  // both.
  const bool only_words = head.ends_with("ForMaskedLM") || head.ends_with("LMHeadModel");
  const bool only_next = head.ends_with("ForNextSentencePrediction");
  // Classifiers on tokens, and answers, have no pooler; theirs stand on the bare model.
  const bool on_tokens = head.ends_with("ForTokenClassification") || head.ends_with("ForQuestionAnswering");
  const bool on_pooler = head.ends_with("BertModel") || head.ends_with("ForSequenceClassification") ||
                         head.ends_with("ForMultipleChoice");
  s.d.pooler = !only_words && !on_tokens;
  s.d.nsp_head = only_next || (s.d.pooler && !on_pooler);
  s.d.mlm_head = !only_next && !on_tokens && !on_pooler;
}

void read_t5(HuggingfaceSource& s) {
  read_t5_sizes(s, 2048, 6, 8, 32128);
}

void read_mt5(HuggingfaceSource& s) {
  // MT5Config's own: gated GELU and an output matrix of its own, unlike T5Config.
  s.d.activation = Activation::geglu;
  s.d.tied_embeddings = false;
  read_t5_sizes(s, 1024, 8, 6, 250112);
}

void read_vit(HuggingfaceSource& s) {
  s.number(s.d.hidden, "hidden", "hidden_size", kMostWidth, 768);
  s.number(s.d.layers, "layers", "num_hidden_layers", kMostLayers, 12);
  s.number(s.d.heads, "heads", "num_attention_heads", kMostHeads, 12);
  s.number(s.d.feed_forward, "feed_forward", "intermediate_size", kMostWidth, 3072);
  s.number(s.d.image, "image", "image_size", 1 << 16, 224);
  s.number(s.d.patch, "patch", "patch_size", 1 << 16, 16);
  s.fields.count(s.d.channels, "channels", "num_channels", 1, 1 << 16);
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "qkv_bias");
  read_activation(s, "hidden_act", false);
  read_dropout(s, "hidden_dropout_prob");
  if (s.is_architecture("ViTModel")) {
    s.d.pooler = true;
    return;
  }
  s.d.classes = 2;  // transformers' default
  // transformers keeps classes as a map from numbers to names, and num_labels only where there are no names.
  if (const auto labels = s.fields.find("id2label")) {
    s.d.classes = std::max<std::int64_t>(1, static_cast<std::int64_t>(labels->keys().size()));
  } else {
    s.fields.count(s.d.classes, "classes", "num_labels", 1, kMostWidth);
  }
}

}  // namespace armilla
