#include "read/described/huggingface/huggingface_class.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"

namespace armilla {
namespace {

using Names = std::string_view;

// What a class's own Config knows beside the keys that the reader asks for: no reason for a note.
// Of every class; generation, tokens, output and bookkeeping.
constexpr Names kCommon[] = {"model_type",
                             "architectures",
                             "torch_dtype",
                             "dtype",
                             "transformers_version",
                             "auto_map",
                             "quantization_config",
                             "compression_config",
                             "use_cache",
                             "tie_word_embeddings",
                             "initializer_range",
                             "attn_implementation",
                             "gradient_checkpointing",
                             "output_attentions",
                             "output_hidden_states",
                             "output_scores",
                             "output_past",
                             "return_dict",
                             "use_return_dict",
                             "return_dict_in_generate",
                             "torchscript",
                             "use_bfloat16",
                             "pruned_heads",
                             "is_encoder_decoder",
                             "is_decoder",
                             "add_cross_attention",
                             "cross_attention_hidden_size",
                             "tie_encoder_decoder",
                             "chunk_size_feed_forward",
                             "tf_legacy_loss",
                             "bos_token_id",
                             "eos_token_id",
                             "pad_token_id",
                             "sep_token_id",
                             "unk_token_id",
                             "mask_token_id",
                             "decoder_start_token_id",
                             "forced_bos_token_id",
                             "forced_eos_token_id",
                             "tokenizer_class",
                             "prefix",
                             "max_length",
                             "max_new_tokens",
                             "min_length",
                             "do_sample",
                             "early_stopping",
                             "num_beams",
                             "num_beam_groups",
                             "diversity_penalty",
                             "temperature",
                             "top_k",
                             "top_p",
                             "typical_p",
                             "repetition_penalty",
                             "length_penalty",
                             "no_repeat_ngram_size",
                             "encoder_no_repeat_ngram_size",
                             "bad_words_ids",
                             "num_return_sequences",
                             "remove_invalid_values",
                             "exponential_decay_length_penalty",
                             "suppress_tokens",
                             "begin_suppress_tokens",
                             "finetuning_task",
                             "task_specific_params",
                             "problem_type",
                             "id2label",
                             "label2id",
                             "num_labels",
                             "name_or_path",
                             "unsloth_fixed",
                             "unsloth_version"};

// Of decoders since Llama.
constexpr Names kRotary[] = {"rope_theta",
                             "rope_scaling",
                             "rope_parameters",
                             "rms_norm_eps",
                             "attention_dropout",
                             "pretraining_tp",
                             "head_dim",
                             "partial_rotary_factor",
                             "sliding_window",
                             "max_window_layers",
                             "layer_types",
                             "rope_interleave",
                             "hidden_dropout",
                             "use_sliding_window",
                             "attention_bias",
                             "mlp_bias",
                             "resid_pdrop",
                             "embd_pdrop",
                             "attn_pdrop",
                             "use_flash_attn",
                             "router_aux_loss_coef",
                             "output_router_logits",
                             "router_jitter_noise",
                             "norm_topk_prob",
                             "intermediate_size"};
// Of state-space models and hybrids.
constexpr Names kStateSpace[] = {"rms_norm_eps",
                                 "layer_norm_epsilon",
                                 "norm_eps",
                                 "attention_dropout",
                                 "attention_bias",
                                 "mlp_bias",
                                 "hidden_dropout",
                                 "hidden_act",
                                 "use_mambapy",
                                 "use_mamba_kernels",
                                 "use_bias",
                                 "use_conv_bias",
                                 "mamba_conv_bias",
                                 "mamba_proj_bias",
                                 "mamba_hidden_act",
                                 "mamba_ssm_cache_dtype",
                                 "rescale_prenorm_residual",
                                 "residual_in_fp32",
                                 "rms_norm",
                                 "norm_before_gate",
                                 "chunk_size",
                                 "time_step_init_scheme",
                                 "time_step_limit",
                                 "time_step_floor",
                                 "time_step_max",
                                 "time_step_min",
                                 "time_step_scale",
                                 "time_step_rank",
                                 "expand",
                                 "head_dim",
                                 "mixer_rms_eps",
                                 "num_logits_to_keep",
                                 "output_router_logits",
                                 "router_aux_loss_coef",
                                 "routed_scaling_factor",
                                 "norm_topk_prob",
                                 "partial_rotary_factor",
                                 "rope_theta",
                                 "sliding_window"};
constexpr Names kDeepseek[] = {"rope_theta",
                               "rope_scaling",
                               "rope_parameters",
                               "rms_norm_eps",
                               "attention_dropout",
                               "pretraining_tp",
                               "head_dim",
                               "qk_head_dim",
                               "rope_interleave",
                               "n_group",
                               "topk_group",
                               "topk_method",
                               "norm_topk_prob",
                               "routed_scaling_factor",
                               "scoring_func",
                               "aux_loss_alpha",
                               "seq_aux",
                               "ep_size",
                               "mlp_bias",
                               "num_nextn_predict_layers",
                               "router_aux_loss_coef",
                               "output_router_logits"};
constexpr Names kGpt2[] = {"n_ctx",
                           "attn_pdrop",
                           "embd_pdrop",
                           "layer_norm_epsilon",
                           "scale_attn_weights",
                           "scale_attn_by_inverse_layer_idx",
                           "reorder_and_upcast_attn",
                           "summary_type",
                           "summary_use_proj",
                           "summary_activation",
                           "summary_proj_to_labels",
                           "summary_first_dropout"};
constexpr Names kNeox[] = {"rotary_pct",        "rotary_emb_base",    "rope_theta",
                           "rope_scaling",      "rope_parameters",    "partial_rotary_factor",
                           "attention_dropout", "classifier_dropout", "layer_norm_eps"};
constexpr Names kBert[] = {"attention_probs_dropout_prob",
                           "layer_norm_eps",
                           "position_embedding_type",
                           "classifier_dropout",
                           "directionality",
                           "pooler_fc_size",
                           "pooler_num_attention_heads",
                           "pooler_num_fc_layers",
                           "pooler_size_per_head",
                           "pooler_type"};
constexpr Names kT5[] = {"relative_attention_max_distance",
                         "layer_norm_epsilon",
                         "initializer_factor",
                         "dense_act_fn",
                         "is_gated_act",
                         "classifier_dropout",
                         "n_positions"};
constexpr Names kVit[] = {"attention_probs_dropout_prob", "layer_norm_eps", "encoder_stride",
                          "pooler_output_size", "pooler_act"};

// The attribute_map of the class in transformers: keys that it also takes under another name.
constexpr HuggingfaceAlias kGpt2Aliases[] = {{"hidden_size", "n_embd"},
                                             {"max_position_embeddings", "n_positions"},
                                             {"num_attention_heads", "n_head"},
                                             {"num_hidden_layers", "n_layer"}};
constexpr HuggingfaceAlias kT5Aliases[] = {{"hidden_size", "d_model"},
                                           {"num_attention_heads", "num_heads"},
                                           {"num_hidden_layers", "num_layers"},
                                           {"head_dim", "d_kv"}};
constexpr HuggingfaceAlias kDeepseekAliases[] = {{"num_local_experts", "n_routed_experts"},
                                                 {"num_experts", "n_routed_experts"}};
constexpr HuggingfaceAlias kMixtralAliases[] = {{"num_experts", "num_local_experts"}};
constexpr HuggingfaceAlias kQwenAliases[] = {{"num_local_experts", "num_experts"}};

constexpr Names kGpt2Exact[] = {"GPT2LMHeadModel"};
constexpr Names kT5Exact[] = {"T5WithLMHeadModel"};
constexpr Names kBertExact[] = {"BertForMaskedLM", "BertLMHeadModel", "BertModel",
                                "BertForNextSentencePrediction"};
constexpr Names kVitExact[] = {"ViTModel"};

// Sorted by model_type.
constexpr std::array kClasses = {
    HuggingfaceClass{"bert", "Bert", "BertForPreTraining", kBertExact, {}, kBert},
    HuggingfaceClass{"deepseek_v2", "DeepseekV2", "DeepseekV2ForCausalLM", {}, kDeepseekAliases, kDeepseek},
    HuggingfaceClass{"deepseek_v3", "DeepseekV3", "DeepseekV3ForCausalLM", {}, kDeepseekAliases, kDeepseek},
    HuggingfaceClass{"falcon_mamba", "FalconMamba", "FalconMambaForCausalLM", {}, {}, kStateSpace},
    HuggingfaceClass{"gpt2", "GPT2", "GPT2LMHeadModel", kGpt2Exact, kGpt2Aliases, kGpt2},
    HuggingfaceClass{"gpt_neox", "GPTNeoX", "GPTNeoXForCausalLM", {}, {}, kNeox},
    HuggingfaceClass{"jamba", "Jamba", "JambaForCausalLM", {}, {}, kStateSpace},
    HuggingfaceClass{"llama", "Llama", "LlamaForCausalLM", {}, {}, kRotary},
    HuggingfaceClass{"mamba", "Mamba", "MambaForCausalLM", {}, {}, kStateSpace},
    HuggingfaceClass{"mamba2", "Mamba2", "Mamba2ForCausalLM", {}, {}, kStateSpace},
    HuggingfaceClass{"mistral", "Mistral", "MistralForCausalLM", {}, {}, kRotary},
    HuggingfaceClass{"mixtral", "Mixtral", "MixtralForCausalLM", {}, kMixtralAliases, kRotary},
    HuggingfaceClass{"mt5", "MT5", "MT5ForConditionalGeneration", {}, kT5Aliases, kT5},
    HuggingfaceClass{"nemotron_h", "NemotronH", "NemotronHForCausalLM", {}, {}, kStateSpace},
    HuggingfaceClass{"qwen2", "Qwen2", "Qwen2ForCausalLM", {}, {}, kRotary},
    HuggingfaceClass{"qwen2_moe", "Qwen2Moe", "Qwen2MoeForCausalLM", {}, kQwenAliases, kRotary},
    HuggingfaceClass{"qwen3", "Qwen3", "Qwen3ForCausalLM", {}, {}, kRotary},
    HuggingfaceClass{"qwen3_moe", "Qwen3Moe", "Qwen3MoeForCausalLM", {}, kQwenAliases, kRotary},
    HuggingfaceClass{"t5", "T5", "T5ForConditionalGeneration", kT5Exact, kT5Aliases, kT5},
    HuggingfaceClass{"vit", "ViT", "ViTForImageClassification", kVitExact, {}, kVit},
};

// What transformers itself builds on each of the bodies.
constexpr Names kHeads[] = {"Model",
                            "PreTrainedModel",
                            "EncoderModel",
                            "DoubleHeadsModel",
                            "ForSequenceClassification",
                            "ForTokenClassification",
                            "ForQuestionAnswering",
                            "ForMultipleChoice",
                            "ForMaskedImageModeling"};

bool contains(std::span<const Names> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const HuggingfaceClass& huggingface_class(std::string_view model_type) {
  const auto found = std::find_if(kClasses.begin(), kClasses.end(), [&](const HuggingfaceClass& known) {
    return known.model_type == model_type;
  });
  // The reader asks for its own model types only, and each of them has a row.
  return found == kClasses.end() ? kClasses.front() : *found;
}

std::string architecture_note(const HuggingfaceClass& known, std::string_view architecture) {
  if (architecture == known.main || contains(known.exact, architecture)) return {};
  if (architecture.starts_with(known.prefix) && contains(kHeads, architecture.substr(known.prefix.size())))
    return fmt::format("architectures {}: its head is not modelled, it is read as {}", architecture,
                       known.model_type == "bert" ? "a BertModel" : known.main);
  return fmt::format(
      "architectures {:.60} is not known: read as {} by its model_type '{}', though it may be another "
      "network",
      architecture, known.main, known.model_type);
}

std::string unknown_keys_note(const HuggingfaceClass& known, const std::vector<std::string>& keys,
                              const std::set<std::string, std::less<>>& read) {
  // Near enough to be a misspelling: at most three edits, or half of a short key.
  constexpr int kNear = 3;
  constexpr std::size_t kMostNamed = 12;
  std::vector<std::string> unknown;
  for (const std::string& key : keys) {
    if (read.contains(key) || contains(kCommon, key) || contains(known.harmless, key) || key.starts_with('_'))
      continue;
    std::string_view nearest;
    int distance = std::min(kNear, static_cast<int>(key.size()) / 2) + 1;
    for (const std::string& candidate : read) {
      const int d = edit_distance(key.substr(0, 80), candidate);
      if (d < distance) {
        distance = d;
        nearest = candidate;
      }
    }
    unknown.push_back(nearest.empty() ? fmt::format("{:.60}", key)
                                      : fmt::format("{:.60} (did you mean '{}'?)", key, nearest));
  }
  if (unknown.empty()) return {};
  const std::size_t more = unknown.size() - std::min(unknown.size(), kMostNamed);
  unknown.resize(unknown.size() - more);
  return fmt::format("keys that {}Config does not know have no effect: {}{}", known.prefix,
                     fmt::join(unknown, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace armilla
