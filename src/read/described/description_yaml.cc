// The YAML format of model descriptions (docs/formats/model_description.md).
#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/units_text.h"
#include "read/described/description_fields.h"
#include "read/described/model_description.h"
#include "read/study/mapping_yaml.h"

namespace armilla {
namespace {

constexpr const char* kFormat = "docs/formats/model_description.md tells what a description holds";

template <class Word>
// The order of `words` is the order of the enumerators.
void read_word(const DescriptionFields& fields, std::string_view key, Word& word,
               const std::vector<std::string_view>& words) {
  if (const auto value = fields.find(key)) word = static_cast<Word>(value->choice(words));
}

void read_latent(const Config& config, ModelDescription& d) {
  DescriptionFields fields(config, d);
  LatentAttention& latent = d.latent.emplace();
  fields.count(latent.query_rank, "latent_attention.query_rank", "query_rank", 0, kMostWidth);
  fields.required(latent.key_value_rank, "latent_attention.key_value_rank", "key_value_rank", kMostWidth);
  fields.required(latent.rope_head_dim, "head_dim", "rope_head_dim", kMostHeads);
  fields.required(latent.nope_head_dim, "latent_attention.nope_head_dim", "nope_head_dim", kMostHeads);
  fields.required(latent.value_head_dim, "latent_attention.value_head_dim", "value_head_dim", kMostHeads);
  config.reject_unknown_keys();
}

void read_experts(const Config& config, ModelDescription& d) {
  DescriptionFields fields(config, d);
  Experts& experts = d.experts;
  fields.required(experts.count, "experts.count", "count", kMostExperts);
  fields.required(experts.active, "experts.active", "active", kMostExperts);
  fields.required(experts.feed_forward, "experts.feed_forward", "feed_forward", kMostWidth);
  fields.count(experts.shared_feed_forward, "experts.shared_feed_forward", "shared_feed_forward", 0,
               kMostWidth);
  fields.flag(experts.shared_gate, "experts.shared_gate", "shared_gate");
  fields.flag(experts.router_bias, "experts.router_bias", "router_bias");
  fields.flag(experts.bias, "experts.bias", "bias");
  fields.count(experts.latent, "experts.latent", "latent", 0, kMostWidth);
  fields.count(experts.dense_first, "experts.dense_first", "dense_first", 0, kMostLayers);
  fields.count(experts.every, "experts.every", "every", 1, kMostLayers);
  fields.count(experts.groups, "experts.groups", "groups", 1, kMostExpertGroups);
  experts.active_groups = experts.groups;
  fields.count(experts.active_groups, "experts.active_groups", "active_groups", 1, kMostExpertGroups);
  if (const auto type = fields.find("dispatch"))
    experts.dispatch = *dtype_from_name(type->choice({"bf16", "fp8"}) == 0 ? "bf16" : "fp8");
  config.reject_unknown_keys();
}

void read_state_space(const Config& config, ModelDescription& d) {
  DescriptionFields fields(config, d);
  StateSpace& s = d.state_space;
  fields.required(s.inner, "state_space.inner", "inner", kMostWidth);
  fields.required(s.state, "state_space.state", "state", kMostWidth);
  fields.count(s.convolution, "state_space.convolution", "convolution", 1, 1 << 10);
  fields.count(s.heads, "state_space.heads", "heads", 1, kMostHeads);
  if (s.heads > 0) {
    fields.count(s.groups, "state_space.groups", "groups", 1, kMostHeads);
  } else {
    fields.required(s.rank, "state_space.rank", "rank", kMostWidth);
    fields.flag(s.norms, "state_space.norms", "norms");
  }
  config.reject_unknown_keys();
}

void read_pattern(const Config& config, DescriptionFields& fields, ModelDescription& d) {
  const auto pattern = fields.find("pattern");
  if (!pattern)
    throw Error(config.where(), "the key 'pattern' is missing",
                "one letter for every layer: M state space, * attention, - MLP, E experts");
  d.places.emplace("pattern", pattern->where());
  d.pattern = pattern->text();
  const std::size_t odd = d.pattern.find_first_not_of("M*-E");
  if (d.pattern.empty() || odd != std::string::npos)
    throw Error(pattern->where(),
                d.pattern.empty() ? "the pattern is empty"
                                  : fmt::format("unknown letter '{}'", d.pattern.substr(odd, 1)),
                "known: M state space, * attention, - MLP, E experts");
  d.layers = static_cast<std::int64_t>(d.pattern.size());
  fields.count(d.layers, "layers", "layers", 1, kMostLayers);
  if (const auto space = fields.find("state_space")) read_state_space(*space, d);
}

void read_layers(const Config& config, DescriptionFields& fields, ModelDescription& d) {
  const bool hybrid = d.family == Family::hybrid;
  if (hybrid) {
    read_pattern(config, fields, d);
  } else {
    fields.required(d.layers, "layers", "layers", kMostLayers);
  }
  fields.required(d.hidden, "hidden", "hidden", kMostWidth);
  fields.count(d.heads, "heads", "heads", 1, kMostHeads, !hybrid);
  fields.count(d.kv_heads, "kv_heads", "kv_heads", 1, kMostHeads);
  fields.count(d.head_dim, "head_dim", "head_dim", 1, kMostHeads);
  read_word(fields, "norm", d.norm, {"layernorm", "rmsnorm"});
  read_word(fields, "activation", d.activation, {"gelu", "relu", "swiglu", "geglu", "clamped-swiglu"});
  read_word(fields, "attention", d.attention, {"flash", "flash-2", "flash-triton", "unfused"});
  // `bias` sets all three, and each of the three may say otherwise after it.
  bool bias = false;
  if (fields.find("bias")) {
    fields.flag(bias, "bias", "bias");
    d.qkv_bias = d.projection_bias = d.mlp_bias = bias;
  }
  fields.flag(d.qkv_bias, "qkv_bias", "qkv_bias");
  fields.flag(d.projection_bias, "projection_bias", "projection_bias");
  fields.flag(d.mlp_bias, "mlp_bias", "mlp_bias");
  fields.flag(d.qk_norm, "qk_norm", "qk_norm");
  fields.flag(d.dropout, "dropout", "dropout");
}

void read_tokens(DescriptionFields& fields, ModelDescription& d) {
  fields.required(d.vocabulary, "vocabulary", "vocabulary", kMostRows);
  // Padding changes the work and the parameters, so the padded size is the one to keep.
  const std::int64_t plain = d.vocabulary;
  fields.count(d.vocabulary, "padded_vocabulary", "padded_vocabulary", 1, kMostRows);
  if (d.vocabulary < plain)
    throw Error(d.place("padded_vocabulary"),
                fmt::format("padded_vocabulary {} is smaller than vocabulary {}", d.vocabulary, plain));
  fields.required(d.sequence, "sequence", "sequence", INT32_MAX);
  fields.flag(d.tied_embeddings, "tied_embeddings", "tied_embeddings");
}

void read_decoder(const Config& config, DescriptionFields& fields, ModelDescription& d) {
  read_word(fields, "positions", d.positions, {"none", "learned", "rotary"});
  fields.count(d.max_positions, "max_positions", "max_positions", 1, INT32_MAX);
  fields.count(d.window, "window", "window", 1, INT32_MAX);
  fields.count(d.window_every, "window_every", "window_every", 1, kMostLayers);
  fields.flag(d.parallel_residual, "parallel_residual", "parallel_residual");
  fields.count(d.multi_token_prediction, "multi_token_prediction", "multi_token_prediction", 0, 64);
  fields.flag(d.repeated_prediction, "repeated_prediction", "repeated_prediction");
  if (d.repeated_prediction && d.multi_token_prediction == 0)
    throw Error(d.place("repeated_prediction"), "there are no layers of prediction",
                "give multi_token_prediction, how many there are");
  if (const auto latent = fields.find("latent_attention")) {
    // These are asked for before reject_unknown_keys could call them unknown: the message tells why they do
    // not belong here.
    for (const std::string_view key : {"kv_heads", "head_dim", "qk_norm"}) {
      if (fields.find(key))
        throw Error(config.at(key).where(), fmt::format("'{}' means nothing beside latent_attention", key),
                    "leave it out: the ranks and head sizes of latent_attention say it all");
    }
    read_latent(*latent, d);
  }
  if (const auto experts = fields.find("experts")) {
    read_experts(*experts, d);
  } else if (d.family == Family::mixtral) {
    throw Error(config.where(), "the key 'experts' is missing", "a model without experts is of family llama");
  }
}

void read_adapters(const Config& config, ModelDescription& d) {
  DescriptionFields fields(config, d);
  fields.required(d.adapters.rank, "adapters.rank", "rank", kMostWidth);
  if (const auto targets = fields.find("targets")) {
    d.places.emplace("adapters.targets", targets->where());
    for (const Config& target : targets->items()) d.adapters.targets.push_back(target.text());
    if (d.adapters.targets.empty())
      throw Error(targets->where(), "names no projection",
                  "leave it out: every projection has an adapter then");
  }
  if (const auto type = fields.find("base_type"))
    d.adapters.base_dtype = *dtype_from_name(type->choice({"fp8", "fp4"}) == 0 ? "fp8" : "fp4");
  config.reject_unknown_keys();
}

void read_dlrm(DescriptionFields& fields, ModelDescription& d) {
  Recommendation& r = d.recommendation;
  fields.required(r.dense_features, "dense_features", "dense_features", kMostWidth);
  fields.required(r.embedding, "embedding", "embedding", kMostWidth);
  fields.count(r.lookups, "lookups", "lookups", 1, 1 << 20);
  fields.counts(r.tables, "tables", "tables", kMostRows, 10'000);
  fields.counts(r.bottom, "bottom", "bottom", kMostWidth, 1000);
  fields.counts(r.top, "top", "top", kMostWidth, 1000);
}

void read_family(const Config& config, DescriptionFields& fields, ModelDescription& d) {
  if (d.family == Family::dlrm) return read_dlrm(fields, d);
  read_layers(config, fields, d);
  // Models whose every layer has experts have no other feed-forward size.
  const auto highest = kMostWidth;
  if (d.family == Family::mixtral || d.family == Family::deepseek || d.family == Family::hybrid) {
    fields.count(d.feed_forward, "feed_forward", "feed_forward", 1, highest);
  } else if (is_gated(d.activation) || d.family == Family::t5) {
    fields.required(d.feed_forward, "feed_forward", "feed_forward", highest);
  } else {
    // Four times the hidden size is the convention of every ungated model since Vaswani et al. 2017.
    d.feed_forward = 4 * d.hidden;
    fields.count(d.feed_forward, "feed_forward", "feed_forward", 1, highest);
  }
  if (d.family == Family::vit) {
    fields.required(d.image, "image", "image", 1 << 16);
    fields.required(d.patch, "patch", "patch", 1 << 16);
    fields.count(d.channels, "channels", "channels", 1, 1 << 16);
    fields.required(d.classes, "classes", "classes", kMostWidth);
    return;
  }
  read_tokens(fields, d);
  if (d.family == Family::bert) {
    fields.count(d.max_positions, "max_positions", "max_positions", 1, INT32_MAX);
    fields.count(d.segments, "segments", "segments", 0, 1 << 16);
    fields.flag(d.pooler, "pooler", "pooler");
    fields.flag(d.mlm_head, "mlm_head", "mlm_head");
    fields.flag(d.nsp_head, "nsp_head", "nsp_head");
  } else if (d.family == Family::t5) {
    fields.count(d.decoder_layers, "decoder_layers", "decoder_layers", 1, kMostLayers);
    fields.count(d.decoder_sequence, "decoder_sequence", "decoder_sequence", 1, INT32_MAX);
    fields.count(d.relative_buckets, "relative_buckets", "relative_buckets", 1, 1 << 20);
  } else {
    read_decoder(config, fields, d);
  }
}

}  // namespace

ModelDescription read_model_description(const Config& config) {
  require_mapping(config, "a model description", kFormat);
  if (!config.has("family"))
    throw Error(config.where(), "is not a model description: the key 'family' is missing", kFormat);
  const std::vector<std::string_view> families(family_names().begin(), family_names().end());
  ModelDescription d = family_defaults(static_cast<Family>(config.at("family").choice(families)));
  d.where = config.where();
  d.name = config.has("name") ? config.text_at("name") : std::filesystem::path(config.file()).stem().string();
  if (d.name.empty()) throw Error(config.at("name").where(), "the name is empty");
  d.description = config.text_at("description");
  d.source = config.text_at("source");
  DescriptionFields fields(config, d);
  read_family(config, fields, d);
  if (const auto adapters = fields.find("adapters")) read_adapters(*adapters, d);
  config.reject_unknown_keys();
  complete_description(d);
  if (d.family == Family::hybrid) return d;
  // The last layer with experts.
  const std::int64_t last = d.layers / d.experts.every * d.experts.every;
  if (d.experts.count > 0 && last <= d.experts.dense_first) {
    throw Error(d.place(last == 0 ? "experts.every" : "experts.dense_first"),
                fmt::format("experts in layers {}, {} ... after the first {}, but there {} {}: none "
                            "has any",
                            d.experts.every, 2 * d.experts.every, d.experts.dense_first,
                            d.layers == 1 ? "is" : "are", typed_count(d.layers, "layer")),
                "give a smaller experts.every or experts.dense_first, or leave the experts out");
  }
  // Required only where a layer uses it, which is known when the experts are.
  if (d.feed_forward == 0 && d.family != Family::dlrm &&
      (d.experts.count == 0 || d.experts.dense_first > 0 || d.experts.every > 1)) {
    throw Error(d.where, "the key 'feed_forward' is missing",
                "it is the size of the MLP in layers without experts");
  }
  return d;
}

}  // namespace armilla
