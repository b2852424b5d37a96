#include "ir/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/error_testing.h"

namespace armilla {
namespace {

// What validate_plan says of 64 ranks with a change.
std::string refusal(const std::function<void(Plan&)>& change) {
  Plan plan;
  plan.ranks = 64;
  change(plan);
  return error_of([&] { validate_plan(plan, "plan"); });
}

TEST(Plan, NamesAreThoseOfTheCommandLine) {
  EXPECT_EQ(name_of(Recompute::selective), "selective");
  EXPECT_EQ(name_of(ContextMethod::all_to_all), "all-to-all");
  EXPECT_EQ(name_of(ExpertLoad::zipf), "zipf");
}

TEST(Plan, EveryLegalCombinationPasses) {
  EXPECT_EQ(refusal([](Plan&) {}), "no error");
  EXPECT_EQ(refusal([](Plan& plan) {
              plan.tensor = 2, plan.context = 2, plan.pipeline = 4, plan.expert = 8, plan.expert_tensor = 1;
              plan.zero_stage = 3, plan.hybrid_shard = 4, plan.virtual_stages = 2;
              plan.stage_blocks = {1, 1, 1, 1, 1, 1, 1, 0};
              plan.order = {Axis::pipeline, Axis::data, Axis::tensor, Axis::context};
            }),
            "no error");
}

TEST(Plan, DegreesMustDivideTheRanks) {
  EXPECT_EQ(refusal([](Plan& plan) { plan.tensor = 3, plan.pipeline = 4; }),
            "plan: plan.tensor 3 x plan.context 1 x plan.pipeline 4 does not divide 64 ranks\n"
            "  hint: plan.ranks could be 60 or 72");
  EXPECT_EQ(refusal([](Plan& plan) { plan.pipeline = 0; }),
            "plan: plan.pipeline 0\n  hint: a degree is at least 1");
  EXPECT_EQ(refusal([](Plan& plan) { plan.context = -7; }),
            "plan: plan.context -7\n  hint: a degree is at least 1");
  EXPECT_EQ(refusal([](Plan& plan) { plan.tensor = INT64_MAX; }),
            "plan: plan.tensor 9223372036854775807 is more than all 64 ranks\n  hint: the most is 64");
  EXPECT_EQ(refusal([](Plan& plan) { plan.tensor = plan.context = plan.pipeline = 64; }),
            "plan: plan.tensor 64 x plan.context 64 x plan.pipeline 64 does not divide 64 ranks");
  EXPECT_EQ(refusal([](Plan& plan) { plan.tensor = 4, plan.pipeline = 2, plan.expert = 3; }),
            "plan: plan.expert 3 x plan.expert_tensor 4 does not divide the 32 ranks of a pipeline "
            "stage (tensor 4 x context 1 x data 8)\n"
            "  hint: plan.expert could be 2 or 4, or tensor x context x data could be 24 or 36");
  // What no model of 8 experts could be shared out by is not proposed for 8.
  EXPECT_EQ(refusal([](Plan& plan) { plan.ranks = 60, plan.expert = 8; }),
            "plan: plan.expert 8 x plan.expert_tensor 1 does not divide the 60 ranks of a pipeline "
            "stage (tensor 1 x context 1 x data 60)\n"
            "  hint: plan.expert could be 4, or tensor x context x data could be 56 or 64");
  EXPECT_EQ(refusal([](Plan& plan) { plan.ranks = std::int64_t{1} << 40; }),
            "plan: plan.ranks 1099511627776\n  hint: ranks must be between 1 and 16777216");
}

TEST(Plan, ShardingMustFit) {
  EXPECT_EQ(refusal([](Plan& plan) { plan.zero_stage = 4; }),
            "plan: plan.zero 4\n  hint: ZeRO stages are 0 to 3");
  EXPECT_EQ(refusal([](Plan& plan) { plan.hybrid_shard = 8, plan.zero_stage = 0; }),
            "plan: plan.hybrid_shard 8 with plan.zero 0\n"
            "  hint: nothing is sharded; plan.zero could be 1, 2 or 3");
  EXPECT_EQ(refusal([](Plan& plan) { plan.hybrid_shard = 12, plan.zero_stage = 3; }),
            "plan: plan.hybrid_shard 12 does not divide data 64 x context 1 = 64\n"
            "  hint: plan.hybrid_shard could be 8 or 16");
  EXPECT_EQ(refusal([](Plan& plan) { plan.hybrid_shard = -1; }),
            "plan: plan.hybrid_shard -1\n  hint: 0 shards over all of them");
  EXPECT_EQ(refusal([](Plan& plan) { plan.zero_partition = ZeroPartition::tensors, plan.zero_stage = 2; }),
            "plan: plan.zero_partition tensors with plan.zero 2\n"
            "  hint: whole tensors are given to replicas by ZeRO-1 alone: gradients and weights stay whole");
  EXPECT_EQ(refusal([](Plan& plan) { plan.reduce_scatter = false, plan.zero_stage = 3; }),
            "plan: plan.reduce_scatter false with plan.zero 3\n"
            "  hint: ZeRO-3 keeps its part of the gradients alone: only ZeRO-1 and 2 may all-reduce them");
}

TEST(Plan, StagesAndChoicesMustMakeSense) {
  EXPECT_EQ(refusal([](Plan& plan) { plan.virtual_stages = 0; }),
            "plan: plan.virtual_stages 0\n  hint: model chunks per pipeline rank are 1 to 65536");
  EXPECT_EQ(
      refusal([](Plan& plan) {
        plan.pipeline = 4, plan.stage_blocks = {8, 8, 8};
      }),
      "plan: plan.stage_blocks has 3 numbers for plan.pipeline 4 x plan.virtual_stages 1 = 4 stages\n  hint: "
      "give 4 numbers, in model order");
  EXPECT_EQ(refusal([](Plan& plan) {
              plan.pipeline = 2, plan.stage_blocks = {8, -8};
            }),
            "plan: plan.stage_blocks has a stage of -8 blocks\n  hint: the least is 0");
  EXPECT_EQ(refusal([](Plan& plan) { plan.recompute_blocks = -1; }),
            "plan: plan.recompute_blocks -1\n  hint: 0 recomputes none");
  EXPECT_EQ(refusal([](Plan& plan) { plan.wide_last_layers = -1; }),
            "plan: plan.wide_last_layers -1\n  hint: 0 keeps none wide");
  EXPECT_EQ(refusal([](Plan& plan) { plan.expert_capacity = -1; }),
            "plan: plan.expert_capacity -1\n  hint: rows relative to the mean, up to 1000; 0: no limit");
  EXPECT_EQ(refusal([](Plan& plan) { plan.expert_dispatch = ExpertDispatch::one_hot; }),
            "plan: plan.expert_dispatch one-hot without plan.expert_capacity\n"
            "  hint: masks have as many rows as experts have room for: MaxText's default is 1.25");
  EXPECT_EQ(refusal([](Plan& plan) { plan.expert_capacity = 2, plan.expert_load = ExpertLoad::zipf; }),
            "plan: plan.expert_capacity 2 cannot be combined with plan.expert_load zipf\n"
            "  hint: with a capacity all experts work on as many rows");
  EXPECT_EQ(refusal([](Plan& plan) {
              plan.order = {Axis::tensor, Axis::tensor, Axis::data, Axis::pipeline};
            }),
            "plan: plan.order must name tensor, context, data and pipeline, each once");
  EXPECT_EQ(refusal([](Plan& plan) { plan.order.pop_back(); }),
            "plan: plan.order must name tensor, context, data and pipeline, each once");
  EXPECT_EQ(refusal([](Plan& plan) { plan.expert_skew = -0.5; }),
            "plan: plan.expert_skew -0.5\n  hint: a finite number, 0 (all alike) or more");
  EXPECT_EQ(refusal([](Plan& plan) { plan.expert_skew = std::numeric_limits<double>::quiet_NaN(); }),
            "plan: plan.expert_skew nan\n  hint: a finite number, 0 (all alike) or more");
  EXPECT_EQ(refusal([](Plan& plan) { plan.precision = DType::int8; }),
            "plan: plan.precision int8\n  hint: training needs a floating type");
  EXPECT_EQ(refusal([](Plan& plan) { plan.gradient_dtype = DType::boolean; }),
            "plan: plan.gradient_type bool\n  hint: training needs a floating type");
}

}  // namespace
}  // namespace armilla
