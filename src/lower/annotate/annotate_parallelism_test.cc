#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lower/shard/shard_testing.h"
#include "lower/shard/small_model_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;

std::int64_t count(const Model& model, Split split) {
  return std::count_if(model.operators.begin(), model.operators.end(), [&](const Operator& op) {
    return op.split == split && op.forward.kind == WorkKind::matrix && op.weight_is_operand;
  });
}

TEST(AnnotateParallelism, BertLargeIsDividedAsMegatronDoes) {
  const Model model = zoo_model("bert-large");
  // Queries, keys, values and the first product of the MLP; the pooler has no partner.
  EXPECT_EQ(count(model, Split::column), 24 * 4 + 1);
  EXPECT_EQ(count(model, Split::row), 24 * 2);
  EXPECT_EQ(model.facts.heads, 16);
  EXPECT_EQ(model.facts.sequence, 512);
  EXPECT_EQ(model.facts.hidden, 1024);
  EXPECT_EQ(model.facts.layers, 24);
  ASSERT_EQ(model.blocks.size(), 26U);
  EXPECT_EQ(model.blocks.front().kind, BlockKind::embedding);
  EXPECT_EQ(model.blocks.back().kind, BlockKind::head);
  for (std::size_t b = 1; b <= 24; ++b) {
    EXPECT_EQ(model.blocks[b].name, fmt::format("encoder.{}", b - 1));
    EXPECT_EQ(model.blocks[b].kind, BlockKind::encoder);
    EXPECT_EQ(model.blocks[b].shape, model.blocks[1].shape);
  }
  const Operator& table = model.operators[5];
  EXPECT_EQ(table.name, "embeddings.word/Gather");
  EXPECT_EQ(table.split, Split::vocabulary);
  EXPECT_EQ(model.operators[6].split, Split::tokens);  // two segments
}

// 512 x 1024 activations in bf16.
TEST(AnnotateParallelism, BertLargeReducesTwicePerPass) {
  const ShardedModel sharded = shard_model(zoo_model("bert-large"), plan_of(4), 0, "plan");
  const BlockShape& layer = shape_named(sharded, "encoder.7");
  EXPECT_THAT(communication(sharded, layer.forward),
              ElementsAre("attention.output/MatMul: all-reduce tensor 1048576",
                          "output/MatMul: all-reduce tensor 1048576"));
  EXPECT_THAT(communication(sharded, layer.backward),
              ElementsAre("intermediate/MatMul: all-reduce tensor 1048576",
                          "attention.query/MatMul: all-reduce tensor 1048576"));
  EXPECT_EQ(layer.output, Bytes(1048576));
}

TEST(AnnotateParallelism, VisionTransformersSplitTheirFusedProjection) {
  const Model model = zoo_model("vit_b_16");
  EXPECT_EQ(count(model, Split::row), 12 * 2);
  EXPECT_EQ(count(model, Split::column), 12 * 2 + 2);  // patches and classes have no partner
  EXPECT_EQ(model.facts.heads, 12);
  EXPECT_EQ(model.facts.sequence, 197);
  ASSERT_EQ(model.blocks.size(), 14U);
  for (std::size_t b = 1; b <= 12; ++b) EXPECT_EQ(model.blocks[b].shape, model.blocks[1].shape);
  // The last norm belongs to the head.
  EXPECT_EQ(model.operators[model.blocks.back().first].type, "LayerNormalization");
}

TEST(AnnotateParallelism, ContextParallelismWorksOnRecognisedAttention) {
  const ShardedModel sharded = shard_model(zoo_model("bert-large"), plan_of(1, 2), 0, "plan");
  // Keys and values of 256 tokens x 1024 in bf16.
  EXPECT_THAT(communication(sharded, shape_named(sharded, "encoder.0").forward),
              ElementsAre("send context 1048576 +1", "receive context 1048576 -1"));
}

TEST(AnnotateParallelism, ConvolutionsAreGathered) {
  const Model model = zoo_model("vgg11");
  // The first two fully connected layers are a pair; 8 convolutions and the classifier stand alone.
  EXPECT_EQ(count(model, Split::row), 1);
  EXPECT_EQ(count(model, Split::column), 8 + 2);
  const ShardedModel sharded = shard_model(model, plan_of(2), 0, "plan");
  // 64 x 224 x 224 in bf16.
  EXPECT_THAT(communication(sharded, sharded.shapes[sharded.blocks[0].shape].forward),
              ElementsAre("features.1/Relu: all-gather tensor 6422528"));
  EXPECT_THAT(communication(sharded, sharded.shapes[sharded.blocks.back().shape].forward),
              ElementsAre("Gemm: all-gather tensor 2000"));
}

TEST(AnnotateParallelism, BlocksCoverEveryGraph) {
  for (const char* name : {"alexnet", "densenet121", "inception_v3", "mobilenet_v2", "resnet50", "squeezenet",
                           "vgg19_bn", "bert-large", "vit_b_16"}) {
    const Model model = zoo_model(name);
    ASSERT_FALSE(model.blocks.empty()) << name;
    std::uint32_t next = 0;
    for (const Block& block : model.blocks) {
      EXPECT_EQ(block.first, next) << name;
      next = block.end;
      bool weights = false;
      for (std::uint32_t i = block.first; i < block.end; ++i)
        weights = weights || !model.operators[i].parameters.empty();
      EXPECT_TRUE(weights) << name << " " << block.name;
    }
    EXPECT_EQ(next, model.operators.size()) << name;
    for (const std::int64_t tensor : {1, 2, 3, 4}) {
      if (model.facts.heads > 0 && model.facts.heads % tensor != 0) continue;
      EXPECT_NO_THROW(shard_model(model, plan_of(tensor), 0, "plan")) << name << " " << tensor;
    }
  }
}

TEST(AnnotateParallelism, ReluKeepsFeatures) {
  Model model = small_model(4);
  annotate_parallelism(model);
  EXPECT_EQ(model.operators[0].split, Split::vocabulary);
  EXPECT_EQ(model.operators[1].split, Split::column);
  EXPECT_EQ(model.operators[2].split, Split::features);
  EXPECT_EQ(model.operators[3].split, Split::row);
}

TEST(AnnotateParallelism, DescribedModelsStayAsTheyAre) {
  ModelOptions options;
  options.batch = 1;
  const Model model = read_model("llama3-8b", options);
  Model again = model;
  annotate_parallelism(again);
  EXPECT_EQ(dump_model(again), dump_model(model));
  EXPECT_EQ(again.blocks.size(), model.blocks.size());
}

}  // namespace
}  // namespace armilla
