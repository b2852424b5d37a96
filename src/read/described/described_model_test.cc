#include "read/described/described_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error_testing.h"
#include "base/source_path_testing.h"
#include "zoo/embedded.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

std::int64_t parameters_of(const std::string& name) {
  return totals(read_model(name, {})).parameters;
}

// 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)) of Narayanan et al. 2021, equation 2, which leaves out the
// final layer norm's 2 h.
std::int64_t gpt_parameters(std::int64_t l, std::int64_t h, std::int64_t v, std::int64_t s) {
  return 12 * l * h * h + 13 * l * h + (v + s) * h + 2 * h;
}

const Operator& find(const Model& model, const std::string& name) {
  const auto found = std::find_if(model.operators.begin(), model.operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  if (found == model.operators.end()) throw Error(name, "is not there");
  return *found;
}

// The element counts of safetensors' metadata on Hugging Face (model pages, "Model size"), equal to what
// transformers 4.57 counts for the configuration.
TEST(DescribedModel, HasThePublishedNumberOfParameters) {
  struct Published {
    const char* name;
    std::int64_t parameters;
  };
  for (const Published& model : {
           Published{"gpt2-345m", 354'823'168},
           Published{"t5-large", 737'668'096},
           Published{"llama2-7b", 6'738'415'616},
           Published{"llama2-13b", 13'015'864'320},
           Published{"llama2-70b", 68'976'648'192},
           Published{"llama3-8b", 8'030'261'248},
           Published{"llama3-70b", 70'553'706'496},
           Published{"llama3-405b", 405'853'388'800},
           Published{"mixtral-8x7b", 46'702'792'704},
           Published{"gpt2-124m", 124'439'808},
           Published{"gpt2-774m", 774'030'080},
           Published{"gpt2-1.5b", 1'557'611'200},
           Published{"gpt-neox-20b", 20'554'567'680},
           Published{"opt-6.7b", 6'658'473'984},
           Published{"opt-13b", 12'853'473'280},
           Published{"opt-30b", 29'974'540'288},
           Published{"llama-33b", 32'528'943'616},
           Published{"llama-65b", 65'285'660'672},
           Published{"llama3.2-1b", 1'235'814'400},
           Published{"llama3.2-3b", 3'212'749'824},
           Published{"mistral-7b", 7'241'732'096},
           Published{"qwen2.5-0.5b", 494'032'768},
           Published{"qwen2.5-1.5b", 1'543'714'304},
           Published{"qwen2.5-3b", 3'085'938'688},
           Published{"qwen2.5-7b", 7'615'616'512},
           Published{"qwen2.5-14b", 14'770'033'664},
           Published{"qwen2.5-32b", 32'763'876'352},
           Published{"qwen2.5-72b", 72'706'203'648},
           Published{"qwen3-0.6b", 596'049'920},
           Published{"qwen3-1.7b", 1'720'574'976},
           Published{"qwen3-4b", 4'022'468'096},
           Published{"qwen3-8b", 8'190'735'360},
           Published{"qwen3-14b", 14'768'307'200},
           Published{"qwen3-32b", 32'762'123'264},
           Published{"gemma-2b", 2'506'172'416},
           Published{"gemma-7b", 8'537'680'896},
           Published{"phi-3-mini", 3'821'079'552},
           Published{"mixtral-8x22b", 140'620'634'112},
           Published{"deepseek-v2-lite", 15'706'484'224},
           Published{"t5-small", 60'506'624},
           Published{"t5-base", 222'903'552},
           Published{"t5-3b", 2'851'598'336},
           Published{"t5-11b", 11'307'321'344},
           Published{"qwen3-235b-a22b", 235'093'634'560},
           Published{"qwen3-30b-a3b", 30'532'122'624},
           // torchvision's vit_l_16 and vit_h_14: num_params.
           Published{"vit-l-16", 304'326'632},
           Published{"vit-h-14", 632'045'800},
       }) {
    EXPECT_EQ(parameters_of(model.name), model.parameters) << model.name;
  }
  // Less what every layer has beside: a sink of every head.
  EXPECT_EQ(parameters_of("gpt-oss-120b"), 116'829'156'672 - 36 * 64);
  // With the router biases of 58 layers, which are parameters in DeepSeek's own modelling code.
  EXPECT_EQ(parameters_of("deepseek-v3"), 671'026'404'352 + 58 * 256);
  // Its model.py's layers, with one pair of norms instead of two.
  EXPECT_EQ(parameters_of("grok-1"), std::int64_t{64} * (std::int64_t{8} * 3 * 6144 * 32768 +
                                                         2 * 6144 * 128 * (48 + 8) + 8 * 6144 + 2 * 6144) +
                                         std::int64_t{131072} * 6144 + 6144);
  // Table 1 of PaLM gives 540.35 billion.
  EXPECT_EQ((parameters_of("palm-540b") + 50'000'000) / 100'000'000, 5404);
}

TEST(DescribedModel, WindowsAreOfEachSoManiethLayer) {
  const Model model = read_model("gpt-oss-120b", {});
  const auto keys = [&](int layer) {
    return find(model, fmt::format("layers.{}.attention.core", layer)).forward.gemms[0].n;
  };
  EXPECT_EQ(keys(0), 128 - 128 * 127 / 2 / 4096);
  EXPECT_EQ(keys(1), 4097 / 2);
  EXPECT_EQ(keys(34), keys(0));
  EXPECT_EQ(keys(35), keys(1));
}

TEST(DescribedModel, WindowsOfSomeLayersNeedAWindow) {
  const auto error = [](const std::string& more) {
    return error_of([&] {
      read_described_yaml("hidden: 64\nheads: 4\nvocabulary: 128\nsequence: 64\nwindow_every: 2\n" + more,
                          "m", {});
    });
  };
  EXPECT_EQ(error("family: gpt\nlayers: 2\n"),
            "m:5:15: window_every: there is no window that some layers have\n  hint: give window");
  EXPECT_EQ(error("family: hybrid\npattern: '*'\nwindow: 8\n"),
            "m:5:15: window_every: every attention layer of a hybrid has the window\n"
            "  hint: leave window_every out");
}

TEST(DescribedModel, NotesWhatIsLegalAndOdd) {
  const auto notes = [](const std::string& more, std::int64_t sequence = 0) {
    ModelOptions options;
    options.sequence = sequence;
    return read_described_yaml("hidden: 64\nvocabulary: 128\nsequence: 64\nheads: 4\n" + more, "m", options)
        .notes;
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(notes("family: llama\nlayers: 2\nfeed_forward: 128\nwindow: 64\n"), Notes{});
  EXPECT_EQ(notes("family: llama\nlayers: 2\nfeed_forward: 128\nwindow: 65\n"),
            Notes{"window 65 is longer than the sequence of 64: no layer is the cheaper for it"});
  EXPECT_EQ(notes("family: llama\nlayers: 2\nfeed_forward: 128\nwindow: 64\n", 32).size(), 1U);
  EXPECT_EQ(notes("family: llama\nlayers: 2\nfeed_forward: 128\nwindow: 65\n", 128), Notes{});
  EXPECT_EQ(
      notes("family: mixtral\nlayers: 2\nexperts: {count: 4, active: 2, feed_forward: 32, latent: 65}\n"),
      Notes{"experts.latent 65 is wider than hidden 64"});
  EXPECT_EQ(notes("family: llama\nlayers: 2\nfeed_forward: 128\nlatent_attention: {query_rank: 65, "
                  "key_value_rank: 66, "
                  "rope_head_dim: 2, nope_head_dim: 2, value_head_dim: 2}\n"),
            (Notes{"latent_attention.query_rank 65 is wider than hidden 64",
                   "latent_attention.key_value_rank 66 is wider than hidden 64"}));
}

// Clamps before the activation, biases behind the second product, both of the experts' tokens.
TEST(DescribedModel, ExpertsOfGptOssHaveClampsAndBiases) {
  const Model model = read_model("gpt-oss-20b", {});
  const Operator& clamp = find(model, "layers.3.mlp.experts.activation.clamp");
  EXPECT_TRUE(clamp.expert);
  EXPECT_EQ(model.tensors[clamp.outputs[0]].shape, (Shape{4096 * 4, 2 * 2880}));
  EXPECT_EQ(find(model, "layers.3.mlp.experts.activation").inputs, clamp.outputs);
  const Operator& bias = find(model, "layers.3.mlp.experts.bias_add");
  EXPECT_TRUE(bias.expert);
  EXPECT_EQ(model.parameters[bias.parameters[0]].shape, (Shape{32, 2880}));
  EXPECT_EQ(find(model, "layers.3.mlp.experts.gate_up").parameters.size(), 2U);
}

// NVIDIA's white paper of Nemotron 3, section on LatentMoE: what is sent and computed has the latent width.
TEST(DescribedModel, LatentExpertsSeeAProjection) {
  const Model model = read_model("nemotron-3-super", {});
  constexpr std::int64_t kTokens = 8192, kRows = kTokens * 22;
  EXPECT_EQ(model.tensors[find(model, "layers.1.mlp.dispatch").outputs[0]].shape, (Shape{kRows, 1024}));
  EXPECT_EQ(find(model, "layers.1.mlp.latent_down").forward.gemms,
            (std::vector<Gemm>{{kTokens, 1024, 4096, 1, true}}));
  EXPECT_EQ(find(model, "layers.1.mlp.latent_up").forward.gemms,
            (std::vector<Gemm>{{kTokens, 4096, 1024, 1, true}}));
  EXPECT_EQ(find(model, "layers.1.mlp.experts.fc1").forward.gemms,
            (std::vector<Gemm>{{kRows / 512, 2688, 1024, 512, true}}));
  EXPECT_EQ(find(model, "layers.1.mlp.router").forward.gemms[0].k, 4096);
}

TEST(DescribedModel, HasTheParametersOfThePapersFormula) {
  struct Size {
    const char* name;
    std::int64_t layers, hidden;
  };
  for (const Size size :
       {Size{"gpt3-175b", 96, 12288}, Size{"megatron-1.7b", 24, 2304}, Size{"megatron-3.6b", 30, 3072},
        Size{"megatron-7.5b", 36, 4096}, Size{"megatron-18b", 40, 6144}, Size{"megatron-39b", 48, 8192},
        Size{"megatron-76b", 60, 10240}, Size{"megatron-145b", 80, 12288}, Size{"megatron-310b", 96, 16384},
        Size{"megatron-530b", 105, 20480}, Size{"megatron-1t", 128, 25600}}) {
    EXPECT_EQ(parameters_of(size.name), gpt_parameters(size.layers, size.hidden, 51200, 2048)) << size.name;
  }
  // Table 1 of the paper gives billions: 1.7, 39.1, 1008.0.
  EXPECT_EQ((parameters_of("megatron-1.7b") + 50'000'000) / 100'000'000, 17);
  EXPECT_EQ((parameters_of("megatron-39b") + 50'000'000) / 100'000'000, 391);
  EXPECT_EQ((parameters_of("megatron-1t") + 50'000'000) / 100'000'000, 10080);
}

TEST(DescribedModel, BertHasEncoderAndPretrainingHeads) {
  const std::int64_t h = 1024, v = 30522;
  const std::int64_t embedding = (v + 512 + 2) * h + 2 * h;
  const std::int64_t layer = 4 * (h * h + h) + 2 * 2 * h + 4 * h * h + 4 * h + 4 * h * h + h;
  const std::int64_t pooler = h * h + h, words = h * h + h + 2 * h + v, next_sentence = 2 * h + 2;
  EXPECT_EQ(parameters_of("bert-exlarge"), embedding + 48 * layer + pooler + words + next_sentence);
  // Without heads and of 24 layers it is the ONNX model of the zoo.
  EXPECT_EQ(parameters_of("bert-large"), embedding + 24 * layer + pooler);
}

TEST(DescribedModel, DlrmHasTablesAndMlps) {
  // 187,767,399 rows; MLPs 13-512-256-128 and 479-1024-1024-512-256-1.
  const std::int64_t bottom = 13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128;
  const std::int64_t top =
      479 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1;
  EXPECT_EQ(parameters_of("dlrm"), 187'767'399LL * 128 + bottom + top);
  const Model model = read_model("dlrm", {});
  EXPECT_TRUE(find(model, "embedding.tables").expert);
  EXPECT_EQ(find(model, "embedding.tables").updates, 128);  // a row of every table
  EXPECT_EQ(find(model, "embedding.combine").exchange, Exchange::combine);
  EXPECT_EQ(find(model, "head.interaction").forward.gemms, (std::vector<Gemm>{{27, 27, 128, 1, false}}));
  EXPECT_EQ(model.facts.sequence, 0);
}

TEST(DescribedModel, PredictionOfFurtherTokensSharesTableAndHead) {
  // A layer with experts, the projection of hidden state and embedding, and three norms: what
  // README_WEIGHTS.md of DeepSeek-V3 lists.
  const std::int64_t h = 7168;
  const std::int64_t attention =
      h * 1536 + 1536 + 1536 * 128 * 192 + h * 576 + 512 + 512 * 128 * 256 + 128 * 128 * h;
  const std::int64_t experts = 257 * 3 * h * 2048 + 256 * h + 256;
  EXPECT_EQ(parameters_of("deepseek-v3-mtp") - parameters_of("deepseek-v3"),
            attention + experts + 2 * h + 2 * h * h + 3 * h);
  const Model model = read_model("deepseek-v3-mtp", {});
  EXPECT_EQ(find(model, "mtp.0.logits").parameters, find(model, "head.logits").parameters);
  EXPECT_EQ(find(model, "mtp.0.tokens").parameters, find(model, "embedding.tokens").parameters);
  EXPECT_EQ(model.outputs.size(), 2U);
}

// Two predictions of one set of weights are as many weights as one, and as much work as two.
TEST(DescribedModel, PredictionsMayShareTheirWeights) {
  const auto with = [](const std::string& predictions) {
    return read_described_yaml(
        "family: mixtral\nlayers: 2\nhidden: 64\nheads: 4\nkv_heads: 4\nvocabulary: 128\nsequence: 32\n"
        "experts: {count: 4, active: 2, feed_forward: 96}\n" +
            predictions,
        "m", ModelOptions());
  };
  const Model one = with("multi_token_prediction: 1\n"), two = with("multi_token_prediction: 2\n");
  const Model shared = with("multi_token_prediction: 2\nrepeated_prediction: true\n");
  EXPECT_EQ(totals(shared).parameters, totals(one).parameters);
  EXPECT_EQ(totals(shared).forward_flops, totals(two).forward_flops);
  EXPECT_GT(totals(two).parameters, totals(one).parameters);
  EXPECT_EQ(find(shared, "mtp.1.mlp.experts.down").parameters,
            find(shared, "mtp.0.mlp.experts.down").parameters);
  EXPECT_EQ(error_of([&] { with("repeated_prediction: true\n"); }),
            "m:9:22: repeated_prediction: there are no layers of prediction\n"
            "  hint: give multi_token_prediction, how many there are");
}

TEST(DescribedModel, BlocksPartitionTheOperatorsAndEqualOnesShareAShape) {
  for (const ZooModel& zoo : zoo_models()) {
    const std::string name(zoo.name);
    if (!is_described(name)) continue;
    const Model model = read_model(name, {});
    std::uint32_t next = 0;
    std::set<std::string> names;
    for (const Block& block : model.blocks) {
      EXPECT_EQ(block.first, next) << name;
      EXPECT_LT(block.first, block.end) << name;
      next = block.end;
      for (std::uint32_t i = block.first; i < block.end; ++i) {
        EXPECT_TRUE(model.operators[i].name.starts_with(block.name + ".")) << model.operators[i].name;
        EXPECT_TRUE(names.insert(model.operators[i].name).second) << model.operators[i].name;
      }
    }
    EXPECT_EQ(next, model.operators.size()) << name;
    for (const Block& a : model.blocks) {
      const Block& b = *std::find_if(model.blocks.begin(), model.blocks.end(),
                                     [&](const Block& other) { return other.shape == a.shape; });
      ASSERT_EQ(a.end - a.first, b.end - b.first) << name;
      for (std::uint32_t i = 0; i < a.end - a.first; ++i)
        EXPECT_EQ(model.operators[a.first + i].forward, model.operators[b.first + i].forward) << name;
    }
    EXPECT_FALSE(model.facts.family.empty());
    EXPECT_EQ(model.blocks.front().kind, BlockKind::embedding);
    EXPECT_EQ(model.blocks.back().kind, BlockKind::head);
  }
}

TEST(DescribedModel, LayersFollowTheWeights) {
  const Model model = read_model("llama3-8b", {});
  EXPECT_EQ(model.blocks.size(), 34U);
  ASSERT_EQ(model.layers.size(), 32U * 5 + 1);  // q, kv, output, gate_up, down; logits
  EXPECT_EQ(model.layers[0].name, "layers.0.attention.q");
  EXPECT_EQ(model.layers[5].name, "layers.1.attention.q");
  EXPECT_EQ(model.layers.back().name, "head.logits");
}

TEST(DescribedModel, IsAnnotatedForParallelism) {
  const Model model = read_model("llama3-70b", {});
  const auto split = [&](const char* name) { return find(model, name).split; };
  EXPECT_EQ(split("embedding.tokens"), Split::vocabulary);
  EXPECT_EQ(split("layers.7.attention.norm"), Split::tokens);
  EXPECT_EQ(split("layers.7.attention.q"), Split::column);
  EXPECT_EQ(split("layers.7.attention.rotary"), Split::heads);
  EXPECT_EQ(split("layers.7.attention.core"), Split::heads);
  EXPECT_EQ(split("layers.7.attention.output"), Split::row);
  EXPECT_EQ(split("layers.7.attention.add"), Split::tokens);
  EXPECT_EQ(split("layers.7.mlp.gate_up"), Split::column);
  EXPECT_EQ(split("layers.7.mlp.activation"), Split::features);
  EXPECT_EQ(split("layers.7.mlp.down"), Split::row);
  EXPECT_EQ(split("head.logits"), Split::column);
  EXPECT_EQ(split("head.loss"), Split::vocabulary);
  EXPECT_EQ(find(model, "layers.7.attention.q").ways, 64);
  EXPECT_EQ(find(model, "layers.7.attention.kv").ways, 8);
  EXPECT_TRUE(find(model, "layers.7.attention.core").core_attention);
  EXPECT_EQ(find(model, "layers.7.attention.core").repeated_forward, 0.5);
  EXPECT_FALSE(find(model, "embedding.tokens").needs_input_gradient);

  const Model experts = read_model("mixtral-8x7b", {});
  EXPECT_EQ(find(experts, "layers.0.mlp.dispatch").exchange, Exchange::dispatch);
  EXPECT_EQ(find(experts, "layers.0.mlp.combine").exchange, Exchange::combine);
  for (const char* name :
       {"layers.0.mlp.experts.gate_up", "layers.0.mlp.experts.activation", "layers.0.mlp.experts.down"})
    EXPECT_TRUE(find(experts, name).expert) << name;
  EXPECT_FALSE(find(experts, "layers.0.mlp.router").expert);
  EXPECT_EQ(find(experts, "layers.0.mlp.experts.down").forward.gemms,
            (std::vector<Gemm>{{4096 * 2 / 8, 4096, 14336, 8, true}}));
}

TEST(DescribedModel, TiedEmbeddingIsOneParameter) {
  const Model tied = read_model("gpt3-175b", {});
  EXPECT_EQ(find(tied, "embedding.tokens").parameters, find(tied, "head.logits").parameters);
  const Model own = read_model("llama3-8b", {});
  EXPECT_NE(find(own, "embedding.tokens").parameters, find(own, "head.logits").parameters);
}

TEST(DescribedModel, EveryLayerOfT5SharesItsStacksPositionTable) {
  const Model model = read_model("t5-large", {});
  EXPECT_EQ(find(model, "encoder.0.attention.position_bias").parameters,
            find(model, "encoder.23.attention.position_bias").parameters);
  EXPECT_NE(find(model, "encoder.0.attention.position_bias").parameters,
            find(model, "decoder.0.attention.position_bias").parameters);
  const Operator& cross = find(model, "decoder.5.cross_attention.kv");
  EXPECT_EQ(model.tensors[cross.inputs[0]].shape, (Shape{1, 512, 1024}));
  EXPECT_EQ(model.facts.layers, 48);
}

TEST(DescribedModel, TakesBatchAndSequence) {
  ModelOptions options;
  options.batch = 3;
  options.sequence = 100;
  const Model model = read_model("llama3-8b", options);
  EXPECT_EQ(model.batch, 3);
  EXPECT_EQ(model.facts.sequence, 100);
  EXPECT_EQ(model.tensors[model.inputs[0]].shape, (Shape{3, 100}));
  EXPECT_EQ(find(model, "layers.0.mlp.down").forward.gemms, (std::vector<Gemm>{{300, 4096, 14336, 1, true}}));
  const Model t5 = read_model("t5-large", options);  // 512 and 128 as described
  EXPECT_EQ(t5.tensors[t5.inputs[1]].shape, (Shape{3, 25}));
}

TEST(DescribedModel, RefusesOptionsThatDoNotSuit) {
  const auto error = [](const std::string& name, const ModelOptions& options) {
    return error_of([&] { read_model(name, options); });
  };
  ModelOptions longer;
  longer.sequence = 4096;
  EXPECT_EQ(error("gpt3-175b", longer),
            "a sequence of 4096: is longer than the 2048 learned positions of gpt3-175b\n"
            "  hint: use at most 2048, or a description with more max_positions");
  EXPECT_EQ(error("vit-l-16", longer),
            "a sequence of 4096: the sequence of vit-l-16 follows from image 224 and patch 16: 197\n"
            "  hint: leave model.sequence out");
  EXPECT_EQ(error("dlrm", longer),
            "a sequence of 4096: the model dlrm has no sequence\n  hint: leave model.sequence out");
  EXPECT_EQ(
      error("resnet18", longer),
      "a sequence of 4096: resnet18 has no symbolic dimension called sequence\n"
      "  hint: leave model.sequence out: a sequence, if it has one, is fixed in the file or has another "
      "name, which --dim NAME=SIZE sets");
  ModelOptions named;
  named.dimensions["sequence"] = 128;
  EXPECT_EQ(error("llama3-8b", named),
            "--dim sequence=128: a model by description has no symbolic dimensions\n"
            "  hint: leave --dim out; batch and sequence have options of their own");
  ModelOptions none;
  none.batch = 0;
  EXPECT_EQ(error("llama3-8b", none), "--batch 0: a batch must be at least 1");
  for (const std::int64_t batch : {std::int64_t{1} << 31, std::int64_t{1} << 62, INT64_MAX}) {
    ModelOptions huge;
    huge.batch = batch;
    huge.sequence = INT32_MAX;
    for (const char* name : {"llama3-8b", "deepseek-v3-mtp", "t5-large"})
      EXPECT_NE(error(name, huge), "no error") << name << " " << batch;
  }
}

TEST(DescribedModel, IsToldFromGraphsByName) {
  EXPECT_TRUE(is_described("megatron-1.7b"));
  EXPECT_FALSE(is_described("bert-large"));
  EXPECT_TRUE(is_described(source_path("models/llama2-7b.yaml")));
  EXPECT_EQ(error_of([] { is_described("megatron-1.8b"); }),
            "megatron-1.8b: is neither a file nor a model of the zoo\n  hint: did you mean 'megatron-1.7b'?");
}

TEST(Zoo, DescriptionsNameThemselvesAndTheirSources) {
  for (const ZooModel& zoo : zoo_models()) {
    if (!zoo.file.ends_with(".yaml")) continue;
    const auto file = find_embedded(zoo.file);
    ASSERT_TRUE(file) << zoo.file;
    const ModelDescription d = read_model_description(
        Config::parse({file->bytes.data(), file->bytes.size()}, std::string(zoo.file)));
    EXPECT_EQ(d.name, zoo.name);
    EXPECT_EQ(d.description, zoo.description);
    EXPECT_FALSE(d.source.empty()) << zoo.file;
  }
}

}  // namespace
}  // namespace armilla
