#include "read/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/described_model.h"
#include "read/description_fields.h"

namespace armilla {
namespace {

constexpr std::int64_t kLongestDefaultSequence = 8192;

struct Source {
  const Config& config;
  DescriptionFields fields;
  ModelDescription& d;

  bool is_architecture(std::string_view ending) const {
    const auto list = fields.find("architectures");
    if (!list) return false;
    const std::vector<Config> names = list->items();
    return !names.empty() && names[0].text().ends_with(ending);
  }
};

void read_activation(Source& s, std::string_view key, bool gated) {
  const auto value = s.fields.find(key);
  if (!value) return;
  const std::string word = value->text();
  const bool gelu = word.starts_with("gelu") || word == "quick_gelu";
  if (gelu) {
    s.d.activation = gated ? Activation::geglu : Activation::gelu;
  } else if (word == "relu" && !gated) {
    s.d.activation = Activation::relu;
  } else if ((word == "silu" || word == "swish") && gated) {
    s.d.activation = Activation::swiglu;
  } else {
    throw Error(value->where(), fmt::format("the activation '{:.60}' is not modelled", word),
                gated ? "known: silu, gelu" : "known: gelu, gelu_new, relu");
  }
}

void read_dropout(Source& s, std::string_view key) {
  if (const auto value = s.fields.find(key)) s.d.dropout = parse_real(value->text(), value->where()) > 0;
}

void read_positions(Source& s, std::string_view key, std::int64_t otherwise) {
  s.d.max_positions = otherwise;
  s.fields.count(s.d.max_positions, "max_positions", key, 1, INT32_MAX);
  s.d.sequence = std::min(s.d.max_positions, kLongestDefaultSequence);
  if (s.d.sequence < s.d.max_positions)
    s.d.notes.push_back(
        fmt::format("samples of {} tokens; the configuration allows {}", s.d.sequence, s.d.max_positions));
}

void read_common(Source& s) {
  s.fields.required(s.d.hidden, "hidden", "hidden_size", kMostWidth);
  s.fields.required(s.d.layers, "layers", "num_hidden_layers", kMostLayers);
  s.fields.required(s.d.heads, "heads", "num_attention_heads", kMostHeads);
  s.fields.required(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows);
  s.fields.flag(s.d.tied_embeddings, "tied_embeddings", "tie_word_embeddings");
}

void read_llama_like(Source& s) {
  read_common(s);
  s.fields.count(s.d.kv_heads, "kv_heads", "num_key_value_heads", 1, kMostHeads);
  s.fields.count(s.d.head_dim, "head_dim", "head_dim", 1, kMostHeads);
  s.fields.required(s.d.feed_forward, "feed_forward", "intermediate_size", kMostWidth);
  read_activation(s, "hidden_act", true);
  read_positions(s, "max_position_embeddings", 2048);
}

void read_attention_bias(Source& s) {
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "attention_bias");
  s.d.projection_bias = s.d.qkv_bias;
}

void read_llama(Source& s) {
  read_llama_like(s);
  read_attention_bias(s);
  s.fields.flag(s.d.mlp_bias, "mlp_bias", "mlp_bias");
}

void read_mistral(Source& s) {
  read_llama_like(s);
  s.fields.count(s.d.window, "window", "sliding_window", 1, INT32_MAX);
}

void read_mixtral(Source& s) {
  read_mistral(s);
  s.d.experts.count = 8;
  s.d.experts.active = 2;
  s.fields.count(s.d.experts.count, "experts.count", "num_local_experts", 1, kMostExperts);
  s.fields.count(s.d.experts.active, "experts.active", "num_experts_per_tok", 1, kMostExperts);
  s.d.experts.feed_forward = s.d.feed_forward;
}

void note_windows(Source& s) {
  bool windows = false;
  s.fields.flag(windows, "window", "use_sliding_window");
  if (windows) s.d.notes.push_back("attention windows in some of the layers are not modelled");
}

void read_qwen2(Source& s) {
  read_llama_like(s);
  s.d.qkv_bias = true;
  note_windows(s);
}

void read_qwen3(Source& s) {
  read_llama_like(s);
  read_attention_bias(s);
  s.d.qk_norm = true;
  note_windows(s);
}

// Qwen names single layers that have no experts; only leading ones are described here.
void read_dense_layers(Source& s) {
  const auto list = s.fields.find("mlp_only_layers");
  if (!list) return;
  for (const Config& item : list->items()) {
    if (item.count(0, kMostLayers) != s.d.experts.dense_first)
      throw Error(item.where(), fmt::format("layer {} has no experts", item.text()),
                  "only models whose first layers have none are supported: 0, 1, 2 ...");
    ++s.d.experts.dense_first;
  }
  s.d.places.emplace("experts.dense_first", list->where());
}

void read_qwen_experts(Source& s) {
  Experts& experts = s.d.experts;
  s.fields.required(experts.count, "experts.count", "num_experts", kMostExperts);
  s.fields.required(experts.active, "experts.active", "num_experts_per_tok", kMostExperts);
  s.fields.required(experts.feed_forward, "experts.feed_forward", "moe_intermediate_size", kMostWidth);
  s.fields.count(experts.every, "experts.every", "decoder_sparse_step", 1, kMostLayers);
  read_dense_layers(s);
}

void read_qwen2_moe(Source& s) {
  read_qwen2(s);
  read_qwen_experts(s);
  s.fields.count(s.d.experts.shared_feed_forward, "experts.shared_feed_forward",
                 "shared_expert_intermediate_size", 0, kMostWidth);
  s.d.experts.shared_gate = s.d.experts.shared_feed_forward > 0;
}

void read_qwen3_moe(Source& s) {
  read_qwen3(s);
  read_qwen_experts(s);
}

void read_deepseek(Source& s) {
  read_llama_like(s);
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "attention_bias");
  s.d.projection_bias = s.d.qkv_bias;
  LatentAttention& latent = s.d.latent.emplace();
  s.fields.count(latent.query_rank, "latent_attention.query_rank", "q_lora_rank", 1, kMostWidth);
  s.fields.required(latent.key_value_rank, "latent_attention.key_value_rank", "kv_lora_rank", kMostWidth);
  s.fields.required(latent.rope_head_dim, "head_dim", "qk_rope_head_dim", kMostHeads);
  s.fields.required(latent.nope_head_dim, "latent_attention.nope_head_dim", "qk_nope_head_dim", kMostHeads);
  s.fields.required(latent.value_head_dim, "latent_attention.value_head_dim", "v_head_dim", kMostHeads);
  if (!s.fields.find("n_routed_experts")) return;
  Experts& experts = s.d.experts;
  s.fields.required(experts.count, "experts.count", "n_routed_experts", kMostExperts);
  s.fields.required(experts.active, "experts.active", "num_experts_per_tok", kMostExperts);
  s.fields.required(experts.feed_forward, "experts.feed_forward", "moe_intermediate_size", kMostWidth);
  s.fields.count(experts.dense_first, "experts.dense_first", "first_k_dense_replace", 0, kMostLayers);
  std::int64_t shared = 0;
  s.fields.count(shared, "experts.shared_feed_forward", "n_shared_experts", 0, 1024);
  experts.shared_feed_forward = shared * experts.feed_forward;
  std::int64_t every = 1;
  s.fields.count(every, "experts.every", "moe_layer_freq", 1, kMostLayers);
  if (every != 1)
    throw Error(s.d.place("experts.every"),
                fmt::format("experts in every {}th layer are not supported", every),
                "every layer after the dense ones has experts: 1");
}

void read_deepseek_v3(Source& s) {
  read_deepseek(s);
  s.d.experts.router_bias = s.d.experts.count > 0;
  std::int64_t further = 0;
  s.fields.count(further, "multi_token_prediction", "num_nextn_predict_layers", 0, 64);
  if (further > 0)
    s.d.notes.push_back(fmt::format(
        "without its {} multi-token-prediction layer(s), as transformers; a description can have them",
        further));
}

void read_gpt2(Source& s) {
  s.fields.required(s.d.hidden, "hidden", "n_embd", kMostWidth);
  s.fields.required(s.d.layers, "layers", "n_layer", kMostLayers);
  s.fields.required(s.d.heads, "heads", "n_head", kMostHeads);
  s.fields.required(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows);
  s.fields.flag(s.d.tied_embeddings, "tied_embeddings", "tie_word_embeddings");
  s.d.feed_forward = 4 * s.d.hidden;
  s.fields.count(s.d.feed_forward, "feed_forward", "n_inner", 1, kMostWidth);
  read_activation(s, "activation_function", false);
  read_positions(s, "n_positions", 1024);
  read_dropout(s, "resid_pdrop");
}

void read_gpt_neox(Source& s) {
  s.d.tied_embeddings = false;
  read_common(s);
  s.fields.required(s.d.feed_forward, "feed_forward", "intermediate_size", kMostWidth);
  read_activation(s, "hidden_act", false);
  read_positions(s, "max_position_embeddings", 2048);
  s.d.positions = Positions::rotary;
  s.d.dropout = false;
  read_dropout(s, "hidden_dropout");
  s.d.parallel_residual = true;
  s.fields.flag(s.d.parallel_residual, "parallel_residual", "use_parallel_residual");
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "attention_bias");
  s.d.projection_bias = s.d.qkv_bias;
}

void read_bert(Source& s) {
  read_common(s);
  s.fields.required(s.d.feed_forward, "feed_forward", "intermediate_size", kMostWidth);
  read_activation(s, "hidden_act", false);
  read_positions(s, "max_position_embeddings", 512);
  s.fields.count(s.d.segments, "segments", "type_vocab_size", 0, 1 << 16);
  read_dropout(s, "hidden_dropout_prob");
  const bool only_words = s.is_architecture("ForMaskedLM"), bare = s.is_architecture("BertModel");
  s.d.pooler = !only_words;
  s.d.nsp_head = !only_words && !bare;
  s.d.mlm_head = !bare;
}

void read_t5(Source& s) {
  s.fields.required(s.d.hidden, "hidden", "d_model", kMostWidth);
  s.fields.required(s.d.layers, "layers", "num_layers", kMostLayers);
  s.fields.required(s.d.heads, "heads", "num_heads", kMostHeads);
  s.fields.required(s.d.head_dim, "head_dim", "d_kv", kMostHeads);
  s.fields.required(s.d.feed_forward, "feed_forward", "d_ff", kMostWidth);
  s.fields.required(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows);
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

void read_vit(Source& s) {
  s.fields.required(s.d.hidden, "hidden", "hidden_size", kMostWidth);
  s.fields.required(s.d.layers, "layers", "num_hidden_layers", kMostLayers);
  s.fields.required(s.d.heads, "heads", "num_attention_heads", kMostHeads);
  s.fields.required(s.d.feed_forward, "feed_forward", "intermediate_size", kMostWidth);
  s.fields.required(s.d.image, "image", "image_size", 1 << 16);
  s.fields.required(s.d.patch, "patch", "patch_size", 1 << 16);
  s.fields.count(s.d.channels, "channels", "num_channels", 1, 1 << 16);
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "qkv_bias");
  read_activation(s, "hidden_act", false);
  read_dropout(s, "hidden_dropout_prob");
  if (s.is_architecture("ViTModel")) {
    s.d.pooler = true;
    return;
  }
  s.d.classes = 2;  // transformers' default
  if (const auto labels = s.fields.find("id2label")) {
    s.d.classes = std::max<std::int64_t>(1, static_cast<std::int64_t>(labels->keys().size()));
  } else {
    s.fields.count(s.d.classes, "classes", "num_labels", 1, kMostWidth);
  }
}

struct ModelType {
  std::string_view name;
  Family family;
  void (*read)(Source&);
};
constexpr std::array kModelTypes = {
    ModelType{"bert", Family::bert, read_bert},
    ModelType{"deepseek_v2", Family::deepseek, read_deepseek},
    ModelType{"deepseek_v3", Family::deepseek, read_deepseek_v3},
    ModelType{"gpt2", Family::gpt, read_gpt2},
    ModelType{"gpt_neox", Family::gpt, read_gpt_neox},
    ModelType{"llama", Family::llama, read_llama},
    ModelType{"mistral", Family::llama, read_mistral},
    ModelType{"mixtral", Family::mixtral, read_mixtral},
    ModelType{"mt5", Family::t5, read_t5},
    ModelType{"qwen2", Family::llama, read_qwen2},
    ModelType{"qwen2_moe", Family::mixtral, read_qwen2_moe},
    ModelType{"qwen3", Family::llama, read_qwen3},
    ModelType{"qwen3_moe", Family::mixtral, read_qwen3_moe},
    ModelType{"t5", Family::t5, read_t5},
    ModelType{"vit", Family::vit, read_vit},
};

const ModelType& find_type(const Config& value) {
  const std::string name = value.text();
  for (const ModelType& type : kModelTypes) {
    if (type.name == name) return type;
  }
  const std::vector<std::string_view> known = huggingface_model_types();
  const std::string list = fmt::format("known: {}", fmt::join(known, ", "));
  const std::string nearest = suggest(name, std::span<const std::string_view>(known));
  throw Error(value.where(), fmt::format("unknown model_type '{:.60}'", name),
              nearest == list ? list : fmt::format("{} ({})", nearest, list));
}

// "config.json" says nothing: then the folder is called after the model.
std::string name_of_file(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string folder = path.parent_path().filename().string();
  return path.stem() == "config" && !folder.empty() && folder != "." && folder != ".." ? folder
                                                                                       : path.stem().string();
}

// JSON is read as the YAML that it is; what is wrong with it need not be said in those words.
Config parse_json(std::span<const char> bytes, const std::string& name) {
  try {
    return Config::parse({bytes.data(), bytes.size()}, name);
  } catch (const Error& error) {
    constexpr std::string_view kYaml = "not valid YAML";
    if (!error.message.starts_with(kYaml)) throw;
    throw Error(error.where, "not valid JSON" + error.message.substr(kYaml.size()), error.hint);
  }
}

}  // namespace

ModelDescription read_huggingface(const Config& config) {
  if (!config.is_map() || !config.has("model_type"))
    throw Error(config.where(), "is no Hugging Face configuration: the key 'model_type' is missing",
                "a model in JSON is the config.json of a Hugging Face model");
  const ModelType& type = find_type(config.at("model_type"));
  ModelDescription d = family_defaults(type.family);
  d.name = name_of_file(config.file());
  d.where = config.where();
  Source source{config, DescriptionFields(config, d), d};
  type.read(source);
  complete_description(d);
  return d;
}

std::vector<std::string_view> huggingface_model_types() {
  std::vector<std::string_view> names;
  for (const ModelType& type : kModelTypes) names.push_back(type.name);
  return names;
}

Model read_huggingface_json(std::span<const char> bytes, const std::string& name,
                            const ModelOptions& options) {
  Model model = build_described_model(read_huggingface(parse_json(bytes, name)), options);
  model.source = name;
  return model;
}

}  // namespace armilla
