// Arithmetic and traffic of described models against closed formulas that are derived here on their own.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "ir/derived/backward.h"
#include "read/described/described_model.h"

namespace armilla {
namespace {

using Count = std::int64_t;

Model read_description(const std::string& name, Count batch) {
  ModelOptions options;
  options.batch = batch;
  return read_model(name, options);
}

Model from_yaml(const std::string& text, Count batch) {
  ModelOptions options;
  options.batch = batch;
  return build_described_model(read_model_description(Config::parse(text, "test.yaml")), options);
}

Count model_flops(const Operator& op) {
  return op.full_flops.value != 0 ? op.full_flops.value : op.forward.flops.value;
}

// Matrix products, forward, as papers count them.
Count model_flops(const Model& model) {
  Count sum = 0;
  for (const Operator& op : model.operators) {
    if (op.forward.kind == WorkKind::matrix) sum += model_flops(op);
  }
  return sum;
}

const Operator& operator_of(const Model& model, const std::string& name) {
  const auto found = std::find_if(model.operators.begin(), model.operators.end(),
                                  [&](const Operator& op) { return op.name == name; });
  if (found == model.operators.end()) throw Error(name, "is not there");
  return *found;
}

TEST(DescribedWork, GptIsNarayanansFormula) {
  // Narayanan et al. 2021, equation 3, without recomputation: 72 B s l h^2 (1 + s / (6 h) + V / (12 l h)) of
  // forward and backward passes, so a third of it forward.
  struct Size {
    const char* name;
    Count layers, hidden;
  };
  for (const Size size :
       {Size{"gpt3-175b", 96, 12288}, Size{"megatron-39b", 48, 8192}, Size{"megatron-1t", 128, 25600}}) {
    const Count b = 2, s = 2048, v = 51200, l = size.layers, h = size.hidden;
    EXPECT_EQ(3 * model_flops(read_description(size.name, b)),
              72 * b * s * l * h * h + 12 * b * s * s * l * h + 6 * b * s * h * v)
        << size.name;
  }
}

TEST(DescribedWork, BackwardIsTwiceForwardButForTheScoresThatFlashSkips) {
  const Model model = read_description("megatron-1.7b", 1);
  Count forward = 0, backward = 0;
  for (const Operator& op : model.operators) {
    if (op.forward.kind != WorkKind::matrix) continue;
    forward += op.forward.flops.value;
    backward += input_gradient(model, op).flops.value + weight_gradient(model, op).flops.value;
  }
  // Half of the scores under the causal mask.
  EXPECT_EQ(forward, model_flops(model) - 24 * 2 * 2048LL * 2048 * 2304);
  EXPECT_GE(backward, 2 * forward);
}

TEST(DescribedWork, LlamaIsItsClosedForm) {
  // Per token and layer: q and output 2 h^2 each, k and v 2 h h_kv each, three products of h f; scores and
  // values 4 s h; the head once.
  const Count b = 3, s = 8192, l = 80, h = 8192, kv = 8 * 128, f = 28672, v = 128256;
  const Count per_layer = 4 * h * h + 4 * h * kv + 6 * h * f + 4 * s * h;
  EXPECT_EQ(model_flops(read_description("llama3-70b", b)), b * s * (l * per_layer + 2 * h * v));
}

TEST(DescribedWork, MixtureCountsItsActiveExperts) {
  const Count s = 4096, l = 32, h = 4096, kv = 8 * 128, f = 14336, v = 32000;
  const Count per_layer = 4 * h * h + 4 * h * kv + 4 * s * h + 2 * h * 8 + 2 * 6 * h * f;
  EXPECT_EQ(model_flops(read_description("mixtral-8x7b", 1)), s * (l * per_layer + 2 * h * v));
  // Jiang et al. 2024: 13 billion parameters are active per token; the table's look-up is no product.
  const Count active =
      (model_flops(read_description("mixtral-8x7b", 1)) - s * l * 4 * s * h) / (2 * s) + v * h;
  EXPECT_EQ((active + 50'000'000) / 100'000'000, 129);
}

TEST(DescribedWork, LatentAttentionIsItsClosedForm) {
  const Count s = 4096, h = 7168, heads = 128, v = 129280;
  const Count attention =
      h * 1536 + 1536 * heads * 192 + h * (512 + 64) + 512 * heads * 256 + heads * 128 * h;
  const Count core = s * heads * (192 + 128);
  const Count dense = 3 * h * 18432, experts = h * 256 + 9 * 3 * h * 2048;
  EXPECT_EQ(model_flops(read_description("deepseek-v3", 1)),
            2 * s * (61 * (attention + core) + 3 * dense + 58 * experts + h * v));
  // README_WEIGHTS.md of DeepSeek-V3: 36.6 billion parameters are active per token, with the output matrix.
  EXPECT_EQ((61 * attention + 3 * dense + 58 * experts + h * v + 50'000'000) / 100'000'000, 366);
  EXPECT_DOUBLE_EQ(
      operator_of(read_description("deepseek-v3", 1), "layers.0.attention.core").repeated_forward, 0.6);
}

TEST(DescribedWork, T5IsItsClosedForm) {
  const Count b = 2, e = 512, t = 128, l = 24, h = 1024, f = 4096, v = 32128;
  const Count encoder = e * (8 * h * h + 4 * h * f) + 4 * e * e * h;
  const Count decoder =
      t * (8 * h * h + 4 * h * f) + 4 * t * t * h + t * 4 * h * h + e * 4 * h * h + 4 * t * e * h;
  EXPECT_EQ(model_flops(read_description("t5-large", b)), b * (l * (encoder + decoder) + t * 2 * h * v));
}

TEST(DescribedWork, VisionTransformerIsItsClosedForm) {
  // torchvision's vit_l_16: 61.55 billion multiply-accumulates.
  const Count s = 197, h = 1024, l = 24;
  const Count macs = 196 * 768 * h + l * (12 * s * h * h + 2 * s * s * h) + h * 1000;
  EXPECT_EQ(model_flops(read_description("vit-l-16", 1)), 2 * macs);
  EXPECT_EQ((macs + 5'000'000) / 10'000'000, 6155);
}

TEST(DescribedWork, BertIsItsClosedForm) {
  const Count s = 512, h = 1024, l = 48, v = 30522;
  EXPECT_EQ(model_flops(read_description("bert-exlarge", 1)),
            2 * (l * (12 * s * h * h + 2 * s * s * h) + s * h * h + s * h * v + h * h + 2 * h));
}

TEST(DescribedWork, TokensThatDoNotDivideAmongExpertsAreAllCounted) {
  const std::string text =
      "family: mixtral\nlayers: 1\nhidden: 16\nheads: 2\nvocabulary: 10\nsequence: 5\n"
      "experts: {count: 4, active: 1, feed_forward: 8}\n";
  const Model few = from_yaml(text, 1);
  EXPECT_EQ(operator_of(few, "layers.0.mlp.experts.down").forward.gemms,
            (std::vector<Gemm>{{2, 16, 8, 1, true}, {1, 16, 8, 3, true}}));
  EXPECT_EQ(operator_of(few, "layers.0.mlp.experts.down").forward.flops, Flops(2 * 5 * 16 * 8));
}

TEST(DescribedWork, WindowLimitsWhatATokenSees) {
  const std::string text =
      "family: llama\nlayers: 1\nhidden: 16\nheads: 2\nfeed_forward: 32\nvocabulary: 10\nsequence: 64\n";
  const Operator wide = operator_of(from_yaml(text, 1), "layers.0.attention.core");
  EXPECT_EQ(wide.forward.gemms, (std::vector<Gemm>{{64, 32, 8, 2, false}, {64, 8, 32, 2, false}}));
  const Operator narrow = operator_of(from_yaml(text + "window: 16\n", 1), "layers.0.attention.core");
  // 16 keys but for the first 16 tokens, which miss 120 in all.
  EXPECT_EQ(narrow.forward.gemms[0].n, 16 - 120 / 64);
  EXPECT_EQ(narrow.full_flops, Flops(2 * 2 * 2 * 64 * 16 * 8));
}

// What an operator's backward pass keeps, each tensor once, in bytes.
Count saved_bytes(const Model& model, std::uint32_t first, std::uint32_t end) {
  std::vector<bool> saved(model.tensors.size());
  for (std::uint32_t i = first; i < end; ++i) {
    const Operator& op = model.operators[i];
    if (op.saves == Saves::nothing) continue;
    for (const std::uint32_t t : op.saves == Saves::inputs ? op.inputs : op.outputs) saved[t] = true;
  }
  Count bytes = 0;
  for (std::size_t t = 0; t < saved.size(); ++t) {
    if (saved[t])
      bytes += size_of(element_count(model.tensors[t].shape, ""), model.tensors[t].dtype, "").value;
  }
  return bytes;
}

TEST(DescribedWork, ALayerSavesWhatKorthikantiCounts) {
  // Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h) bytes per layer; its input is saved by the
  // norm and its output is the next layer's. Flash attention has no scores to save: 34 s b h.
  const std::string text = "family: gpt\nlayers: 3\nhidden: 96\nheads: 4\nvocabulary: 100\nsequence: 64\n";
  const Count s = 64, b = 2, h = 96, a = 4;
  const Model flash = from_yaml(text, b), unfused = from_yaml(text + "attention: unfused\n", b);
  // The residual sum at the end is saved by its own kernel here and read by the next layer: counted once.
  const Count output = 2 * s * b * h;
  EXPECT_EQ(saved_bytes(flash, flash.blocks[2].first, flash.blocks[2].end) - output, 34 * s * b * h);
  EXPECT_EQ(saved_bytes(unfused, unfused.blocks[2].first, unfused.blocks[2].end) - output,
            34 * s * b * h + 5 * a * s * s * b);
}

TEST(DescribedWork, TrafficOfAProductIsItsOperandsOnce) {
  const Model model = read_description("llama2-7b", 1);
  const Count s = 4096, h = 4096, f = 11008;
  EXPECT_EQ(operator_of(model, "layers.0.mlp.gate_up").forward.bytes,
            Bytes(2 * (s * h + 2 * f * h + s * 2 * f)));
  EXPECT_EQ(operator_of(model, "layers.0.attention.core").forward.bytes, Bytes(2 * 4 * s * h));
  EXPECT_EQ(operator_of(model, "embedding.tokens").forward.bytes, Bytes(8 * s + 2 * 2 * s * h));
}

}  // namespace
}  // namespace armilla
