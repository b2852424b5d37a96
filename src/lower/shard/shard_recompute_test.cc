// What selective checkpointing by operator keeps and does again, counted by hand, and losses.
#include <gtest/gtest.h>

#include <string>

#include "lower/hybrid.h"
#include "lower/memory.h"
#include "read/read.h"

namespace armilla {
namespace {

constexpr std::int64_t kGatedTokens = 512, kGatedHidden = 256, kGatedInner = 1024, kGatedVocabulary = 8192;

Model gated_decoder() {
  const std::string text =
      "family: llama\nlayers: 2\nhidden: 256\nheads: 4\nfeed_forward: 1024\nvocabulary: 8192\n"
      "sequence: 512\n";
  return read_described_yaml(text, "m", ModelOptions());
}

Plan pytorch_plan(Host host, std::int64_t tensor = 1) {
  Plan plan;
  plan.batch = 1;
  plan.ranks = plan.tensor = tensor;
  plan.framework = Framework::pytorch;
  plan.host = host;
  plan.precision = plan.weight_dtype = plan.parameter_dtype = DType::bf16;
  plan.gradient_dtype = DType::fp32;
  plan.optimizer = Optimizer::adam;
  return plan;
}

BlockShape shape_of_block(const ShardedModel& model, std::size_t block) {
  return model.shapes[model.blocks[block].shape];
}

std::int64_t repeated_products(const ShardedModel& model, std::uint32_t shape) {
  std::int64_t flops = 0;
  for (const PassStep& step : model.shapes[shape].recompute.steps) {
    if (step.kind != NodeKind::compute) continue;
    const Work& work = model.works[step.work];
    if (work.kind == WorkKind::matrix) flops += work.flops.value;
  }
  return flops;
}

std::int64_t repeated_products(const ShardedModel& model) {
  return repeated_products(model, model.blocks[1].shape);
}

// The block's input, queries, values, attention's result, gate and the last product's; keys, the output
// projection and up are made again.
TEST(OperatorRecompute, KeepsEverySecondProductAndAttention) {
  Plan plan = pytorch_plan(Host::eager);
  plan.recompute = Recompute::operators;
  const ShardedModel model = shard_model(gated_decoder(), plan, 0, "plan");
  EXPECT_EQ(shape_of_block(model, 1).saved, Bytes(2 * kGatedTokens * (5 * kGatedHidden + kGatedInner)));
  EXPECT_EQ(repeated_products(model), 2 * kGatedTokens * kGatedHidden * (2 * kGatedHidden + kGatedInner));
  // The head follows its backward pass at once.
  EXPECT_TRUE(shape_of_block(model, 3).recompute.steps.empty());
}

TEST(OperatorRecompute, CompilersDropWhatNobodyReadsAgain) {
  Plan plan = pytorch_plan(Host::compiled);
  plan.recompute = Recompute::operators;
  const ShardedModel model = shard_model(gated_decoder(), plan, 0, "plan");
  EXPECT_EQ(shape_of_block(model, 1).saved, Bytes(2 * kGatedTokens * (4 * kGatedHidden + kGatedInner)));
}

TEST(OperatorRecompute, LiesBetweenNoneAndFull) {
  const auto of = [](Recompute recompute, std::int64_t tensor) {
    Plan plan = pytorch_plan(Host::eager, tensor);
    plan.sequence_parallel = tensor > 1;
    plan.recompute = recompute;
    return shape_of_block(shard_model(gated_decoder(), plan, 0, "plan"), 1);
  };
  for (const std::int64_t tensor : {1, 2, 4}) {
    const BlockShape some = of(Recompute::operators, tensor);
    EXPECT_LT(some.saved, of(Recompute::none, tensor).saved);
    EXPECT_GT(some.saved, of(Recompute::full, tensor).saved);
    EXPECT_GT(some.working, of(Recompute::none, tensor).working);
    EXPECT_LT(some.recompute.steps.size(), of(Recompute::full, tensor).recompute.steps.size());
    // Together they are what full recomputation restores and keeps, but for results that are kept twice.
    EXPECT_LE(some.working, of(Recompute::full, tensor).working);
  }
}

// The last product's result is read by nobody; nor is what tensor ranks make of it. PyTorch sees that, unless
// a dropout behind it has its mask to make again.
TEST(WholeRecompute, EndsWhereTheBackwardPassHasAllItReads) {
  constexpr std::int64_t kLast = 2 * kGatedTokens * kGatedHidden * kGatedInner;
  for (const Recompute recompute : {Recompute::full, Recompute::block}) {
    for (const std::int64_t tensor : {1, 4}) {
      Plan plan = pytorch_plan(Host::eager, tensor);
      plan.sequence_parallel = tensor > 1;
      plan.recompute = recompute;
      plan.recompute_blocks = 1;
      plan.tensor_method = TensorMethod::megatron;
      const auto repeats = [&](const Model& model) {
        const ShardedModel sharded = shard_model(model, plan, 0, "plan");
        const std::uint32_t shape = sharded.blocks[1].recomputed_shape;
        return std::pair(repeated_products(sharded, shape), sharded.shapes[shape].recompute.steps.size());
      };
      const auto early = repeats(gated_decoder());
      plan.recompute_early_stop = false;
      const auto all = repeats(gated_decoder());
      EXPECT_EQ(all.first - early.first, kLast / tensor);
      EXPECT_EQ(all.second - early.second, tensor == 1 ? 2U : 3U) << "product, addition and reduction";
      plan.recompute_early_stop.reset();
      plan.framework = Framework::megatron;
      EXPECT_EQ(repeats(gated_decoder()), all);

      const std::string text =
          "family: gpt\nlayers: 2\nhidden: 256\nheads: 4\nvocabulary: 8192\nsequence: 512\n";
      const Model dropping = read_described_yaml(text, "m", ModelOptions());
      const auto whole = repeats(dropping);
      plan.framework = Framework::pytorch;
      EXPECT_EQ(repeats(dropping), whole);
    }
  }
}

// Rows that came home are kept to be weighed: they must come again.
TEST(WholeRecompute, SendsTokensThereAndBackAgain) {
  const std::string text =
      "family: mixtral\nlayers: 2\nhidden: 256\nheads: 4\nkv_heads: 4\n"
      "experts: {count: 4, active: 2, feed_forward: 512}\nvocabulary: 8192\nsequence: 512\n";
  const Model model = read_described_yaml(text, "m", ModelOptions());
  Plan plan = pytorch_plan(Host::eager);
  plan.ranks = plan.expert = 4;
  plan.recompute = Recompute::full;
  const auto exchanges = [&] {
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    return std::ranges::count(
        shape_of_block(sharded, 1).recompute.steps, CollectiveKind::all_to_all, [](const PassStep& step) {
          return step.kind == NodeKind::collective ? step.collective : CollectiveKind::barrier;
        });
  };
  EXPECT_EQ(exchanges(), 2);
  plan.recompute_early_stop = false;
  EXPECT_EQ(exchanges(), 2);
}

// Logits and loss of a layer of prediction stand outside of its checkpoint, as those of the head do: of the
// block its layer is done again and the projection in front of it, and what makes the logits is kept.
TEST(WholeRecompute, LeavesOutLogitsOfLayersOfPrediction) {
  constexpr std::int64_t kPredictedHidden = 256, kPredictedTokens = 512, kPredictedWords = 8192;
  const std::string text =
      "family: llama\nlayers: 2\nhidden: 256\nheads: 4\nfeed_forward: 512\nvocabulary: 8192\nsequence: 512\n"
      "multi_token_prediction: 1\n";
  const Model model = read_described_yaml(text, "m", ModelOptions());
  for (const Framework framework : {Framework::megatron, Framework::pytorch}) {
    Plan plan = pytorch_plan(Host::compiled);
    plan.framework = framework;
    plan.recompute_early_stop = false;
    plan.recompute = Recompute::full;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    const auto repeats = [&](std::size_t block) {
      return repeated_products(sharded, sharded.blocks[block].recomputed_shape);
    };
    EXPECT_EQ(repeats(3), repeats(2) + 2 * kPredictedTokens * 2 * kPredictedHidden * kPredictedHidden);
    const Bytes saved = sharded.shapes[sharded.blocks[3].recomputed_shape].saved;
    EXPECT_GE(saved, Bytes(kPredictedTokens * (kPredictedHidden + kPredictedWords) * 2));
  }
}

// Probabilities and two gradients: of 4 bytes, or of 2 beside the logits.
TEST(LossKernels, HoldWhatTheirTypesTake) {
  constexpr std::int64_t kGatedLogits = kGatedTokens * kGatedVocabulary;
  const auto head = [](LossKernel loss, Host host) {
    Plan plan = pytorch_plan(host);
    plan.loss = loss;
    return shape_of_block(shard_model(gated_decoder(), plan, 0, "plan"), 3);
  };
  const auto beside = [&](LossKernel loss) {  // what the loss does not keep
    return head(loss, Host::eager).saved - Bytes(2 * kGatedTokens * kGatedHidden);
  };
  EXPECT_EQ(head(LossKernel::wide, Host::eager).working, Bytes(8 * kGatedLogits));
  EXPECT_EQ(head(LossKernel::wide, Host::compiled).working, Bytes(8 * kGatedLogits));
  EXPECT_EQ(head(LossKernel::narrow, Host::compiled).working, Bytes(6 * kGatedLogits));
  EXPECT_EQ(beside(LossKernel::wide) - beside(LossKernel::narrow), Bytes(2 * kGatedLogits));
  EXPECT_EQ(head(LossKernel::automatic, Host::eager).working, head(LossKernel::wide, Host::eager).working);
  EXPECT_EQ(head(LossKernel::automatic, Host::compiled).working,
            head(LossKernel::fused, Host::compiled).working);
}

// Over parts of the vocabulary a one-hot array, the exponentials and their sum are there at once; where the
// loss is one operation, the logits and their gradient.
TEST(LossKernels, HoldThreeArraysOverPartsOfTheVocabulary) {
  const auto working = [](LossKernel loss, Host host = Host::eager) {
    Plan plan = pytorch_plan(host, 4);
    plan.loss = loss;
    return shape_of_block(shard_model(gated_decoder(), plan, 0, "plan"), 3).working;
  };
  constexpr std::int64_t kPart = kGatedTokens * kGatedVocabulary / 4;
  EXPECT_EQ(working(LossKernel::wide), Bytes(12 * kPart));
  EXPECT_EQ(working(LossKernel::in_place), Bytes(4 * kPart));
  EXPECT_EQ(working(LossKernel::wide, Host::compiled), Bytes(12 * kPart)) << "an operator of its own";
  EXPECT_EQ(working(LossKernel::in_place, Host::compiled), Bytes(4 * kPart));
}

// Megatron's makes the gradient where its probabilities are; compiled it has its exponentials beside its
// logits in fp32; Transformer Engine's has nothing beside the logits, whose product is at work then.
TEST(LossKernels, AreThreeUnderMegatron) {
  constexpr std::int64_t kGatedLogits = kGatedTokens * kGatedVocabulary;
  for (const std::int64_t tensor : {1, 4}) {
    const auto head = [&](LossKernel loss) {
      Plan plan = pytorch_plan(Host::eager, tensor);
      plan.framework = Framework::megatron;
      plan.accumulation_fusion = false;
      plan.loss = loss;
      return shape_of_block(shard_model(gated_decoder(), plan, 0, "plan"), 3);
    };
    EXPECT_EQ(head(LossKernel::automatic).working, Bytes(2 * kGatedLogits / tensor));
    EXPECT_EQ(head(LossKernel::wide).working, Bytes(6 * kGatedLogits / tensor));
    EXPECT_EQ(head(LossKernel::wide).saved, head(LossKernel::automatic).saved);
    // With the tokens' losses.
    EXPECT_EQ(head(LossKernel::automatic).saved - head(LossKernel::fused).saved,
              Bytes(2 * kGatedLogits / tensor + 4 * kGatedTokens));
    // Its input, and the gradient of its weight.
    EXPECT_EQ(head(LossKernel::fused).working,
              Bytes(2 * kGatedHidden * (kGatedTokens + kGatedVocabulary / tensor)));
  }
}

TEST(LossKernels, GatherDividedLogitsUnlessTheLossIsParallel) {
  LossKernel loss = LossKernel::narrow;
  const auto head = [&](bool parallel, std::int64_t tensor) {
    Plan plan = pytorch_plan(Host::compiled, tensor);
    plan.loss = loss;
    plan.loss_parallel = parallel;
    return shape_of_block(shard_model(gated_decoder(), plan, 0, "plan"), 3);
  };
  constexpr std::int64_t kGatedLogits = kGatedTokens * kGatedVocabulary;
  EXPECT_EQ(head(false, 4).working, Bytes(6 * kGatedLogits));
  EXPECT_EQ(head(true, 4).working, Bytes(6 * kGatedLogits / 4));
  EXPECT_EQ(head(false, 1).working, head(true, 1).working);
  std::int64_t gathered = 0;
  for (const PassStep& step : head(false, 4).forward.steps) {
    if (step.kind != NodeKind::collective) continue;
    EXPECT_EQ(step.collective, CollectiveKind::all_gather);
    gathered += step.bytes.value;
  }
  EXPECT_EQ(gathered, 2 * kGatedLogits);
  // Probabilities, or the logits that a fused loss makes them of again: all instead of a quarter.
  EXPECT_EQ(head(false, 4).saved - head(true, 4).saved, Bytes(2 * kGatedLogits * 3 / 4));
  loss = LossKernel::fused;
  EXPECT_EQ(head(false, 4).saved - head(true, 4).saved, Bytes(2 * kGatedLogits * 3 / 4));
  EXPECT_EQ(head(false, 1).saved, head(true, 1).saved);
}

}  // namespace
}  // namespace armilla
