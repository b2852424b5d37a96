#include "read/described/huggingface/huggingface.h"

#include <gmock/gmock.h>

#include "base/error_testing.h"
#include "read/described/described_model.h"

namespace armilla {
namespace {

Model read_config(const std::string& text, const ModelOptions& options = {}) {
  return read_huggingface_json(text, "some-model/config.json", options);
}

std::int64_t hugging_parameters(const std::string& text) {
  return totals(read_config(text)).parameters;
}

std::string error_in_config(const std::string& text) {
  return error_of([&] { read_config(text); });
}

constexpr const char* kMistral = R"({
  "architectures": ["MistralForCausalLM"],
  "model_type": "mistral",
  "hidden_act": "silu",
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "max_position_embeddings": 32768,
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "rms_norm_eps": 1e-05,
  "sliding_window": 4096,
  "tie_word_embeddings": false,
  "vocab_size": 32000
})";

// The configurations and counts are those of the models' pages on Hugging Face.
TEST(Huggingface, DecodersHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(hugging_parameters(kMistral), 7'241'732'096);  // Mistral-7B-v0.1
  EXPECT_EQ(
      hugging_parameters(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_ctx": 1024,
                              "n_positions": 1024, "vocab_size": 50257, "activation_function": "gelu_new",
                              "n_inner": null, "resid_pdrop": 0.1})"),
      124'439'808);
  // EleutherAI/pythia-70m
  EXPECT_EQ(hugging_parameters(R"({"model_type": "gpt_neox", "hidden_size": 512, "num_hidden_layers": 6,
                              "num_attention_heads": 8, "intermediate_size": 2048, "hidden_act": "gelu",
                              "max_position_embeddings": 2048, "vocab_size": 50304,
                              "tie_word_embeddings": false, "use_parallel_residual": true})"),
            70'426'624);
  // Qwen2-0.5B: tied, with biases of queries, keys and values
  EXPECT_EQ(hugging_parameters(R"({"model_type": "qwen2", "hidden_size": 896, "num_hidden_layers": 24,
                              "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864,
                              "hidden_act": "silu", "max_position_embeddings": 131072, "vocab_size": 151936,
                              "use_sliding_window": false, "sliding_window": 131072, "tie_word_embeddings": true})"),
            494'032'768);
  // Qwen3-0.6B
  EXPECT_EQ(hugging_parameters(R"({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28,
                              "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
                              "intermediate_size": 3072, "hidden_act": "silu", "max_position_embeddings": 40960,
                              "attention_bias": false, "vocab_size": 151936, "tie_word_embeddings": true})"),
            596'049'920);
}

TEST(Huggingface, MixturesHaveThePublishedNumberOfParameters) {
  // Qwen1.5-MoE-A2.7B
  EXPECT_EQ(hugging_parameters(R"({"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24,
                              "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
                              "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
                              "num_experts": 60, "num_experts_per_tok": 4, "decoder_sparse_step": 1,
                              "hidden_act": "silu", "max_position_embeddings": 8192, "vocab_size": 151936,
                              "tie_word_embeddings": false})"),
            14'315'784'192);
  // Qwen3-30B-A3B
  EXPECT_EQ(hugging_parameters(R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
                              "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
                              "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
                              "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
                              "hidden_act": "silu", "max_position_embeddings": 40960, "vocab_size": 151936,
                              "tie_word_embeddings": false})"),
            30'532'122'624);
  // Mixtral-8x22B-v0.1
  EXPECT_EQ(hugging_parameters(R"({"model_type": "mixtral", "hidden_size": 6144, "num_hidden_layers": 56,
                              "num_attention_heads": 48, "num_key_value_heads": 8, "intermediate_size": 16384,
                              "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null,
                              "hidden_act": "silu", "max_position_embeddings": 65536, "vocab_size": 32000})"),
            140'620'634'112);
  // DeepSeek-V2-Lite: queries without a rank
  EXPECT_EQ(hugging_parameters(R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
                              "num_attention_heads": 16, "num_key_value_heads": 16, "q_lora_rank": null,
                              "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
                              "v_head_dim": 128, "intermediate_size": 10944, "moe_intermediate_size": 1408,
                              "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
                              "first_k_dense_replace": 1, "moe_layer_freq": 1, "hidden_act": "silu",
                              "max_position_embeddings": 163840, "vocab_size": 102400})"),
            15'706'484'224);
}

TEST(Huggingface, ReadsDeepseekV3WithoutItsFurtherPrediction) {
  const Model model =
      read_config(R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
      "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
      "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "intermediate_size": 18432,
      "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
      "first_k_dense_replace": 3, "moe_layer_freq": 1, "num_nextn_predict_layers": 1, "hidden_act": "silu",
      "max_position_embeddings": 163840, "vocab_size": 129280, "tie_word_embeddings": false,
      "quantization_config": {"weight_block_size": [128, 128]}, "rope_scaling": {"factor": 40}})");
  EXPECT_EQ(totals(model).parameters, totals(read_model("deepseek-v3", {})).parameters);
  EXPECT_EQ(
      model.notes,
      (std::vector<std::string>{
          "samples of 8192 tokens; the configuration allows 163840",
          "without its multi-token-prediction layers (1), as transformers; a description can have them"}));
}

TEST(Huggingface, EncodersHaveThePublishedNumberOfParameters) {
  const std::string bert = R"("model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12,
      "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu", "type_vocab_size": 2,
      "max_position_embeddings": 512, "vocab_size": 30522, "hidden_dropout_prob": 0.1)";
  EXPECT_EQ(hugging_parameters("{" + bert + R"(, "architectures": ["BertModel"]})"), 109'482'240);
  EXPECT_EQ(hugging_parameters("{" + bert + R"(, "architectures": ["BertForMaskedLM"]})"), 109'514'298);
  EXPECT_EQ(hugging_parameters("{" + bert + "}"), 110'106'428);  // BertForPreTraining
  EXPECT_EQ(
      hugging_parameters(R"({"model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8,
                              "num_layers": 6, "vocab_size": 32128, "relative_attention_num_buckets": 32,
                              "n_positions": 512, "dropout_rate": 0.1})"),
      60'506'624);  // t5-small
  // google/t5-v1_1-small: gated, untied
  EXPECT_EQ(
      hugging_parameters(R"({"model_type": "t5", "d_model": 512, "d_ff": 1024, "d_kv": 64, "num_heads": 6,
                              "num_layers": 8, "num_decoder_layers": 8, "vocab_size": 32128,
                              "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"),
      76'961'152);
  std::string labels;
  for (int i = 0; i < 1000; ++i) labels += (i > 0 ? "," : "") + ("\"" + std::to_string(i) + "\": \"x\"");
  EXPECT_EQ(hugging_parameters(R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12,
                              "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224,
                              "patch_size": 16, "num_channels": 3, "hidden_act": "gelu", "id2label": {)" +
                               labels + "}}"),
            86'567'656);
}

// The parameters of transformers' MODEL(CONFIG()), by the published counts where the class's own values are
// those of a model that was released.
TEST(Huggingface, AbsentKeysHaveTheValuesOfTheClass) {
  const auto own = [](const std::string& type, const std::string& more = "") {
    return hugging_parameters("{\"model_type\": \"" + type + "\"" + more + "}");
  };
  EXPECT_EQ(own("llama"), 6'738'415'616);       // Llama 7B
  EXPECT_EQ(own("mistral"), 7'241'732'096);     // Mistral 7B v0.1
  EXPECT_EQ(own("mixtral"), 46'702'792'704);    // Mixtral 8x7B
  EXPECT_EQ(own("gpt2"), 124'439'808);          // GPT-2
  EXPECT_EQ(own("gpt_neox"), 20'554'567'680);   // GPT-NeoX-20B
  EXPECT_EQ(own("bert"), 110'106'428);          // BERT base
  EXPECT_EQ(own("t5"), 60'506'624);             // T5 small
  EXPECT_EQ(own("mt5"), 300'176'768);           // mT5 small
  EXPECT_EQ(own("vit"), 85'800'194);            // ViT-B/16 with two classes
  EXPECT_EQ(own("qwen2_moe"), 14'315'784'192);  // Qwen1.5-MoE-A2.7B
  EXPECT_EQ(own("qwen2"), 12'049'846'272);
  EXPECT_EQ(own("qwen3"), 12'049'461'248);
  EXPECT_EQ(own("qwen3_moe"), 15'350'731'776);
  EXPECT_EQ(own("deepseek_v3"), totals(read_model("deepseek-v3", {})).parameters);
  // Of DeepSeek-V2's class, the number of active experts has no value of its own.
  EXPECT_EQ(own("deepseek_v2", ", \"num_experts_per_tok\": 6"),
            own("deepseek_v2", R"(, "num_experts_per_tok": 6, "vocab_size": 32000, "hidden_size": 4096,
                "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "q_lora_rank": 1536,
                "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
                "n_routed_experts": 64, "n_shared_experts": 2, "moe_intermediate_size": 1407,
                "first_k_dense_replace": 0)"));
  EXPECT_EQ(error_in_config(R"({"model_type": "deepseek_v2"})"),
            "some-model/config.json:1:1: the key 'num_experts_per_tok' is missing");
}

TEST(Huggingface, NullIsNotAbsent) {
  const auto heads = [](const std::string& value) {
    return read_config("{\"model_type\": \"mistral\"" + value + "}").facts.kv_heads;
  };
  EXPECT_EQ(heads(""), 8);
  EXPECT_EQ(heads(", \"num_key_value_heads\": null"), 32);
  // Without experts at all, or without shared ones.
  const std::string v3 = R"({"model_type": "deepseek_v3", "num_hidden_layers": 4)";
  EXPECT_EQ(read_config(v3 + "}").facts.experts, 256);
  EXPECT_EQ(read_config(v3 + R"(, "n_routed_experts": null})").facts.experts, 0);
  EXPECT_LT(hugging_parameters(v3 + R"(, "n_shared_experts": null})"), hugging_parameters(v3 + "}"));
  EXPECT_EQ(read_config(R"({"model_type": "deepseek_v3", "num_hidden_layers": 3})").facts.experts, 0);
}

TEST(Huggingface, KnowsTheOtherNamesOfKeys) {
  EXPECT_EQ(hugging_parameters(R"({"model_type": "gpt2", "num_hidden_layers": 24, "hidden_size": 1024,
                              "num_attention_heads": 16})"),
            hugging_parameters(R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16})"));
  EXPECT_EQ(read_config(R"({"model_type": "deepseek_v3", "num_local_experts": 64})").facts.experts, 64);
  EXPECT_EQ(read_config(R"({"model_type": "mixtral", "num_experts": 4})").facts.experts, 4);
}

TEST(Huggingface, SaysWhatItTookAndWhatItDoesNotKnow) {
  const std::string text = kMistral;
  EXPECT_EQ(read_config(text).notes,
            std::vector<std::string>{"samples of 8192 tokens; the configuration allows 32768"});
  ModelOptions shorter;
  shorter.sequence = 4096;
  EXPECT_EQ(read_config(text, shorter).notes, std::vector<std::string>());
  const auto notes_with = [&](const std::string& from, const std::string& to) {
    return read_config(std::string(text).replace(text.find(from), from.size(), to)).notes;
  };
  EXPECT_EQ(
      notes_with("MistralForCausalLM", "MistralForCausalLMEagle3").back(),
      "architectures MistralForCausalLMEagle3 is not known: read as MistralForCausalLM by its model_type "
      "'mistral', though it may be another network");
  EXPECT_EQ(notes_with("MistralForCausalLM", "MistralModel").back(),
            "architectures MistralModel: its head is not modelled, it is read as MistralForCausalLM");
  EXPECT_EQ(
      notes_with("\"vocab_size\"", "\"draft_vocab_size\": 8, \"vocab_sise\": 9, \"vocab_size\"").back(),
      "keys that MistralConfig does not know have no effect: draft_vocab_size, vocab_sise (did you mean "
      "'vocab_size'?)");
  EXPECT_EQ(notes_with("  \"num_hidden_layers\": 32,\n", "").back(),
            "absent keys have MistralConfig's own values: num_hidden_layers 32");
  const std::vector<std::string> v3 =
      read_config(R"({"model_type": "deepseek_v3", "num_routed_experts": 8, "num_hidden_layers": 4})").notes;
  EXPECT_EQ(v3.at(0),
            "keys that DeepseekV3Config does not know have no effect: num_routed_experts (did you mean "
            "'n_routed_experts'?)");
  EXPECT_NE(v3.at(1).find("n_routed_experts 256"), std::string::npos) << v3.at(1);
}

TEST(Huggingface, HeadsOfBertFollowItsArchitecture) {
  const auto with = [](const std::string& head) {
    return read_config(R"({"model_type": "bert", "vocab_size": 30522, "architectures": [")" + head + "\"]}");
  };
  EXPECT_EQ(totals(with("BertForSequenceClassification")).parameters, 109'482'240);
  EXPECT_EQ(totals(with("BertForTokenClassification")).parameters, 108'891'648);
  EXPECT_EQ(totals(with("BertLMHeadModel")).parameters, 109'514'298);
  EXPECT_EQ(totals(with("BertForNextSentencePrediction")).parameters, 109'483'778);
}

TEST(Huggingface, TakesNameAndSequence) {
  const Model model = read_config(kMistral);
  EXPECT_EQ(model.name, "some-model");
  EXPECT_EQ(model.source, "some-model/config.json");
  EXPECT_EQ(model.facts.sequence, 8192);
  EXPECT_EQ(model.facts.family, "llama");
  ModelOptions longer;
  longer.sequence = 32768;
  EXPECT_EQ(read_config(kMistral, longer).facts.sequence, 32768);
}

TEST(Huggingface, WhatIsMissingOrWrongIsNamed) {
  const std::string text = kMistral;
  const auto replaced = [&](const std::string& from, const std::string& to) {
    return std::string(text).replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(
      error_in_config("{}"),
      "some-model/config.json:1:1: is not a Hugging Face configuration: the key 'model_type' is missing\n"
      "  hint: a model in JSON is the config.json of a Hugging Face model");
  EXPECT_EQ(
      error_in_config(R"({"model_type": "lama"})"),
      "some-model/config.json:1:16: model_type: unknown model_type 'lama'\n"
      "  hint: did you mean 'llama'? (known: bert, deepseek_v2, deepseek_v3, falcon_mamba, gpt2, gpt_neox, "
      "jamba, llama, mamba, mamba2, mistral, mixtral, mt5, nemotron_h, qwen2, qwen2_moe, qwen3, qwen3_moe, "
      "t5, "
      "vit)");
  EXPECT_THAT(error_in_config(R"({"model_type": "gpt_oss"})"),
              testing::HasSubstr("\n  hint: by name there are gpt-oss-120b, gpt-oss-20b (known: bert,"));
  EXPECT_THAT(error_in_config(R"({"model_type": "phi3"})"),
              testing::HasSubstr("\n  hint: by name there is phi-3-mini (known: bert,"));
  for (const char* const other : {R"({"model_type": "falcon"})", R"({"model_type": "phi"})"})
    EXPECT_THAT(error_in_config(other), testing::HasSubstr("\n  hint: known: bert,"));
  EXPECT_EQ(error_in_config(replaced("\"hidden_size\": 4096", "\"hidden_size\": null")),
            "some-model/config.json:5:18: hidden_size: is null\n"
            "  hint: give a number, or leave the key out for 4096");
  EXPECT_EQ(error_in_config("[1]"),
            "some-model/config.json:1:1: holds a list, not a Hugging Face configuration\n"
            "  hint: a model in JSON is the config.json of a Hugging Face model");
  EXPECT_EQ(error_in_config(replaced("\"num_hidden_layers\": 32", "\"num_hidden_layers\": -1")),
            "some-model/config.json:9:24: num_hidden_layers: -1 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(error_in_config(replaced("\"num_hidden_layers\": 32", "\"num_hidden_layers\": [32]")),
            "some-model/config.json:9:24: num_hidden_layers: expected a single value");
  EXPECT_EQ(error_in_config(replaced("heads\": 32", "heads\": 33")),
            "some-model/config.json:10:26: num_key_value_heads: kv_heads 8 does not divide heads 33\n"
            "  hint: nearest legal: 3 or 11");
  EXPECT_EQ(error_in_config(replaced("silu", "mish")),
            "some-model/config.json:4:17: hidden_act: the activation 'mish' is not modelled\n  hint: known: "
            "silu, gelu");
  EXPECT_EQ(error_in_config(text.substr(0, 100)),
            "some-model/config.json:5:5: not valid JSON: illegal EOF in scalar");
}

TEST(Huggingface, SurvivesDamage) {
  // Few layers: where damage leaves a model, it is built.
  std::string text = kMistral;
  const std::string layers = "layers\": 32";
  text.replace(text.find(layers), layers.size(), "layers\": 2");
  int models = 0, errors = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      read_config(damaged);
      ++models;
    } catch (const Error&) {
      ++errors;
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    for (const char c : {'9', '-', '"', '}', '\0', '\xFF'}) {
      damaged[i] = c;
      attempt(damaged);
    }
    attempt(text.substr(0, i));
  }
  EXPECT_GT(models, 0);
  EXPECT_GT(errors, static_cast<int>(text.size()));
}

}  // namespace
}  // namespace armilla
