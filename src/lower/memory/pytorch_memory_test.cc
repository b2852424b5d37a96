// Memory of a transformer under PyTorch's kernels and wrappers, against Megatron's and by hand.
#include <gtest/gtest.h>

#include <string>

#include "lower/memory.h"
#include "lower/plan.h"
#include "read/read.h"

namespace armilla {
namespace {

constexpr std::int64_t kLlamaHidden = 1024, kLlamaFeedForward = 4096, kLlamaVocabulary = 32768,
                       kLlamaTokens = 2048, kLlamaLayers = 4;

Model small_llama(std::int64_t lora_rank = 0) {
  const std::string text =
      "family: llama\nlayers: 4\nhidden: 1024\nheads: 8\nfeed_forward: 4096\nvocabulary: 32768\n"
      "sequence: 2048\n";
  ModelOptions options;
  options.lora_rank = lora_rank;
  return read_described_yaml(text, "m", options);
}

Plan plan_under(Framework framework, Host host) {
  Plan plan;
  plan.batch = 1;
  plan.framework = framework;
  plan.host = host;
  plan.precision = plan.weight_dtype = plan.parameter_dtype = DType::bf16;
  plan.gradient_dtype = DType::fp32;
  plan.optimizer = Optimizer::adam;
  return plan;
}

MemoryUse use_under(const Plan& plan) {
  const RoleMemory role = hybrid_memory(lower_hybrid(small_llama(), plan), plan, Device()).front();
  return role.use;
}

BlockShape shape_under(const Plan& plan, std::size_t block) {
  const ShardedModel model = shard_model(small_llama(), plan, 0, "plan");
  return model.shapes[model.blocks[block].shape];
}

TEST(PytorchMemory, AnEagerGatedActivationKeepsOneTensorMore) {
  const Bytes fused = shape_under(plan_under(Framework::megatron, Host::eager), 1).saved;
  EXPECT_EQ(shape_under(plan_under(Framework::pytorch, Host::eager), 1).saved,
            fused + Bytes(2 * kLlamaTokens * kLlamaFeedForward));
  EXPECT_EQ(shape_under(plan_under(Framework::pytorch, Host::compiled), 1).saved, fused);
  // Recomputed with the rest of the block.
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  const Bytes without = shape_under(plan_under(Framework::megatron, Host::eager), 1).working;
  plan.recompute = Recompute::full;
  EXPECT_EQ(shape_under(plan, 1).saved, Bytes(2 * kLlamaTokens * kLlamaHidden));
  EXPECT_GE(shape_under(plan, 1).working, without + Bytes(2 * kLlamaTokens * kLlamaFeedForward));
}

// Probabilities are kept, 4 bytes; beside them 4 bytes of a fused loss, 10 of PyTorch's operators.
TEST(PytorchMemory, AnEagerLossHoldsTheLogitsInFp32) {
  const std::int64_t logits = kLlamaTokens * kLlamaVocabulary;
  EXPECT_EQ(shape_under(plan_under(Framework::megatron, Host::eager), kLlamaLayers + 1).working,
            Bytes(4 * logits));
  EXPECT_EQ(shape_under(plan_under(Framework::pytorch, Host::compiled), kLlamaLayers + 1).working,
            Bytes(4 * logits));
  EXPECT_EQ(shape_under(plan_under(Framework::pytorch, Host::eager), kLlamaLayers + 1).working,
            Bytes(10 * logits));
}

TEST(PytorchMemory, DistributedDataParallelHasBucketsOfItsOwn) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  EXPECT_EQ(use_under(plan).communication_buffers, Bytes(0));
  plan.ranks = 2;
  const MemoryUse use = use_under(plan);
  EXPECT_EQ(use.communication_buffers, use.weights);
  EXPECT_EQ(use.gradients, use.weights * 2);
  plan.framework = Framework::megatron;
  EXPECT_EQ(use_under(plan).communication_buffers, Bytes(0));
}

// FSDP2's shards are fp32; 4 bytes of master weights and 8 of Adam's states per parameter.
TEST(PytorchMemory, FullyShardedWeightsAreTheMasterWeights) {
  Plan plan = plan_under(Framework::megatron, Host::eager);
  plan.ranks = 4;
  plan.zero_stage = 3;
  const MemoryUse megatron = use_under(plan);
  plan.framework = Framework::pytorch;
  const MemoryUse use = use_under(plan);
  EXPECT_GT(megatron.weights, Bytes(0));
  EXPECT_EQ(use.weights, Bytes(0));
  EXPECT_EQ(use.optimizer, megatron.optimizer);
  EXPECT_EQ(use.optimizer, use.gradients * 3);
  // In bf16: weights of 2 bytes, states of 4, no master weights.
  plan.state_dtype = DType::bf16;
  EXPECT_EQ(use_under(plan).weights, megatron.weights);
  EXPECT_EQ(use_under(plan).optimizer, use.gradients);
}

TEST(PytorchMemory, GradientsThatAreReducedLateAreWhole) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.ranks = 4;
  plan.zero_stage = 3;
  plan.batch = plan.micro_batches = 2;
  const Bytes shard = use_under(plan).gradients;
  plan.no_sync = true;
  EXPECT_EQ(use_under(plan).gradients, shard * 4);
  plan.batch = plan.micro_batches = 1;
  EXPECT_EQ(use_under(plan).gradients, shard);
}

// With sequence parallelism, what two products read: whole instead of a share.
TEST(PytorchMemory, WithoutStagesGatheredInputsAreHeld) {
  Plan plan = plan_under(Framework::megatron, Host::compiled);
  plan.ranks = plan.tensor = 4;
  plan.sequence_parallel = true;
  const Bytes shared = shape_under(plan, 1).saved;
  plan.framework = Framework::pytorch;
  EXPECT_EQ(shape_under(plan, 1).saved, shared + Bytes(2 * 2 * kLlamaTokens * kLlamaHidden * 3 / 4));
  plan.pipeline = 2;
  plan.ranks = 8;
  EXPECT_EQ(shape_under(plan, 1).saved, shared);
}

// Adapters' gradients and states alone; the frozen weights once.
TEST(PytorchMemory, FrozenWeightsHaveNeitherGradientsNorStates) {
  const auto memory = [&](std::int64_t rank) {
    const Model model = small_llama(rank);
    const Plan plan = plan_under(Framework::megatron, Host::compiled);
    return hybrid_memory(lower_hybrid(model, plan), plan, Device()).front().use;
  };
  const MemoryUse whole = memory(0), adapted = memory(8);
  // PEFT's count: rank x (inputs + outputs) of seven projections.
  const std::int64_t adapters =
      8 * kLlamaLayers * (4 * 2 * kLlamaHidden + 3 * (kLlamaHidden + kLlamaFeedForward));
  EXPECT_EQ(adapted.weights, whole.weights + Bytes(2 * adapters));
  EXPECT_EQ(adapted.gradients, Bytes(4 * adapters));
  EXPECT_EQ(adapted.optimizer, Bytes(12 * adapters));
}

}  // namespace
}  // namespace armilla
