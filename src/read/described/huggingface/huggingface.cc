#include "read/described/huggingface/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/described/described_model.h"
#include "read/described/huggingface/huggingface_source.h"
#include "read/study/mapping_yaml.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr std::int64_t kLongestDefaultSequence = 8192;

using Source = HuggingfaceSource;

}  // namespace

void read_activation(HuggingfaceSource& s, std::string_view key, bool gated) {
  const auto value = s.fields.find(key);
  if (!value) return;
  const std::string word = value->text();
  // Variants of GELU (tanh, erf, sigmoid approximations) cost the same at the precision of this model.
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

void read_dropout(HuggingfaceSource& s, std::string_view key) {
  if (const auto value = s.fields.find(key)) s.d.dropout = parse_real(value->text(), value->where()) > 0;
}

void read_positions(HuggingfaceSource& s, std::string_view key, std::int64_t otherwise) {
  s.d.max_positions = otherwise;
  s.fields.count(s.d.max_positions, "max_positions", s.spelt(key), 1, INT32_MAX);
  // Current models allow 128K tokens and more, but are trained on shorter samples for nearly all of the time.
  s.d.sequence = std::min(s.d.max_positions, kLongestDefaultSequence);
  s.d.longest_sequence = s.d.max_positions;
}

void read_common(HuggingfaceSource& s, const DecoderSizes& sizes) {
  s.number(s.d.hidden, "hidden", "hidden_size", kMostWidth, sizes.hidden);
  s.number(s.d.layers, "layers", "num_hidden_layers", kMostLayers, sizes.layers);
  s.number(s.d.heads, "heads", "num_attention_heads", kMostHeads, sizes.heads);
  s.number(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows, sizes.vocabulary);
  s.number(s.d.feed_forward, "feed_forward", "intermediate_size", kMostWidth, sizes.feed_forward);
  s.fields.flag(s.d.tied_embeddings, "tied_embeddings", "tie_word_embeddings");
}

namespace {

// A class's own number of key and value heads is one for its own number of heads: a null, and where the class
// has none, means as many as there are heads.
void read_llama_like(Source& s, const DecoderSizes& sizes) {
  read_common(s, sizes);
  // 0 stands for "as many as heads" in LlamaConfig and the like, where there is no default to report.
  if (sizes.kv_heads > 0) {
    s.number_or_null(s.d.kv_heads, "kv_heads", "num_key_value_heads", kMostHeads, sizes.kv_heads);
  } else {
    s.fields.count(s.d.kv_heads, "kv_heads", "num_key_value_heads", 1, kMostHeads);
  }
  if (sizes.head_dim > 0) {
    s.number_or_null(s.d.head_dim, "head_dim", "head_dim", kMostHeads, sizes.head_dim);
  } else {
    s.fields.count(s.d.head_dim, "head_dim", "head_dim", 1, kMostHeads);
  }
  read_activation(s, "hidden_act", true);
  read_positions(s, "max_position_embeddings", sizes.positions);
}

void read_attention_bias(Source& s) {
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "attention_bias");
  s.d.projection_bias = s.d.qkv_bias;
}

void read_llama(Source& s) {
  // The numbers here and in the functions below are the defaults of the class's __init__.
  read_llama_like(s, {32000, 4096, 11008, 32, 32, 0, 0, 2048});
  read_attention_bias(s);
  s.fields.flag(s.d.mlp_bias, "mlp_bias", "mlp_bias");
}

constexpr std::int64_t kMistralPositions = 4096 * 32;

void read_mistral(Source& s) {
  read_llama_like(s, {32000, 4096, 14336, 32, 32, 8, 0, kMistralPositions});
  s.number_or_null(s.d.window, "window", "sliding_window", INT32_MAX, 4096);
}

void read_mixtral(Source& s) {
  read_llama_like(s, {32000, 4096, 14336, 32, 32, 8, 0, kMistralPositions});
  // MixtralConfig's sliding_window is null by default, so only a given one counts.
  s.fields.count(s.d.window, "window", "sliding_window", 1, INT32_MAX);
  s.number(s.d.experts.count, "experts.count", "num_local_experts", kMostExperts, 8);
  s.number(s.d.experts.active, "experts.active", "num_experts_per_tok", kMostExperts, 2);
  s.d.experts.feed_forward = s.d.feed_forward;
}

void note_windows(Source& s) {
  // Only notes: in Qwen the window is for some of the layers, and one window for all would be as wrong as
  // none.
  bool windows = false;
  s.fields.flag(windows, "window", "use_sliding_window");
  if (const auto types = s.fields.find("layer_types"); types && types->is_list()) {
    for (const Config& type : types->items()) windows = windows || type.text() == "sliding_attention";
  }
  if (windows) s.d.notes.push_back("attention windows in some of the layers are not modelled");
}

void read_qwen2(Source& s) {
  read_llama_like(s, {151936, 4096, 22016, 32, 32, 32, 0, 32768});
  s.d.qkv_bias = true;
  note_windows(s);
}

void read_qwen3(Source& s) {
  read_llama_like(s, {151936, 4096, 22016, 32, 32, 32, 128, 32768});
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

void read_qwen_experts(Source& s, std::int64_t count, std::int64_t active, std::int64_t feed_forward) {
  Experts& experts = s.d.experts;
  s.number(experts.count, "experts.count", "num_experts", kMostExperts, count);
  s.number(experts.active, "experts.active", "num_experts_per_tok", kMostExperts, active);
  s.number(experts.feed_forward, "experts.feed_forward", "moe_intermediate_size", kMostWidth, feed_forward);
  s.fields.count(experts.every, "experts.every", "decoder_sparse_step", 1, kMostLayers);
  read_dense_layers(s);
}

void read_qwen2_moe(Source& s) {
  read_llama_like(s, {151936, 2048, 5632, 24, 16, 16, 0, 32768});
  // Qwen2 has biases on queries, keys and values by design; only the MoE class has a key for it.
  s.d.qkv_bias = true;
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "qkv_bias");
  note_windows(s);
  read_qwen_experts(s, 60, 4, 1408);
  s.number(s.d.experts.shared_feed_forward, "experts.shared_feed_forward", "shared_expert_intermediate_size",
           0, kMostWidth, 5632);
  s.d.experts.shared_gate = s.d.experts.shared_feed_forward > 0;
}

void read_qwen3_moe(Source& s) {
  read_llama_like(s, {151936, 2048, 6144, 24, 32, 4, 0, 32768});
  read_attention_bias(s);
  s.d.qk_norm = true;
  note_windows(s);
  read_qwen_experts(s, 128, 8, 768);
}

// Device-limited (V2) and node-limited (V3) routing. Checkpoints quantised to fp8 are of models whose
// training dispatches tokens in it, too (DeepSeek-AI 2024, DeepSeek-V3, section 3.3.3).
void read_groups(Source& s) {
  Experts& experts = s.d.experts;
  const auto method = s.fields.find("topk_method");
  const bool limited = !method || method->text() != "greedy", given = s.fields.find("n_group").has_value();
  if (given || !limited || experts.count % experts.groups != 0) experts.groups = experts.active_groups = 1;
  if (limited) {
    // Given groups without topk_group are all active: no limit.
    s.fields.count(experts.groups, "experts.groups", "n_group", 1, kMostExpertGroups);
    if (given) experts.active_groups = experts.groups;
    s.fields.count(experts.active_groups, "experts.active_groups", "topk_group", 1, kMostExpertGroups);
  }
  const auto quantization = s.fields.find("quantization_config");
  if (quantization && quantization->is_map() && quantization->has("quant_method") &&
      quantization->at("quant_method").text() == "fp8")
    experts.dispatch = DType::fp8;
}

// What DeepseekV2Config and DeepseekV3Config have where a key is absent. 0 active: there is no default.
struct DeepseekExperts {
  std::int64_t count, active, feed_forward, shared, dense_first;
};

void read_deepseek_experts(Source& s, const DeepseekExperts& own) {
  Experts& experts = s.d.experts;
  s.number_or_null(experts.count, "experts.count", "n_routed_experts", kMostExperts, own.count);
  if (experts.count == 0) return;
  if (own.active > 0) {
    s.number(experts.active, "experts.active", "num_experts_per_tok", kMostExperts, own.active);
  } else {
    s.fields.required(experts.active, "experts.active", "num_experts_per_tok", kMostExperts);
  }
  s.number(experts.feed_forward, "experts.feed_forward", "moe_intermediate_size", kMostWidth,
           own.feed_forward);
  s.number(experts.dense_first, "experts.dense_first", "first_k_dense_replace", 0, kMostLayers,
           own.dense_first);
  std::int64_t shared = 0;
  // n_shared_experts counts experts of the routed ones' width; null means none.
  if (!s.config.has("n_shared_experts") || s.fields.find("n_shared_experts"))
    s.number(shared, "experts.shared_feed_forward", "n_shared_experts", 0, 1024, own.shared);
  experts.shared_feed_forward = shared * experts.feed_forward;
  read_groups(s);
  std::int64_t every = 1;
  s.fields.count(every, "experts.every", "moe_layer_freq", 1, kMostLayers);
  if (every != 1)
    throw Error(s.d.place("experts.every"),
                fmt::format("experts in every {}th layer are not supported", every),
                "every layer after the dense ones has experts: 1");
  // No layer is left for experts: the model is a dense one.
  if (experts.dense_first >= s.d.layers) experts = {};
}

void read_deepseek(Source& s, const DecoderSizes& sizes, const DeepseekExperts& own) {
  read_llama_like(s, sizes);
  read_attention_bias(s);
  LatentAttention& latent = s.d.latent.emplace();
  s.number_or_null(latent.query_rank, "latent_attention.query_rank", "q_lora_rank", kMostWidth, 1536);
  s.number(latent.key_value_rank, "latent_attention.key_value_rank", "kv_lora_rank", kMostWidth, 512);
  s.number(latent.rope_head_dim, "head_dim", "qk_rope_head_dim", kMostHeads, 64);
  s.number(latent.nope_head_dim, "latent_attention.nope_head_dim", "qk_nope_head_dim", kMostHeads, 128);
  s.number(latent.value_head_dim, "latent_attention.value_head_dim", "v_head_dim", kMostHeads, 128);
  read_deepseek_experts(s, own);
}

void read_deepseek_v2(Source& s) {
  read_deepseek(s, {32000, 4096, 11008, 32, 32, 0, 0, 2048}, {64, 0, 1407, 2, 0});
}

void read_deepseek_v3(Source& s) {
  // transformers' own, where the configuration names none.
  s.d.experts.groups = 8;
  s.d.experts.active_groups = 4;
  read_deepseek(s, {129280, 7168, 18432, 61, 128, 0, 0, 4096}, {256, 8, 2048, 1, 3});
  s.d.experts.router_bias = s.d.experts.count > 0;
  std::int64_t further = 0;
  s.fields.count(further, "multi_token_prediction", "num_nextn_predict_layers", 0, 64);
  if (further > 0)
    s.d.notes.push_back(fmt::format(
        "without its multi-token-prediction layers ({}), as transformers; a description can have them",
        further));
}

// GPT-2 has keys of its own; its MLP is four times as wide as the hidden states unless n_inner says
// otherwise.
void read_gpt2(Source& s) {
  s.number(s.d.hidden, "hidden", "n_embd", kMostWidth, 768);
  s.number(s.d.layers, "layers", "n_layer", kMostLayers, 12);
  s.number(s.d.heads, "heads", "n_head", kMostHeads, 12);
  s.number(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows, 50257);
  s.fields.flag(s.d.tied_embeddings, "tied_embeddings", "tie_word_embeddings");
  s.d.feed_forward = 4 * s.d.hidden;
  s.fields.count(s.d.feed_forward, "feed_forward", "n_inner", 1, kMostWidth);
  read_activation(s, "activation_function", false);
  read_positions(s, "n_positions", 1024);
  read_dropout(s, "resid_pdrop");
}

void read_gpt_neox(Source& s) {
  s.d.tied_embeddings = false;
  read_common(s, {50432, 6144, 24576, 44, 64, 0, 0, 2048});
  read_activation(s, "hidden_act", false);
  read_positions(s, "max_position_embeddings", 2048);
  s.d.positions = Positions::rotary;
  // GPTNeoXConfig's own default is 0, where the family's other model has dropout.
  s.d.dropout = false;
  read_dropout(s, "hidden_dropout");
  s.d.parallel_residual = true;
  s.fields.flag(s.d.parallel_residual, "parallel_residual", "use_parallel_residual");
  s.fields.flag(s.d.qkv_bias, "qkv_bias", "attention_bias");
  s.d.projection_bias = s.d.qkv_bias;
}

struct ModelType {
  std::string_view name;
  Family family;
  void (*read)(Source&);
};
constexpr std::array kModelTypes = {
    ModelType{"bert", Family::bert, read_bert},
    ModelType{"deepseek_v2", Family::deepseek, read_deepseek_v2},
    ModelType{"deepseek_v3", Family::deepseek, read_deepseek_v3},
    ModelType{"falcon_mamba", Family::hybrid, read_falcon_mamba},
    ModelType{"gpt2", Family::gpt, read_gpt2},
    ModelType{"gpt_neox", Family::gpt, read_gpt_neox},
    ModelType{"jamba", Family::hybrid, read_jamba},
    ModelType{"llama", Family::llama, read_llama},
    ModelType{"mamba", Family::hybrid, read_mamba},
    ModelType{"mamba2", Family::hybrid, read_mamba2},
    ModelType{"mistral", Family::llama, read_mistral},
    ModelType{"mixtral", Family::mixtral, read_mixtral},
    ModelType{"mt5", Family::t5, read_mt5},
    ModelType{"nemotron_h", Family::hybrid, read_nemotron_h},
    ModelType{"qwen2", Family::llama, read_qwen2},
    ModelType{"qwen2_moe", Family::mixtral, read_qwen2_moe},
    ModelType{"qwen3", Family::llama, read_qwen3},
    ModelType{"qwen3_moe", Family::mixtral, read_qwen3_moe},
    ModelType{"t5", Family::t5, read_t5},
    ModelType{"vit", Family::vit, read_vit},
};

// Of other architectures, which no spelling error leads to, nor to a model of the zoo: "phi" is no
// phi-3-mini.
constexpr std::array<std::string_view, 8> kOtherTypes = {"bart",   "falcon", "gptj", "llava",
                                                         "mllama", "mpt",    "phi",  "qwen"};

// Those whose names begin with the words of a model_type: "gpt_oss" is of gpt-oss-20b.
std::vector<std::string_view> zoo_models_of_type(std::string_view type) {
  std::string joined(type);
  std::erase(joined, '_');
  std::vector<std::string_view> names;
  for (const ZooModel& model : zoo_models()) {
    std::string words;
    for (const char c : model.name) {
      if (c != '-')
        words += c;
      else if (words == joined)
        names.push_back(model.name);
    }
  }
  return names;
}

const ModelType& find_type(const Config& value) {
  const std::string name = value.text();
  for (const ModelType& type : kModelTypes) {
    if (type.name == name) return type;
  }
  const std::vector<std::string_view> known = huggingface_model_types();
  std::string hint = fmt::format("known: {}", fmt::join(known, ", "));
  const bool is_another = std::ranges::find(kOtherTypes, name) != kOtherTypes.end();
  const std::vector<std::string_view> by_name = zoo_models_of_type(name);
  if (!is_another && !by_name.empty()) {
    hint = fmt::format("by name there {} {} ({})", by_name.size() == 1 ? "is" : "are",
                       fmt::join(by_name, ", "), hint);
  } else if (!is_another) {
    const std::string nearest = suggest(name, std::span<const std::string_view>(known));
    if (nearest != hint) hint = fmt::format("{} ({})", nearest, hint);
  }
  throw Error(value.where(), fmt::format("unknown model_type '{:.60}'", name), hint);
}

// "config.json" says nothing: then the folder is called after the model.
std::string name_of_file(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string folder = path.parent_path().filename().string();
  return path.stem() == "config" && !folder.empty() && folder != "." && folder != ".." ? folder
                                                                                       : path.stem().string();
}

constexpr const char* kOnlyJson = "a model in JSON is the config.json of a Hugging Face model";

// What is read otherwise than its author may think.
void add_notes(Source& s) {
  const std::string architecture = s.architecture();
  if (!architecture.empty()) {
    if (std::string note = architecture_note(s.known, architecture); !note.empty())
      s.d.notes.push_back(std::move(note));
  }
  if (std::string note = unknown_keys_note(s.known, s.config.keys(), s.fields.asked()); !note.empty())
    s.d.notes.push_back(std::move(note));
  if (!s.absent.empty())
    s.d.notes.push_back(
        fmt::format("absent keys have {}Config's own values: {}", s.known.prefix, fmt::join(s.absent, ", ")));
}

}  // namespace

ModelDescription read_huggingface(const Config& config) {
  require_mapping(config, "a Hugging Face configuration", kOnlyJson);
  if (!config.has("model_type"))
    throw Error(config.where(), "is not a Hugging Face configuration: the key 'model_type' is missing",
                kOnlyJson);
  const ModelType& type = find_type(config.at("model_type"));
  ModelDescription d = family_defaults(type.family);
  d.name = name_of_file(config.file());
  d.where = config.where();
  Source source{config, DescriptionFields(config, d), d, huggingface_class(type.name), {}};
  type.read(source);
  // After the reader, which records what it asked for and what was absent.
  add_notes(source);
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
  Model model = build_described_model(
      read_huggingface(Config::parse_json({bytes.data(), bytes.size()}, name)), options);
  model.source = name;
  return model;
}

}  // namespace armilla
