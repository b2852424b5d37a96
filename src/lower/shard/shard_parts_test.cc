// Parts of layers that are computed again or stay wide, and experts of a fixed size: counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lower/memory.h"
#include "lower/shard/shard_testing.h"
#include "lower/sharded_model.h"
#include "read/read.h"

namespace armilla {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr std::int64_t kTokens = 512, kWidth = 256, kInner = 512, kElement = 2;

Model described(const std::string& rest) {
  return read_described_yaml("layers: 2\nhidden: 256\nheads: 4\nvocabulary: 8192\nsequence: 512\n" + rest,
                             "m", ModelOptions());
}
Model of_experts() {
  return described("family: mixtral\nkv_heads: 4\nexperts: {count: 4, active: 2, feed_forward: 512}\n");
}
Model dense() {
  return described("family: llama\nkv_heads: 4\nfeed_forward: 512\n");
}
constexpr std::int64_t kQueryRank = 96, kKeyRank = 64, kRope = 16, kNope = 32, kValue = 32, kLatentHeads = 4;
Model of_latents() {
  return described(
      "family: deepseek\nfeed_forward: 512\nlatent_attention: {query_rank: 96, key_value_rank: 64, "
      "nope_head_dim: 32, rope_head_dim: 16, value_head_dim: 32}\n");
}

Plan plan_by_degrees(Parts modules, std::int64_t experts = 1) {
  Plan plan = plan_of(1, 1, experts);
  plan.expert = experts;
  if (modules.empty()) return plan;
  plan.recompute = Recompute::selective;
  plan.recompute_modules = modules;
  return plan;
}

BlockShape layer_of(const Model& model, const Plan& plan) {
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  return shape_named(sharded, "layers.0");
}

std::vector<std::string> repeated(const Model& model, const Plan& plan) {
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  std::vector<std::string> names;
  for (const PassStep& step : shape_named(sharded, "layers.0").recompute.steps)
    names.emplace_back(sharded.names[step.name]);
  return names;
}

// What a layer keeps less; it is back while the layer's gradients are made.
std::int64_t freed(const Model& model, Parts modules) {
  const BlockShape without = layer_of(model, plan_by_degrees({})),
                   with = layer_of(model, plan_by_degrees(modules));
  return without.saved.value - with.saved.value;
}

TEST(RecomputedParts, AreFreedButForWhatTheyRead) {
  constexpr std::int64_t kRows = 2 * kTokens, kGate = 2 * kInner;
  EXPECT_EQ(freed(of_experts(), {Part::layernorm}), kElement * kTokens * kWidth) << "not attention's";
  EXPECT_EQ(freed(of_experts(), {Part::moe_act}), kElement * kRows * kInner);
  // Rows on their way in and out, gate and up, their product; weights and numbers of experts in 4 bytes. The
  // norm's result, which they read, stays.
  constexpr std::int64_t kOfExperts = kElement * kRows * (2 * kWidth + kGate + kInner) + 2 * 4 * kRows;
  EXPECT_EQ(freed(of_experts(), {Part::moe}), kOfExperts);
  EXPECT_EQ(freed(of_experts(), {Part::moe, Part::layernorm}), kOfExperts + kElement * kTokens * kWidth);
  EXPECT_EQ(freed(of_experts(), {Part::moe, Part::moe_act}), kOfExperts);
  // The norm's result, gate and up, their product; what the norm reads stays.
  EXPECT_EQ(freed(dense(), {Part::mlp}), kElement * kTokens * (kWidth + kGate + kInner));
  EXPECT_EQ(freed(dense(), {Part::layernorm}), 0) << "norms inside of products";
  EXPECT_EQ(freed(of_experts(), {Part::mlp}), 0);
  // Queries, keys and values, and what the norms of the compressed make; the part of the keys that is rotated
  // is kept to make them again.
  EXPECT_EQ(
      freed(of_latents(), {Part::mla_up_proj}),
      kElement * kTokens * (kLatentHeads * (2 * (kNope + kRope) + kValue) + kQueryRank + kKeyRank - kRope));
  EXPECT_EQ(freed(of_latents(), {Part::layernorm}), kElement * kTokens * kWidth);
}

TEST(RecomputedParts, AreDoneAgainWithTheirCollectives) {
  EXPECT_THAT(repeated(of_experts(), plan_by_degrees({Part::layernorm, Part::moe_act})),
              ElementsAre("mlp.norm", "mlp.experts.activation"));
  EXPECT_THAT(repeated(of_latents(), plan_by_degrees({Part::mla_up_proj})),
              ElementsAre("attention.q_norm", "attention.q_up", "attention.kv_norm", "attention.kv_up",
                          "attention.rotary"));
  EXPECT_THAT(repeated(dense(), plan_by_degrees({Part::core_attn, Part::mlp})),
              ElementsAre("attention.core", "mlp.norm", "mlp.gate_up", "mlp.activation", "mlp.down"));
  Plan early = plan_by_degrees({Part::core_attn, Part::mlp});
  early.recompute_early_stop = true;
  EXPECT_THAT(repeated(dense(), early),
              ElementsAre("attention.core", "mlp.norm", "mlp.gate_up", "mlp.activation"))
      << "nobody reads the last product's result";
  EXPECT_THAT(
      repeated(of_experts(), plan_by_degrees({Part::moe}, 2)),
      ElementsAre("mlp.router", "mlp.topk", "mlp.dispatch", "mlp.dispatch: all-to-all", "mlp.experts.gate_up",
                  "mlp.experts.activation", "mlp.experts.down", "mlp.combine: all-to-all", "mlp.combine"));
  // The checkpoint inside comes after the one around it.
  EXPECT_THAT(
      repeated(of_experts(), plan_by_degrees({Part::moe, Part::moe_act})),
      ElementsAre("mlp.router", "mlp.topk", "mlp.dispatch", "mlp.experts.gate_up", "mlp.experts.activation",
                  "mlp.experts.activation", "mlp.experts.down", "mlp.combine"));
  Plan divided = plan_of(2);
  divided.sequence_parallel = true;
  divided.recompute = Recompute::selective;
  divided.recompute_modules = {Part::mlp};
  EXPECT_THAT(repeated(dense(), divided),
              ElementsAre("mlp.norm", "mlp.gate_up: all-gather", "mlp.gate_up", "mlp.activation", "mlp.down",
                          "mlp.down: reduce-scatter"));
}

// Keys and values go around once for the whole core, so that what only its second operator needs gathered
// comes before the first, when the core is computed again, too.
TEST(RecomputedParts, OfTheCoreGatherWhatAllOfItNeeds) {
  Model model = described("family: gpt\nattention: unfused\n");
  std::vector<Operator*> core;
  const Operator* norm = nullptr;
  for (Operator& op : model.operators) {
    if (!op.name.starts_with("layers.0.")) continue;
    if (op.core_attention) core.push_back(&op);
    if (norm == nullptr && op.forward.kernel == Kernel::norm) norm = &op;
  }
  ASSERT_GT(core.size(), 1U);
  ASSERT_NE(norm, nullptr);
  core[1]->inputs.push_back(norm->inputs.front());  // tokens of the rank alone
  Plan plan = plan_of(2, 2);
  plan.sequence_parallel = true;
  plan.recompute = Recompute::selective;
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  const Pass& again = shape_named(sharded, "layers.0").recompute;
  ASSERT_FALSE(again.steps.empty());
  EXPECT_EQ(sharded.names[again.steps.front().name],
            core[1]->name.substr(std::string("layers.0.").size()) + ": all-gather");
}

std::vector<DType> product_types(const ShardedModel& model, const std::string& block) {
  std::vector<DType> types;
  for (const PassStep& step : shape_named(model, block).forward.steps) {
    if (step.kind != NodeKind::compute || model.names[step.name] == "attention.core") continue;
    if (model.works[step.work].kind == WorkKind::matrix) types.push_back(model.works[step.work].dtype);
  }
  return types;
}

TEST(WideParts, ComputeInBf16) {
  Plan plan = plan_of(1);
  plan.precision = DType::fp8;
  plan.wide_first_layers = 1;
  const Model model = described("family: llama\nkv_heads: 4\nfeed_forward: 512\nmulti_token_prediction: 1\n");
  const ShardedModel first = shard_model(model, plan, 0, "plan");
  EXPECT_THAT(product_types(first, "layers.0"), Each(DType::bf16));
  EXPECT_THAT(product_types(first, "layers.1"), Each(DType::fp8));
  plan.wide_first_layers = 0;
  plan.wide_last_layers = 1;
  const ShardedModel last = shard_model(model, plan, 0, "plan");
  EXPECT_THAT(product_types(last, "layers.0"), Each(DType::fp8));
  EXPECT_THAT(product_types(last, "layers.1"), Each(DType::bf16)) << "predictions are no layers";
  // Projection, queries to values, output, gate and up, down; logits are wide always.
  EXPECT_THAT(product_types(last, "mtp.0"),
              ElementsAre(DType::fp8, DType::fp8, DType::fp8, DType::fp8, DType::fp8, DType::bf16));
  plan.wide_last_layers = 0;
  plan.wide_modules = {Part::attention, Part::prediction};
  const ShardedModel parts = shard_model(model, plan, 0, "plan");
  EXPECT_THAT(product_types(parts, "layers.0"),
              ElementsAre(DType::bf16, DType::bf16, DType::fp8, DType::fp8));
  EXPECT_THAT(product_types(parts, "mtp.0"), Each(DType::bf16));
}

// Of a pass, what the host issues; the rest goes along with it.
std::vector<std::string> issued(const ShardedModel& model, const Pass& pass) {
  std::vector<std::string> names;
  for (const PassStep& step : pass.steps) {
    if (!step.along) names.emplace_back(model.names[step.name]);
  }
  return names;
}

TEST(CudaGraphs, AreLaunchedWithTheirFirstStep) {
  Plan plan = plan_by_degrees({}, 2);
  const auto sharded = [&](Parts scope) {
    plan.cuda_graph_scope = scope;
    return shard_model(of_experts(), plan, 0, "plan");
  };
  const ShardedModel none = sharded({});
  const BlockShape& eager = shape_named(none, "layers.0");
  EXPECT_EQ(issued(none, eager.forward).size(), eager.forward.steps.size());
  // Up to the all-to-all all is one; gradients come the other way.
  const ShardedModel routing = sharded({Part::attn, Part::moe_router, Part::moe_preprocess});
  const BlockShape& graphed = shape_named(routing, "layers.0");
  EXPECT_THAT(issued(routing, graphed.forward),
              ElementsAre("attention.norm", "mlp.dispatch: all-to-all", "mlp.experts.gate_up",
                          "mlp.experts.activation", "mlp.experts.down", "mlp.combine: all-to-all",
                          "mlp.combine", "mlp.add"));
  EXPECT_EQ(graphed.forward.steps.size(), eager.forward.steps.size());
  const std::vector<std::string> backward = issued(routing, graphed.backward);
  ASSERT_GE(backward.size(), 2U);
  EXPECT_EQ(backward[backward.size() - 2], "mlp.dispatch: all-to-all");
  const ShardedModel router = sharded({Part::moe_router});
  EXPECT_THAT(issued(router, shape_named(router, "layers.0").forward),
              testing::IsSupersetOf({"attention.qkv", "mlp.norm", "mlp.dispatch"}));
  // Experts of a fixed size can be in one with all around them, all-to-alls included.
  plan.expert_capacity = 1;
  const ShardedModel layer = sharded({Part::attn, Part::moe_layer});
  EXPECT_THAT(issued(layer, shape_named(layer, "layers.0").forward), ElementsAre("attention.norm"));
  EXPECT_EQ(issued(layer, shape_named(layer, "layers.0").backward).size(), 1U);
  EXPECT_NE(division_of(plan), division_of(Plan()));
}

TEST(CudaGraphs, AreOfMambaAndOfMlps) {
  Plan plan = plan_of(1);
  plan.cuda_graph_scope = {Part::mlp_layer};
  const ShardedModel mlps = shard_model(dense(), plan, 0, "plan");
  EXPECT_THAT(issued(mlps, shape_named(mlps, "layers.0").forward), testing::Contains("mlp.norm"));
  EXPECT_THAT(issued(mlps, shape_named(mlps, "layers.0").forward),
              testing::Not(testing::Contains("mlp.gate_up")));
  plan.cuda_graph_scope = {Part::mamba};
  const Model hybrid =
      described("family: hybrid\npattern: M*\nstate_space: {inner: 128, state: 16, heads: 4}\n");
  const ShardedModel layers = shard_model(hybrid, plan, 0, "plan");
  EXPECT_EQ(issued(layers, shape_named(layers, "layers.0").forward).size(), 1U);
  EXPECT_GT(issued(layers, shape_named(layers, "layers.1").forward).size(), 1U);
}

const Work& work_named(const ShardedModel& model, const Pass& pass, const std::string& name) {
  for (const PassStep& step : pass.steps) {
    if (step.kind == NodeKind::compute && model.names[step.name] == name) return model.works[step.work];
  }
  throw std::out_of_range(name);
}

TEST(ExpertCapacity, IsWhatExpertsWorkOn) {
  Plan plan = plan_by_degrees({}, 2);
  plan.expert_capacity = 1.5;
  const ShardedModel model = shard_model(of_experts(), plan, 0, "plan");
  const Pass& forward = shape_named(model, "layers.0").forward;
  // Two experts for the tokens of two ranks, two copies each.
  constexpr std::int64_t kOfExpert = kTokens * 3 / 2;
  EXPECT_THAT(work_named(model, forward, "mlp.experts.gate_up").gemms,
              ElementsAre(Gemm{kOfExpert, 2 * kInner, kWidth, 2, true}));
  for (const PassStep& step : forward.steps) {
    if (step.kind != NodeKind::collective) continue;
    EXPECT_EQ(step.bytes, Bytes(kElement * 2 * kOfExpert * kWidth)) << model.names[step.name];
  }
  plan.expert_capacity = 0;
  const BlockShape without = layer_of(of_experts(), plan);
  plan.expert_capacity = 1.5;
  // Half as many rows more, of what they bring, make and leave.
  EXPECT_EQ(layer_of(of_experts(), plan).saved - without.saved,
            Bytes(kElement * kTokens * (2 * kWidth + 3 * kInner)));
}

// Passes over rows: made, gathered, and what adds them up and gives their weights gradients.
TEST(ExpertDispatch, SortedTokensAreRepeatedGatheredAndAddedUp) {
  Plan plan = plan_by_degrees({});
  plan.expert_dispatch = ExpertDispatch::sorted;
  const ShardedModel model = shard_model(of_experts(), plan, 0, "plan");
  const BlockShape& layer = shape_named(model, "layers.0");
  constexpr std::int64_t kToken = kElement * kTokens * kWidth, kRows = 2 * kToken;
  EXPECT_EQ(work_named(model, layer.forward, "mlp.dispatch").bytes, Bytes(kToken + 3 * kRows));
  EXPECT_EQ(work_named(model, layer.forward, "mlp.combine").bytes, Bytes(kToken + 3 * kRows));
  EXPECT_EQ(work_named(model, layer.backward, "mlp.combine").bytes, Bytes(kToken + 6 * kRows));
  EXPECT_EQ(work_named(model, layer.backward, "mlp.dispatch").bytes, Bytes(kToken + 3 * kRows));
}

TEST(ExpertCapacity, OneHotDispatchIsProductsWithMasks) {
  Plan plan = plan_by_degrees({});
  plan.expert_capacity = 1.25;
  plan.expert_dispatch = ExpertDispatch::one_hot;
  const ShardedModel model = shard_model(of_experts(), plan, 0, "plan");
  const BlockShape& layer = shape_named(model, "layers.0");
  constexpr std::int64_t kRows = 2 * kTokens * 5 / 4;
  const Work& dispatch = work_named(model, layer.forward, "mlp.dispatch");
  EXPECT_THAT(dispatch.gemms, ElementsAre(Gemm{kRows, kWidth, kTokens, 1, false}));
  EXPECT_EQ(dispatch.flops, Flops(2 * kRows * kWidth * kTokens));
  EXPECT_EQ(dispatch.bytes, Bytes(kElement * (kRows * kWidth + kRows * kTokens + kTokens * kWidth)));
  EXPECT_THAT(work_named(model, layer.forward, "mlp.combine").gemms,
              ElementsAre(Gemm{kTokens, kWidth, kRows, 1, false}));
  EXPECT_THAT(work_named(model, layer.backward, "mlp.dispatch").gemms,
              ElementsAre(Gemm{kTokens, kWidth, kRows, 1, false}));
  // Of the rows, and of the mask, whose numbers weigh them.
  EXPECT_THAT(work_named(model, layer.backward, "mlp.combine").gemms,
              ElementsAre(Gemm{kRows, kWidth, kTokens, 1, false}, Gemm{kTokens, kRows, kWidth, 1, false}));
}

// Transformer Engine casts first; what both gradients read is scaled by rows and by columns, where
// blocks are.
TEST(ShardParts, WhatIsCastIsGatheredSo) {
  constexpr std::int64_t kWhole = 2048 * 12288 * 2;
  struct Case {
    DType precision;
    Scaling scaling;
    std::int64_t once, both_ways;
  };
  for (const Case& expected : {Case{DType::bf16, Scaling::delayed, kWhole, kWhole},
                               Case{DType::fp8, Scaling::delayed, kWhole / 2, kWhole / 2},
                               Case{DType::fp8, Scaling::current, kWhole / 2, kWhole / 2},
                               Case{DType::fp8, Scaling::block, kWhole / 64 * 33, kWhole},
                               Case{DType::fp8, Scaling::rows, kWhole, kWhole},
                               Case{DType::fp4, Scaling::delayed, kWhole / 32 * 9, kWhole / 16 * 9}}) {
    Plan plan = plan_of(8);
    plan.sequence_parallel = true;
    plan.precision = expected.precision;
    plan.scaling = expected.scaling;
    const ShardedModel sharded = shard_model(zoo_model("gpt3-175b"), plan, 0, "plan");
    const BlockShape& layer = shape_named(sharded, "layers.0");
    EXPECT_THAT(communication(sharded, layer.forward),
                testing::ElementsAre(fmt::format("attention.qkv: all-gather tensor {}", expected.once),
                                     fmt::format("attention.output: reduce-scatter tensor {}", kWhole),
                                     fmt::format("mlp.fc1: all-gather tensor {}", expected.once),
                                     fmt::format("mlp.fc2: reduce-scatter tensor {}", kWhole)));
    EXPECT_THAT(communication(sharded, layer.backward),
                testing::UnorderedElementsAre(
                    fmt::format("mlp.fc2: all-gather tensor {}", expected.both_ways),
                    fmt::format("mlp.fc1: all-gather tensor {}", expected.once),
                    fmt::format("mlp.fc1: reduce-scatter tensor {}", kWhole),
                    fmt::format("attention.output: all-gather tensor {}", expected.both_ways),
                    fmt::format("attention.qkv: all-gather tensor {}", expected.once),
                    fmt::format("attention.qkv: reduce-scatter tensor {}", kWhole)));
  }
}

TEST(ShardParts, TheCoreOfAttentionIsInEightBitsWhereThePlanSaysSo) {
  const auto type = [](DType precision, bool fp8_attention, std::int64_t wide_layers = 0) {
    Plan plan = plan_of(1);
    plan.precision = precision;
    plan.fp8_attention = fp8_attention;
    plan.wide_first_layers = wide_layers;
    const ShardedModel sharded = shard_model(zoo_model("llama3-8b"), plan, 0, "plan");
    const Pass& pass = shape_named(sharded, "layers.0").forward;
    for (const PassStep& step : pass.steps) {
      if (step.kind == NodeKind::compute && sharded.names[step.name] == "attention.core")
        return sharded.works[step.work].dtype;
    }
    return DType::unknown;
  };
  EXPECT_EQ(type(DType::fp8, false), DType::bf16);
  EXPECT_EQ(type(DType::fp8, true), DType::fp8);
  EXPECT_EQ(type(DType::fp4, true), DType::fp8);
  EXPECT_EQ(type(DType::bf16, true), DType::bf16);
  EXPECT_EQ(type(DType::fp8, true, 2), DType::bf16);
}

// A matrix of each expert on the rank, of gate and up together and of what comes behind them.
TEST(ShardedTensors, AreCountedWhereReplicasUpdateWholeOnes) {
  Plan plan = plan_of(1, 1, 2);
  EXPECT_TRUE(layer_of(of_experts(), plan).weights.front().tensors.empty());
  plan.zero_stage = 1;
  plan.zero_partition = ZeroPartition::tensors;
  for (const std::int64_t experts : {1, 2}) {
    plan.expert = experts;
    const BlockShape layer = layer_of(of_experts(), plan);
    for (const WeightGroup& group : layer.weights) {
      std::int64_t elements = 0, tensors = 0;
      for (const WeightTensors& alike : group.tensors) {
        elements += alike.elements * alike.count;
        tensors += alike.count;
      }
      EXPECT_EQ(elements, group.elements);
      if (group.axis == GroupAxis::expert_data) {
        EXPECT_EQ(tensors, 2 * 4 / experts);
      }
    }
  }
}

}  // namespace
}  // namespace armilla
