#include "read/described/model_description.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/described/described_model.h"
#include "zoo/embedded.h"

namespace armilla {
namespace {

constexpr const char* kSmallModel =
    "family: llama\nlayers: 2\nhidden: 64\nheads: 4\nfeed_forward: 128\nvocabulary: 100\nsequence: 16\n";

ModelDescription parse_description(const std::string& text) {
  return read_model_description(Config::parse(text, "m.yaml"));
}

std::string description_error(const std::string& text) {
  return error_of([&] { build_described_model(parse_description(text), {}); });
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(ModelDescription, FamiliesSetWhatIsLeftOpen) {
  const ModelDescription llama = parse_description(kSmallModel);
  EXPECT_EQ(llama.name, "m");
  EXPECT_EQ(llama.kv_heads, 4);
  EXPECT_EQ(llama.head_dim, 16);
  EXPECT_EQ(llama.norm, Norm::rmsnorm);
  EXPECT_EQ(llama.activation, Activation::swiglu);
  EXPECT_FALSE(llama.qkv_bias || llama.tied_embeddings || llama.dropout);
  const ModelDescription gpt =
      parse_description("family: gpt\nlayers: 2\nhidden: 64\nheads: 4\nvocabulary: 100\nsequence: 16\n");
  EXPECT_EQ(gpt.feed_forward, 256);
  EXPECT_EQ(gpt.max_positions, 16);
  EXPECT_TRUE(gpt.qkv_bias && gpt.tied_embeddings && gpt.dropout);
}

TEST(ModelDescription, BiasSetsAllAndEachOverrides) {
  const ModelDescription d = parse_description(std::string(kSmallModel) + "bias: true\nmlp_bias: false\n");
  EXPECT_TRUE(d.qkv_bias && d.projection_bias);
  EXPECT_FALSE(d.mlp_bias);
}

TEST(ModelDescription, ExpertsStandInSomeLayersOnly) {
  const std::string text =
      "family: mixtral\nlayers: 6\nhidden: 64\nheads: 4\nfeed_forward: 128\nvocabulary: 100\nsequence: 16\n"
      "experts: {count: 4, active: 2, feed_forward: 32, dense_first: 2, every: 2}\n";
  const Model model = build_described_model(parse_description(text), {});
  std::string kinds;
  for (const Block& block : model.blocks) kinds += static_cast<char>('a' + block.shape);
  EXPECT_EQ(kinds, "abbbcbcd");
}

TEST(ModelDescription, ExpertsMustStandSomewhere) {
  const auto refusal = [](const std::string& more) {
    return description_error(
        "family: mixtral\nlayers: 6\nhidden: 64\nheads: 4\nfeed_forward: 128\nvocabulary: 100\n"
        "sequence: 16\nexperts: {count: 4, active: 2, feed_forward: 32, " +
        more + "}\n");
  };
  const std::string hint =
      "\n  hint: give a smaller experts.every or experts.dense_first, or leave the experts out";
  EXPECT_EQ(
      refusal("every: 7"),
      "m.yaml:8:57: experts.every: experts in layers 7, 14 ... after the first 0, but there are 6 layers: "
      "none has any" +
          hint);
  EXPECT_EQ(refusal("every: 4, dense_first: 5"),
            "m.yaml:8:73: experts.dense_first: experts in layers 4, 8 ... after the first 5, but there are 6 "
            "layers: none has any" +
                hint);
  EXPECT_EQ(refusal("every: 6, dense_first: 5"), "no error");
}

TEST(ModelDescription, ASampleTooLargeIsBlamedOnBatchAndSequence) {
  ModelOptions options;
  options.batch = 2'000'000'000;
  options.sequence = 2'000'000'000;
  EXPECT_EQ(error_of([&] { build_described_model(parse_description(kSmallModel), options); }).substr(0, 80),
            "m: a micro-batch of 2,000,000,000 samples of 2,000,000,000 tokens is too much to");
}

TEST(ModelDescription, NumbersThatClashAreNamed) {
  EXPECT_EQ(description_error(replaced(kSmallModel, "heads: 4", "heads: 5")),
            "m.yaml:4:8: heads: heads 5 does not divide hidden 64\n  hint: nearest legal: 4 or 8; or give "
            "head_dim");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "kv_heads: 3\n"),
            "m.yaml:8:11: kv_heads: kv_heads 3 does not divide heads 4\n  hint: nearest legal: 2 or 4");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "kv_heads: 8\n"),
            "m.yaml:8:11: kv_heads: kv_heads 8 does not divide heads 4\n  hint: nearest legal: 4");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "head_dim: 7\n"),
            "m.yaml:8:11: head_dim: rotary positions turn pairs, but head_dim 7 is odd\n  hint: nearest "
            "legal: 6 or 8");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "positions: learned\nmax_positions: 8\n"),
            "m.yaml:7:11: sequence: sequence 16 is longer than the 8 learned positions\n"
            "  hint: shorten it, or raise max_positions");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "padded_vocabulary: 64\n"),
            "m.yaml:8:20: padded_vocabulary: padded_vocabulary 64 is smaller than vocabulary 100");
  EXPECT_EQ(
      description_error(std::string(kSmallModel) + "experts: {count: 4, active: 5, feed_forward: 32}\n"),
      "m.yaml:8:29: experts.active: 5 active experts, but there are only 4\n  hint: nearest legal: 4");
  EXPECT_EQ(
      description_error("family: vit\nlayers: 1\nhidden: 64\nheads: 4\nimage: 224\npatch: 15\nclasses: 10\n"),
      "m.yaml:6:8: patch: patch 15 does not divide image 224\n  hint: nearest legal: 14 or 16");
  EXPECT_EQ(description_error(
                "family: dlrm\ndense_features: 13\nembedding: 16\ntables: [5]\nbottom: [8]\ntop: [1]\n"),
            "m.yaml:5:9: bottom: the bottom MLP ends in 8 numbers, but it is combined with embeddings of 16\n"
            "  hint: end it in 16");
}

TEST(ModelDescription, KeysAndWordsAreChecked) {
  EXPECT_EQ(description_error("layers: 2\n"),
            "m.yaml:1:1: is not a model description: the key 'family' is missing\n"
            "  hint: docs/formats/model_description.md tells what a description holds");
  EXPECT_EQ(description_error("family: lama\n"),
            "m.yaml:1:9: family: unknown value 'lama'\n  hint: did you mean 'llama'?");
  EXPECT_EQ(description_error("family: llama\n"), "m.yaml:1:1: the key 'layers' is missing");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "headdim: 3\n"),
            "m.yaml:8:1: headdim: unknown key 'headdim'\n  hint: did you mean 'head_dim'?");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "image: 3\n").substr(0, 39),
            "m.yaml:8:1: image: unknown key 'image'\n");
  EXPECT_EQ(description_error(std::string(kSmallModel) + "qk_norm: maybe\n"),
            "m.yaml:8:10: qk_norm: expected true or false, not 'maybe'");
  EXPECT_EQ(
      description_error("family: mixtral\nlayers: 2\nhidden: 64\nheads: 4\nvocabulary: 100\nsequence: 16\n"),
      "m.yaml:1:1: the key 'experts' is missing\n  hint: a model without experts is of family llama");
  EXPECT_EQ(
      description_error("family: deepseek\nlayers: 2\nhidden: 64\nheads: 4\nvocabulary: 100\nsequence: 16\n"),
      "m.yaml:1:1: the key 'feed_forward' is missing\n"
      "  hint: it is the size of the MLP in layers without experts");
  EXPECT_EQ(description_error(std::string(kSmallModel) +
                              "kv_heads: 4\nlatent_attention: {key_value_rank: 4, rope_head_dim: 2, "
                              "nope_head_dim: 2, value_head_dim: 2}\n"),
            "m.yaml:8:11: kv_heads: 'kv_heads' means nothing beside latent_attention\n"
            "  hint: leave it out: the ranks and head sizes of latent_attention say it all");
}

TEST(ModelDescription, OddNumbersAreRefusedOrBounded) {
  EXPECT_EQ(description_error(replaced(kSmallModel, "layers: 2", "layers: 0")),
            "m.yaml:2:9: layers: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(description_error(replaced(kSmallModel, "layers: 2", "layers: 1000000000")),
            "m.yaml:2:9: layers: 1000000000 is too large\n  hint: the highest value is 10000");
  EXPECT_EQ(description_error(replaced(kSmallModel, "layers: 2", "layers: [2]")),
            "m.yaml:2:9: layers: expected a single value");
  // Each within its bounds, all together beyond any machine.
  const char* big =
      "family: llama\nlayers: 10000\nhidden: 16777216\nheads: 65536\nfeed_forward: 16777216\n"
      "vocabulary: 1099511627776\nsequence: 2147483647\n";
  EXPECT_NE(description_error(big), "no error");
  EXPECT_NE(description_error(std::string(big) +
                              "experts: {count: 65536, active: 65536, feed_forward: 16777216}\n"),
            "no error");
  const std::string tables =
      "family: dlrm\ndense_features: 13\nembedding: 16777216\nlookups: 1048576\n"
      "tables: [1099511627776, 1099511627776]\nbottom: [16777216]\ntop: [16777216, 1]\n";
  EXPECT_NE(description_error(tables), "no error");
}

// Every damaged byte leads to a model or to an Error, within bounds that the sanitizers and the test's time
// limit watch.
TEST(ModelDescription, SurvivesDamage) {
  const auto file = find_embedded("models/deepseek-v3-mtp.yaml");
  ASSERT_TRUE(file);
  std::string text(file->bytes.data(), file->bytes.size());
  text.erase(text.find("source:"), text.find("family:") - text.find("source:"));
  text = replaced(text, "layers: 61", "layers: 4");
  int models = 0, errors = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      build_described_model(parse_description(damaged), {});
      ++models;
    } catch (const Error&) {
      ++errors;
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    for (const char c : {'9', '-', '{', '\0', '\xFF'}) {
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
