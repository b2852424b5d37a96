#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "lower/hybrid.h"
#include "lower/shard/sharded_model_testing.h"

namespace armilla {
namespace {

ShardedModel model_of(std::int64_t layers) {
  SmallShape shape;
  shape.layers = layers;
  return small_sharded_model(shape);
}

std::vector<std::int64_t> sizes(const StageCut& cut) {
  std::vector<std::int64_t> result;
  for (std::size_t s = 0; s < cut.first.size(); ++s) result.push_back(cut.end[s] - cut.first[s]);
  return result;
}

std::vector<std::int64_t> cut_sizes(std::int64_t layers, std::int64_t pipeline, std::int64_t virtual_stages,
                                    std::vector<std::int64_t> given = {}) {
  Plan plan = small_plan(pipeline, 1, 1, pipeline);
  plan.virtual_stages = virtual_stages;
  plan.stage_blocks = std::move(given);
  const StageCut cut = cut_stages(model_of(layers), plan, "plan");
  for (std::size_t s = 0; s + 1 < cut.first.size(); ++s) EXPECT_EQ(cut.end[s], cut.first[s + 1]);
  EXPECT_EQ(cut.first.front(), 0);
  EXPECT_EQ(cut.end.back(), layers + 2);
  return sizes(cut);
}

std::string cut_error(std::int64_t layers, std::int64_t pipeline, std::int64_t virtual_stages,
                      std::vector<std::int64_t> given = {}) {
  return error_of([&] { cut_sizes(layers, pipeline, virtual_stages, std::move(given)); });
}

TEST(StageCut, LayersAreSharedEvenlyWithEmbeddingAndHeadOnTop) {
  EXPECT_EQ(cut_sizes(8, 4, 1), (std::vector<std::int64_t>{3, 2, 2, 3}));
  EXPECT_EQ(cut_sizes(8, 1, 1), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(cut_sizes(8, 2, 2), (std::vector<std::int64_t>{3, 2, 2, 3}));
}

// Llama 3 405B: 126 layers, 16 stages; "we remove one layer each from the first and the last stage" (Llama
// Team 2024, section 3.3.2).
TEST(StageCut, TheOuterStagesGetFewerWhereLayersDoNotDivide) {
  std::vector<std::int64_t> expected(16, 8);
  EXPECT_EQ(cut_sizes(126, 16, 1), expected);  // 7 layers and the embedding, 7 and the head
  EXPECT_EQ(cut_sizes(7, 4, 1), (std::vector<std::int64_t>{3, 2, 2, 2}));
  EXPECT_EQ(cut_sizes(5, 4, 1), (std::vector<std::int64_t>{2, 2, 1, 2}));
}

TEST(StageCut, MoreStagesThanLayersSplitOffEmbeddingAndHead) {
  EXPECT_EQ(cut_sizes(2, 4, 1), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(cut_sizes(2, 3, 1), (std::vector<std::int64_t>{1, 2, 1}));
}

TEST(StageCut, GivenStagesCountLayersOrAllBlocks) {
  EXPECT_EQ(cut_sizes(8, 4, 1, {1, 3, 3, 1}), (std::vector<std::int64_t>{2, 3, 3, 2}));
  EXPECT_EQ(cut_sizes(8, 4, 1, {1, 4, 4, 1}), (std::vector<std::int64_t>{1, 4, 4, 1}));
  EXPECT_EQ(cut_sizes(8, 4, 1, {0, 4, 4, 0}), (std::vector<std::int64_t>{1, 4, 4, 1}));
}

TEST(StageCut, BlocksBetweenLayersStayWithTheirNeighbours) {
  ShardedModel model = model_of(4);
  // A decoder's own embedding goes with the layer that follows it, a block without weights with the one
  // before.
  model.blocks.insert(model.blocks.begin() + 3, {"embedding 2", BlockKind::embedding, 0, 0});
  model.shapes.emplace_back();
  model.blocks.insert(model.blocks.begin() + 3, {"flatten", BlockKind::other, 4, 4});
  const StageCut cut = cut_stages(model, small_plan(2, 1, 1, 2), "plan");
  EXPECT_EQ(cut.first, (std::vector<std::int64_t>{0, 4}));
}

TEST(StageCut, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(cut_error(4, 4, 2),
            "plan: 8 stages (plan.pipeline 4 x plan.virtual_stages 2) for a model of 6 blocks\n"
            "  hint: use at most 6 stages");
  EXPECT_EQ(cut_error(4, 8, 1),
            "plan: plan.pipeline 8 for a model of 6 blocks\n  hint: use at most 6 stages");
  EXPECT_EQ(
      cut_error(8, 4, 1, {4, 4}),
      "plan: plan.stage_blocks has 2 numbers for plan.pipeline 4\n  hint: give 4 numbers, in model order");
  EXPECT_EQ(cut_error(8, 2, 1, {4, 5}),
            "plan: plan.stage_blocks 4,5 adds up to 9, the model has 10 blocks, 8 of them layers\n"
            "  hint: make them add up to 8 (or 10, with embedding and head)");
  EXPECT_EQ(cut_error(8, 2, 1, {-1, 9}), "plan: a stage of -1 blocks\n  hint: a stage has at least 1 block");
  EXPECT_EQ(cut_error(8, 3, 1, {4, 0, 4}),
            "plan: stage 1 of plan.stage_blocks has no blocks\n  hint: every stage needs at least 1");
  EXPECT_EQ(cut_error(8, 2, 1, {INT64_MAX, 1}), "plan: sizes overflow 64 bits\n  hint: check the dimensions");
}

TEST(StageCut, BlockRecomputeCountsLayersOfEachChunk) {
  const ShardedModel model = model_of(4);
  Plan plan = small_plan(2, 1, 1, 2);
  plan.recompute = Recompute::block;
  plan.recompute_blocks = 1;
  const StageCut cut = cut_stages(model, plan, "plan");
  EXPECT_EQ(stage_shapes(model, plan, cut, 0), (std::vector<std::uint32_t>{0, 3, 1}));
  EXPECT_EQ(stage_shapes(model, plan, cut, 1), (std::vector<std::uint32_t>{3, 1, 2}));
  plan.recompute = Recompute::none;
  EXPECT_EQ(stage_shapes(model, plan, cut, 1), (std::vector<std::uint32_t>{1, 1, 2}));
}

}  // namespace
}  // namespace armilla
