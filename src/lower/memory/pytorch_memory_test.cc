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
  // Recomputed with the rest of the block.
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  const Bytes without = shape_under(plan_under(Framework::megatron, Host::eager), 1).working;
  plan.recompute = Recompute::full;
  EXPECT_EQ(shape_under(plan, 1).saved, Bytes(2 * kLlamaTokens * kLlamaHidden));
  EXPECT_GE(shape_under(plan, 1).working, without + Bytes(2 * kLlamaTokens * kLlamaFeedForward));
}

// Probabilities are kept, 4 bytes; beside them 4 bytes of a fused loss, 8 of PyTorch's operators. A compiled
// loss keeps the logits, 2 bytes, and holds their gradient.
TEST(PytorchMemory, AnEagerLossHoldsTwoGradientsInFp32) {
  const std::int64_t logits = kLlamaTokens * kLlamaVocabulary;
  const auto head = [](Framework framework, Host host) {
    return shape_under(plan_under(framework, host), kLlamaLayers + 1);
  };
  const Bytes fused = head(Framework::megatron, Host::eager).saved;
  EXPECT_EQ(head(Framework::megatron, Host::eager).working, Bytes(4 * logits));
  EXPECT_EQ(head(Framework::pytorch, Host::eager).working, Bytes(8 * logits));
  EXPECT_EQ(head(Framework::pytorch, Host::eager).saved, fused);
  // At work is the product that makes them.
  EXPECT_EQ(head(Framework::pytorch, Host::compiled).working,
            Bytes(2 * logits + 2 * kLlamaTokens * kLlamaHidden));
  // Nor are the tokens' losses kept, or what the last norm makes.
  EXPECT_EQ(head(Framework::pytorch, Host::compiled).saved,
            fused - Bytes(2 * logits) - Bytes((2 * kLlamaHidden + 4) * kLlamaTokens));
}

// Between a layer's norms and products, and between its activation and the last product.
TEST(PytorchMemory, CompiledLayersMakeNormsAndActivationsAgain) {
  const Bytes kept = shape_under(plan_under(Framework::megatron, Host::eager), 1).saved;
  EXPECT_EQ(shape_under(plan_under(Framework::pytorch, Host::compiled), 1).saved,
            kept - Bytes(2 * kLlamaTokens * (2 * kLlamaHidden + kLlamaFeedForward)));
  Plan plan = plan_under(Framework::pytorch, Host::compiled);
  plan.recompute = Recompute::full;
  EXPECT_EQ(shape_under(plan, 1).saved, Bytes(2 * kLlamaTokens * kLlamaHidden));
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
  Plan plan = plan_under(Framework::megatron, Host::eager);
  plan.ranks = plan.tensor = 4;
  plan.sequence_parallel = true;
  const Bytes shared = shape_under(plan, 1).saved;
  const Bytes held(2 * 2 * kLlamaTokens * kLlamaHidden * 3 / 4);
  const Bytes activation(2 * kLlamaTokens * kLlamaFeedForward / 4);
  plan.framework = Framework::pytorch;
  EXPECT_EQ(shape_under(plan, 1).saved, shared + activation + held);
  plan.pipeline = 2;
  plan.ranks = 8;
  EXPECT_EQ(shape_under(plan, 1).saved, shared + activation);
  // Compiled kernels make norms again, but nothing that was gathered.
  plan.host = Host::compiled;
  EXPECT_EQ(shape_under(plan, 1).saved, shared - activation - Bytes(2 * 2 * kLlamaTokens * kLlamaHidden / 4));
  plan.pipeline = 1;
  plan.ranks = 4;
  EXPECT_EQ(shape_under(plan, 1).saved, shared - activation + held);
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
