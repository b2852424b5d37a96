// State-space models and hybrids, and adapters, against published counts and the papers' formulas.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error_testing.h"
#include "read/described/huggingface/huggingface.h"
#include "read/read.h"

namespace armilla {
namespace {

Model zoo_model(const std::string& name, std::int64_t lora_rank = 0) {
  ModelSource source;
  source.name = name;
  source.lora_rank = lora_rank;
  return read_model(source, 1);
}

std::int64_t count_parameters(const Model& model) {
  return totals(model).parameters;
}

const Operator& operator_named(const Model& model, const std::string& name) {
  const auto found = std::find_if(model.operators.begin(), model.operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  if (found == model.operators.end()) throw Error(name, "is not there");
  return *found;
}

// Hugging Face's model pages: "Model size", safetensors' metadata.
TEST(StateSpace, ModelsHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(zoo_model("mamba-2.8b")), 2'768'345'600);
  EXPECT_EQ(count_parameters(zoo_model("mamba2-2.7b")), 2'702'599'680);
  EXPECT_EQ(count_parameters(zoo_model("jamba-v0.1")), 51'570'323'328);
  EXPECT_EQ(count_parameters(zoo_model("deepseek-v2")), 235'741'434'880);
  // "31.6B" and "56B" are all that is printed.
  EXPECT_NEAR(static_cast<double>(count_parameters(zoo_model("nemotron-3-nano"))), 31.6e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(count_parameters(zoo_model("nemotron-h-56b"))), 56e9, 0.5e9);
  // "120.6B" and "550B" without their prediction layers, one set of weights of 3 and 10.9 billion.
  EXPECT_NEAR(static_cast<double>(count_parameters(zoo_model("nemotron-3-super"))), 120.6e9 + 2.95e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(count_parameters(zoo_model("nemotron-3-ultra"))), 550e9 + 10.9e9, 0.5e9);
}

TEST(StateSpace, ConfigurationsAreReadAsTheModelsOfTheZoo) {
  const auto count = [](const std::string& text) {
    return count_parameters(read_huggingface_json(text, "some-model/config.json", {}));
  };
  EXPECT_EQ(
      count(R"({"model_type": "mamba", "hidden_size": 2560, "num_hidden_layers": 64, "vocab_size": 50280,
                      "state_size": 16, "time_step_rank": 160, "intermediate_size": 5120, "expand": 2})"),
      2'768'345'600);
  // Falcon-Mamba 7B
  EXPECT_EQ(count(R"({"model_type": "falcon_mamba", "hidden_size": 4096, "num_hidden_layers": 64,
                      "vocab_size": 65024, "state_size": 16, "time_step_rank": 256, "intermediate_size": 8192,
                      "tie_word_embeddings": false})"),
            7'272'665'088);
  EXPECT_EQ(count(R"({"model_type": "mamba2", "hidden_size": 2560, "num_hidden_layers": 64, "num_heads": 80,
                      "n_groups": 1, "vocab_size": 50288, "tie_word_embeddings": true})"),
            2'702'599'680);
  EXPECT_EQ(count(R"({"model_type": "jamba"})"), 51'570'323'328);
  EXPECT_EQ(count(R"({"model_type": "nemotron_h", "hidden_size": 2688, "num_hidden_layers": 52,
                      "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
                      "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
                      "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
                      "n_routed_experts": 128, "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
                      "moe_shared_expert_intermediate_size": 3712, "n_shared_experts": 1,
                      "vocab_size": 131072, "mlp_hidden_act": "relu2"})"),
            count_parameters(zoo_model("nemotron-3-nano")));
}

// Dao and Gu 2024, section 6: in chunks of Q tokens, B C^T of each group Q^2 N, its product with X of each
// head Q^2 P, states and their use Q N P each.
TEST(StateSpace, AChunkedScanIsFourProducts) {
  const Model model = zoo_model("mamba2-2.7b");
  const Operator& scan = operator_named(model, "layers.0.ssm.scan");
  constexpr std::int64_t kChunk = 256, kChunks = 2048 / kChunk, kState = 128, kWidth = 64, kHeads = 80;
  const std::int64_t macs = kChunks * (kChunk * kChunk * kState +
                                       kHeads * (kChunk * kChunk * kWidth + 2 * kChunk * kState * kWidth));
  EXPECT_EQ(scan.forward.flops, Flops(2 * macs));
  EXPECT_EQ(scan.forward.kind, WorkKind::matrix);
}

// mamba_ssm counts 9 operations per element of the states; they never reach memory.
TEST(StateSpace, ASelectiveScanKeepsNoStates) {
  const Model model = zoo_model("mamba-2.8b");
  const Operator& scan = operator_named(model, "layers.0.ssm.scan");
  constexpr std::int64_t kTokens = 2048, kInner = 5120, kState = 16;
  EXPECT_EQ(scan.forward.flops, Flops(9 * kTokens * kInner * kState));
  EXPECT_LT(scan.forward.bytes, Bytes(2 * kTokens * kInner * kState));
}

TEST(StateSpace, PatternsAreChecked) {
  const auto error = [](const std::string& more) {
    return error_of([&] {
      read_described_yaml("family: hybrid\nhidden: 64\nvocabulary: 128\nsequence: 64\n" + more, "m", {});
    });
  };
  EXPECT_EQ(
      error("pattern: MX\n"),
      "m:5:10: pattern: unknown letter 'X'\n  hint: known: M state space, * attention, - MLP, E experts");
  EXPECT_EQ(error("pattern: M\n"),
            "m:5:10: pattern: 'M' stands for layers that need state_space\n  hint: give state_space");
  EXPECT_EQ(error("pattern: M\nstate_space: {inner: 128, state: 16, heads: 3}\n"),
            "m:6:45: state_space.heads: state_space.heads 3 does not divide state_space.inner 128\n"
            "  hint: nearest legal: 2 or 4");
  // What predicts further tokens is a layer of attention and one of experts or an MLP.
  const std::string state_space =
      "state_space: {inner: 128, state: 16, heads: 4}\nmulti_token_prediction: 1\n";
  EXPECT_EQ(error("pattern: M\n" + state_space),
            "m:7:25: multi_token_prediction: layers of prediction need attention\n  hint: give heads");
  EXPECT_EQ(error("pattern: M\nheads: 4\n" + state_space),
            "m:8:25: multi_token_prediction: layers of prediction need an MLP\n  hint: give feed_forward");
  EXPECT_EQ(error("pattern: M\nheads: 4\nfeed_forward: 96\n" + state_space), "no error");
}

TEST(StateSpace, PredictsLikewiseWithFewerLayers) {
  for (const std::int64_t layers : {1, 3, 8}) {
    ModelOptions options;
    options.layers = layers;
    const Model model = read_model("nemotron-3-super", options);
    EXPECT_GT(
        std::ranges::count_if(model.operators,
                              [](const Operator& op) { return op.name.starts_with("mtp.0.mlp.experts"); }),
        0)
        << layers;
  }
}

// PEFT's print_trainable_parameters of Llama 3 8B, rank 16, all linear layers.
TEST(Adapters, AreAllThatIsTrained) {
  const Model model = zoo_model("llama3-8b", 16);
  EXPECT_EQ(count_parameters(model), 41'943'040);
  std::int64_t frozen = 0;
  for (const Parameter& parameter : model.parameters) frozen += parameter.frozen ? parameter.elements : 0;
  EXPECT_EQ(frozen, 8'030'261'248);
  const Operator& base = operator_named(model, "layers.0.mlp.down");
  EXPECT_EQ(base.saves, Saves::nothing);
  const Operator& up = operator_named(model, "layers.0.mlp.gate_up.lora_b");
  EXPECT_EQ(up.forward.flops, Flops(std::int64_t{2} * 8192 * 16 * 2 * 14336));
}

TEST(Adapters, StandBesideTheProjectionsThatAreNamed) {
  const auto described = [](const std::string& targets) {
    ModelSource source;
    source.name = "m";
    source.text =
        "name: m\nfamily: llama\nlayers: 2\nhidden: 64\nheads: 4\nfeed_forward: 128\nvocabulary: 100\n"
        "sequence: 16\nadapters: {rank: 2, targets: " +
        targets + "}\n";
    return read_model(source, 1);
  };
  EXPECT_EQ(count_parameters(described("[qkv]")), 2 * 3 * 2 * (64 + 64));
  EXPECT_EQ(count_parameters(described("[output, down]")), 2 * (2 * (64 + 64) + 2 * (128 + 64)));
  const Model model = described("[qkv]");
  EXPECT_EQ(operator_named(model, "layers.0.mlp.down").saves, Saves::nothing) << "frozen all the same";
  EXPECT_EQ(error_of([&] { described("[q_proj]"); }),
            "m:9:30: adapters.targets: the model m has no projection called 'q_proj'\n"
            "  hint: it has down, gate_up, output, qkv");
  EXPECT_EQ(error_of([&] { described("[]"); }),
            "m:9:30: adapters.targets: names no projection\n"
            "  hint: leave it out: every projection has an adapter then");
}

TEST(Adapters, BelongToDescriptions) {
  ModelSource source;
  source.name = "resnet50";
  source.lora_rank = 8;
  EXPECT_EQ(
      error_of([&] { read_model(source, 1); }),
      "resnet50: is a graph, which can have no adapters (model.lora_rank 8)\n  hint: leave model.lora_rank "
      "out, or take a model by description");
}

}  // namespace
}  // namespace armilla
