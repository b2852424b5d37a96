// Memory of a transformer under PyTorch's kernels and wrappers, against Megatron's and by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

// Queries and keys before their rotation stay with the values, which one product makes with them. The two
// norms keep what they read in fp32.
TEST(PytorchMemory, AnEagerLayerKeepsItsActivationAndAllOfItsProducts) {
  const Bytes fused = shape_under(plan_under(Framework::megatron, Host::eager), 1).saved;
  const Bytes products(2 * kLlamaTokens * (kLlamaFeedForward + 2 * kLlamaHidden));
  const Bytes wide(2 * 4 * kLlamaTokens * kLlamaHidden);
  EXPECT_EQ(shape_under(plan_under(Framework::pytorch, Host::eager), 1).saved, fused + products + wide);
  Plan norms = plan_under(Framework::pytorch, Host::eager);
  norms.fused_elementwise = {Part::norm, Part::rotary};
  EXPECT_EQ(shape_under(norms, 1).saved, fused + products);
  // Recomputed with the rest of the block.
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  const Bytes without = shape_under(plan_under(Framework::megatron, Host::eager), 1).working;
  plan.recompute = Recompute::full;
  EXPECT_EQ(shape_under(plan, 1).saved, Bytes(2 * kLlamaTokens * kLlamaHidden));
  EXPECT_GE(shape_under(plan, 1).working, without + Bytes(2 * kLlamaTokens * kLlamaFeedForward));
}

// Probabilities are kept, 4 bytes; beside them the gradient of a fused loss, 2, or 8 of PyTorch's operators.
// A compiled loss keeps the logits, 2 bytes, and holds their gradient.
TEST(PytorchMemory, AnEagerLossHoldsTwoGradientsInFp32) {
  const std::int64_t logits = kLlamaTokens * kLlamaVocabulary;
  const auto head = [](Framework framework, Host host) {
    return shape_under(plan_under(framework, host), kLlamaLayers + 1);
  };
  const Bytes fused = head(Framework::megatron, Host::eager).saved;
  EXPECT_EQ(head(Framework::megatron, Host::eager).working, Bytes(2 * logits));
  EXPECT_EQ(head(Framework::pytorch, Host::eager).working, Bytes(8 * logits));
  // The last norm keeps what it reads in fp32.
  EXPECT_EQ(head(Framework::pytorch, Host::eager).saved, fused + Bytes(4 * kLlamaTokens * kLlamaHidden));
  EXPECT_EQ(head(Framework::pytorch, Host::compiled).working, Bytes(2 * logits));
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
  EXPECT_EQ(use_under(plan).communication_buffers(), Bytes(0));
  plan.ranks = 2;
  plan.batch = plan.micro_batches = 2;
  const MemoryUse use = use_under(plan);
  EXPECT_EQ(use.communication_buffers(), use.weights);
  EXPECT_EQ(use.gradients, use.weights * 2);
  plan.framework = Framework::megatron;
  EXPECT_EQ(use_under(plan).communication_buffers(), Bytes(0));
}

// FSDP2's shards are fp32; 4 bytes of master weights and 8 of Adam's states per parameter.
TEST(PytorchMemory, FullyShardedWeightsAreTheMasterWeights) {
  Plan plan = plan_under(Framework::megatron, Host::eager);
  plan.ranks = 4;
  plan.zero_stage = 3;
  plan.batch = plan.micro_batches = 2;
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
}

struct Replay {
  std::int64_t at_loss = 0, most = 0, gradients = 0;
};

// Block by block: what the first backward pass holds, with gradients of 4 bytes of the blocks behind.
Replay replay_first_backward(const Plan& plan) {
  const ShardedModel model = shard_model(small_llama(), plan, 0, "plan");
  Replay replay;
  std::int64_t saved = 0;
  for (const ShardedBlock& block : model.blocks) saved += model.shapes[block.shape].saved.value;
  for (std::size_t b = model.blocks.size(); b-- > 0;) {
    const BlockShape& shape = model.shapes[model.blocks[b].shape];
    replay.most = std::max(replay.most, saved + shape.working.value + replay.gradients);
    if (b + 1 == model.blocks.size()) replay.at_loss = replay.most;
    saved -= shape.saved.value;
    for (const WeightGroup& group : shape.weights) replay.gradients += 4 * group.elements;
  }
  replay.most = std::max(replay.most, replay.gradients);
  return replay;
}

std::int64_t coming_and_going(const MemoryUse& use) {
  return (use.activations + use.temporary + use.gradients).value;
}

// Autograd makes them block by block, while activations go. FSDP's parameters are fp32, as its gradients, and
// its buckets are of a block each.
TEST(PytorchMemory, GradientsAreMadeByTheFirstBackwardPass) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.zero_stage = 3;
  const Replay replay = replay_first_backward(plan);
  EXPECT_EQ(replay.most, replay.at_loss);
  EXPECT_EQ(coming_and_going(use_under(plan)), replay.most);
  EXPECT_EQ(use_under(plan).gradients, Bytes(0));
  // Later passes have all of them, and so have arrays of a wider type than the parameters, and Megatron's.
  plan.batch = plan.micro_batches = 2;
  EXPECT_EQ(use_under(plan).gradients, Bytes(replay.gradients));
  EXPECT_EQ(coming_and_going(use_under(plan)), replay.at_loss + replay.gradients);
  plan.batch = plan.micro_batches = 1;
  plan.zero_stage = 0;
  EXPECT_EQ(use_under(plan).gradients, Bytes(replay.gradients));
  plan.gradient_dtype = DType::bf16;
  EXPECT_EQ(use_under(plan).gradients, Bytes(0));
  plan.framework = Framework::megatron;
  EXPECT_EQ(use_under(plan).gradients, Bytes(replay.gradients / 2));
}

// A compiled loss holds less than what the passes of the first layers leave behind.
TEST(PytorchMemory, ThePeakMayBeInsideTheBackwardPass) {
  Plan plan = plan_under(Framework::pytorch, Host::compiled);
  plan.zero_stage = 3;
  plan.recompute = Recompute::full;
  const Replay replay = replay_first_backward(plan);
  EXPECT_GT(replay.most, replay.at_loss);
  const RoleMemory role = hybrid_memory(lower_hybrid(small_llama(), plan), plan, Device()).front();
  EXPECT_EQ(coming_and_going(role.use), replay.most);
  std::int64_t most = 0;
  for (const MemoryMoment& moment : role.over_time)
    most = std::max(most, (moment.activations + moment.temporary + moment.gradients).value);
  EXPECT_EQ(most, replay.most);
  EXPECT_EQ(role.over_time.front().gradients, Bytes(0));
  EXPECT_EQ(role.over_time.back().gradients, Bytes(replay.gradients));
}

// Autograd's gradients, of the weights' type, are added to arrays of a wider one when a pass is over, each
// pass anew; until then those of the blocks behind are there.
TEST(PytorchMemory, NarrowGradientsStayUntilTheirPassIsOver) {
  Plan plan = plan_under(Framework::pytorch, Host::compiled);
  plan.recompute = Recompute::full;
  const std::string text =
      "family: llama\nlayers: 12\nhidden: 1024\nheads: 8\nfeed_forward: 4096\nvocabulary: 1024\n"
      "sequence: 2048\n";
  const Model deep = read_described_yaml(text, "m", {});
  const auto use_of = [&] { return hybrid_memory(lower_hybrid(deep, plan), plan, Device()).front().use; };
  const ShardedModel model = shard_model(deep, plan, 0, "plan");
  std::int64_t saved = 0, behind = 0, most = 0, behind_at_most = 0, elements = 0;
  for (const ShardedBlock& block : model.blocks) saved += model.shapes[block.shape].saved.value;
  for (std::size_t b = model.blocks.size(); b-- > 0;) {
    const BlockShape& shape = model.shapes[model.blocks[b].shape];
    const std::int64_t held = saved + shape.working.value + behind;
    if (held > most) behind_at_most = behind;
    most = std::max(most, held);
    saved -= shape.saved.value;
    for (const WeightGroup& group : shape.weights) {
      behind += 2 * group.elements;
      elements += group.elements;
    }
  }
  EXPECT_GT(behind_at_most, 0);
  EXPECT_EQ(coming_and_going(use_of()), most + 4 * elements);
  EXPECT_EQ(use_of().gradients, Bytes(behind_at_most + 4 * elements));
  plan.batch = plan.micro_batches = 2;
  EXPECT_EQ(coming_and_going(use_of()), most + 4 * elements);
  // Fully sharded, they are added block by block.
  plan.zero_stage = 3;
  plan.state_dtype = DType::bf16;
  EXPECT_EQ(use_of().gradients, Bytes(4 * elements));
}

// Without accumulation fusion the gradient of a product's weight is there beside what it is added to: that of
// gate and up, the largest product of a layer; of a whole block under FSDP, which exchanges them together.
// With it Megatron's products outside of the layers make one all the same, and its table.
TEST(PytorchMemory, TheGradientAtWorkIsOfTheOperatorAtWork) {
  constexpr std::int64_t kTensors = 2 * kLlamaTokens * (kLlamaHidden + 2 * kLlamaFeedForward);
  constexpr std::int64_t kGradient = 2 * 2 * kLlamaHidden * kLlamaFeedForward;
  constexpr std::int64_t kActivation = 3 * 2 * kLlamaTokens * kLlamaFeedForward;  // of no weight
  Plan plan = plan_under(Framework::megatron, Host::eager);
  const auto working = [&](bool fused, std::size_t block) {
    plan.accumulation_fusion = fused;
    return shape_under(plan, block).working;
  };
  EXPECT_EQ(working(true, 1), Bytes(kActivation));
  EXPECT_EQ(working(false, 1), Bytes(kTensors + kGradient));
  EXPECT_GE(working(true, 0), Bytes(2 * kLlamaVocabulary * kLlamaHidden));
  EXPECT_EQ(working(true, 0), working(false, 0));
  plan.framework = Framework::pytorch;
  plan.fused_elementwise = {Part::norm, Part::rotary, Part::activation};
  EXPECT_EQ(working(false, 1), Bytes(kTensors + kGradient));
  plan.zero_stage = 3;
  std::int64_t layer = 0;
  for (const WeightGroup& group : shape_under(plan, 1).weights) layer += group.elements;
  EXPECT_EQ(working(false, 1), Bytes(kActivation + 2 * layer));
  EXPECT_EQ(working(true, 1), Bytes(kActivation));
}

// A product's inputs are gathered and its outputs summed, twice in a layer. Of all layers and of the
// embedding and the head, which have one each.
TEST(PytorchMemory, WhatTensorParallelismExchangesIsFreedLate) {
  constexpr std::int64_t kWhole = 2 * kLlamaTokens * kLlamaHidden;
  // Two sums in a layer and one of the embedding; two arrays for what is gathered.
  constexpr std::int64_t kSummed = (2 * kLlamaLayers + 1) * kWhole, kArrays = 2 * kWhole;
  constexpr std::int64_t kLoss =
      3 * 4 * kLlamaTokens;  // the largest logit, the sum and the target's, in fp32
  Plan plan = plan_under(Framework::megatron, Host::eager);
  plan.ranks = plan.tensor = 4;
  plan.sequence_parallel = true;
  plan.tensor_method = TensorMethod::megatron;
  EXPECT_EQ(use_under(plan).communication_buffers(), Bytes(0));
  plan.framework = Framework::pytorch;
  EXPECT_EQ(use_under(plan).communication_buffers(), Bytes(kSummed + kLoss + kArrays));
  // Logits are gathered in the head alone.
  plan.loss_parallel = false;
  EXPECT_EQ(use_under(plan).communication_buffers(),
            Bytes(kSummed + 2 * kLlamaTokens * kLlamaVocabulary + kArrays));
  plan.host = Host::compiled;
  EXPECT_EQ(use_under(plan).communication_buffers(), Bytes(0));
}

// A product of DTensor's reads what an operation before it has gathered: whole instead of a share.
TEST(PytorchMemory, ProductsOfDTensorKeepWhatWasGathered) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.ranks = plan.tensor = 4;
  plan.sequence_parallel = true;
  plan.tensor_method = TensorMethod::megatron;
  const Bytes shared = shape_under(plan, 1).saved;
  plan.tensor_method = TensorMethod::dtensor;
  const Bytes held(2 * 2 * kLlamaTokens * kLlamaHidden * 3 / 4);
  EXPECT_EQ(shape_under(plan, 1).saved, shared + held);
  plan.host = Host::compiled;
  // Nor are the activation and its product with the gate kept, queries and keys before their rotation, or
  // what norms read in fp32.
  const Bytes unrotated(2 * 2 * kLlamaTokens * kLlamaHidden / 4),
      wide(2 * 4 * kLlamaTokens * kLlamaHidden / 4);
  const Bytes activation(2 * kLlamaTokens * kLlamaFeedForward / 4);
  EXPECT_EQ(shape_under(plan, 1).saved, shared - activation * 2 - unrotated - wide + held);
}

// What products gather lies in one array for inputs and one for gradients, whatever the number of layers.
TEST(PytorchMemory, EagerProductsShareTheArraysForWhatTheyGather) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.ranks = plan.tensor = 4;
  plan.tensor_method = TensorMethod::megatron;
  EXPECT_EQ(use_under(plan).buffer(MemoryBuffer::gathered_inputs), Bytes(0));
  plan.sequence_parallel = true;
  EXPECT_EQ(use_under(plan).buffer(MemoryBuffer::gathered_inputs),
            Bytes(2 * 2 * kLlamaTokens * kLlamaHidden));
  plan.tensor_method = TensorMethod::automatic;
  EXPECT_EQ(use_under(plan).buffer(MemoryBuffer::gathered_inputs), Bytes(0));
  plan.tensor_method = TensorMethod::megatron;
  plan.host = Host::compiled;
  EXPECT_EQ(use_under(plan).buffer(MemoryBuffer::gathered_inputs), Bytes(0));
  plan.framework = Framework::megatron;
  plan.host = Host::eager;
  EXPECT_EQ(use_under(plan).buffer(MemoryBuffer::gathered_inputs), Bytes(0));
}

// The allocator gets them back where memory is short.
TEST(PytorchMemory, WhatIsFreedLateTakesNoMoreThanThereIsRoomFor) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.ranks = plan.tensor = 4;
  const LoweredJob job = lower_hybrid(small_llama(), plan);
  const MemoryUse all = hybrid_memory(job, plan, Device()).front().use;
  const Bytes late = all.buffer(MemoryBuffer::freed_late);
  Device device;
  device.memory = all.needed() - late / 2;
  const MemoryUse use = hybrid_memory(job, plan, device).front().use;
  EXPECT_LT(use.buffer(MemoryBuffer::freed_late), late);
  EXPECT_GT(use.buffer(MemoryBuffer::freed_late), Bytes(0));
  EXPECT_TRUE(use.fits());
  EXPECT_GE(use.needed() + Bytes(2), device.memory);
  device.memory = all.weights;
  EXPECT_EQ(hybrid_memory(job, plan, device).front().use.buffer(MemoryBuffer::freed_late), Bytes(0));
}

// The queue of launches holds 32 layers' forward passes; messages of a pipeline keep host and device in step
// but for the passes that fill it, beyond two.
TEST(PytorchMemory, WhatIsFreedLateIsBoundedByTheQueueOfLaunches) {
  constexpr std::int64_t kWhole = 2 * kLlamaTokens * kLlamaHidden;
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.tensor = 2;
  plan.sequence_parallel = true;
  const auto late = [&](std::int64_t stages) {
    plan.pipeline = stages;
    plan.ranks = 2 * stages;
    plan.batch = plan.micro_batches = 8;
    const std::vector<RoleMemory> roles = hybrid_memory(lower_hybrid(small_llama(), plan), plan, Device());
    return roles.front().use.buffer(MemoryBuffer::freed_late).value;
  };
  constexpr std::int64_t kLoss = 3 * 4 * kLlamaTokens;
  // A forward pass and the backward pass before it.
  EXPECT_EQ(late(1), 2 * ((2 * kLlamaLayers + 1) * kWhole + kLoss));
  EXPECT_EQ(late(2), 0);
  // Four passes in flight on the first of four stages, each of the embedding and one layer.
  EXPECT_EQ(late(4), 2 * (1 + 2) * kWhole);
  const auto deep = [&](std::int64_t layers) {
    Plan one = plan_under(Framework::pytorch, Host::eager);
    one.tensor = one.ranks = 2;
    one.sequence_parallel = true;
    const Model model = read_described_yaml(
        fmt::format("family: llama\nlayers: {}\nhidden: 1024\nheads: 8\nfeed_forward: 4096\n"
                    "vocabulary: 32768\nsequence: 2048\n",
                    layers),
        "m", {});
    return hybrid_memory(lower_hybrid(model, one), one, Device())
        .front()
        .use.buffer(MemoryBuffer::freed_late)
        .value;
  };
  EXPECT_EQ(deep(12), (2 * 12 + 1) * kWhole + kLoss);
  EXPECT_EQ(deep(24), (2 * 24 + 1) * kWhole + kLoss);
  // 32 of 50 blocks.
  EXPECT_EQ(deep(48), ((2 * 48 + 1) * kWhole + kLoss) * 32 / 50);
}

// Hosts that are ahead of a slow device in every pass have all passes in flight in the queue: the last
// forward pass, and of those before, both ways, what fits beside it.
TEST(PytorchMemory, SlowDevicesFreeThePassesOfAPipelineLate) {
  constexpr std::int64_t kWhole = 2 * kLlamaTokens * kLlamaHidden;
  const auto late = [](std::int64_t layers, std::int64_t stages, FlopRate rate) {
    Plan plan = plan_under(Framework::pytorch, Host::eager);
    plan.tensor = 2;
    plan.sequence_parallel = true;
    plan.pipeline = stages;
    plan.ranks = 2 * stages;
    plan.batch = plan.micro_batches = 8;
    const Model model = read_described_yaml(
        fmt::format("family: llama\nlayers: {}\nhidden: 1024\nheads: 8\nfeed_forward: 4096\n"
                    "vocabulary: 32768\nsequence: 2048\n",
                    layers),
        "m", {});
    Device device;
    device.matrix_rate[DType::bf16] = rate;
    return hybrid_memory(lower_hybrid(model, plan), plan, device)
        .front()
        .use.buffer(MemoryBuffer::freed_late)
        .value;
  };
  const FlopRate quick(1e15), slow(1e13);
  EXPECT_EQ(late(4, 2, quick), 0);
  // Two passes in flight, each of the embedding and two layers.
  EXPECT_EQ(late(4, 2, slow), 2 * (1 + 2 * 2) * kWhole);
  EXPECT_EQ(late(4, 4, quick), 2 * (1 + 2) * kWhole);
  EXPECT_EQ(late(4, 4, slow), 4 * (1 + 2) * kWhole);
  // 21 blocks forward are 672 launches, which leaves room for 7 of the pass before.
  EXPECT_EQ(late(40, 2, slow), (1 + 2 * 20) * kWhole * 28 / 21);
}

// Whatever the device, where steps show that the host is the slower one.
TEST(PytorchMemory, NothingIsFreedLateOnManyRanks) {
  const std::string text =
      "family: llama\nlayers: 4\nhidden: 1024\nheads: 32\nfeed_forward: 4096\nvocabulary: 32768\n"
      "sequence: 2048\n";
  const Model model = read_described_yaml(text, "m", {});
  const auto late = [&](std::int64_t tensor, std::int64_t ranks) {
    Plan plan = plan_under(Framework::pytorch, Host::eager);
    plan.tensor = tensor;
    plan.ranks = ranks;
    return hybrid_memory(lower_hybrid(model, plan), plan, Device())
        .front()
        .use.buffer(MemoryBuffer::freed_late);
  };
  EXPECT_GT(late(4, 256), Bytes(0));
  EXPECT_EQ(late(4, 512), Bytes(0));
  EXPECT_GT(late(32, 512), Bytes(0));
}

// All weights once in shards and once in one array, and the rank's own shard, in memory of which later the
// optimizer's states (8 bytes per parameter, divided among the replicas) use as much as they are.
TEST(PytorchMemory, ArraysThatExchangeWeightsTakeMemoryWhereTheyAreLarge) {
  // Beside what is lost, and the weights, in bytes.
  const auto idle = [](std::int64_t replicas, std::int64_t sequence, Host host) {
    const Model model = read_described_yaml(
        fmt::format("family: llama\nlayers: 4\nhidden: 1024\nheads: 8\nfeed_forward: 4096\n"
                    "vocabulary: 32768\nsequence: {}\n",
                    sequence),
        "m", {});
    Plan plan = plan_under(Framework::pytorch, host);
    plan.zero_stage = 1;
    plan.pipeline = 2;
    plan.ranks = 2 * replicas;
    plan.batch = plan.micro_batches = 2;
    const MemoryUse use = hybrid_memory(lower_hybrid(model, plan), plan, Device()).front().use;
    const Bytes in_use = use.weights + use.gradients + use.optimizer + use.activations + use.temporary +
                         use.communication_buffers();
    return std::pair(static_cast<double>(use.fragmentation.value) - 0.04 * static_cast<double>(in_use.value),
                     static_cast<double>(use.weights.value));
  };
  constexpr double kRounding = 1'024;
  for (const std::int64_t replicas : {2, 8}) {
    const auto [lost, weights] = idle(replicas, 256, Host::eager);
    EXPECT_NEAR(lost, weights * (2 + (1 - 4.0) / static_cast<double>(replicas)), kRounding);
  }
  // Activations leave blocks that are large enough for shards, then for all weights.
  const auto [lost, weights] = idle(8, 4096, Host::eager);
  EXPECT_NEAR(lost, weights * (1 - 4.0 / 8), kRounding);
  EXPECT_NEAR(idle(8, 16384, Host::eager).first, 0, kRounding);
  EXPECT_NEAR(idle(8, 256, Host::compiled).first, 0, kRounding);
}

// A block that held logits in fp32 is large enough for a shard, one of logits in bf16 is not.
TEST(PytorchMemory, ArraysThatExchangeWeightsFitWhereTheLossHeldLogits) {
  const std::string text =
      "family: llama\nlayers: 4\nhidden: 1024\nheads: 8\nfeed_forward: 4096\nvocabulary: 32768\n"
      "sequence: 200\n";
  const Model model = read_described_yaml(text, "m", {});
  // In weights.
  const auto idle = [&](LossKernel loss) {
    Plan plan = plan_under(Framework::pytorch, Host::eager);
    plan.zero_stage = 1;
    plan.ranks = 16;
    plan.loss = loss;
    const MemoryUse use = hybrid_memory(lower_hybrid(model, plan), plan, Device()).front().use;
    const Bytes in_use = use.weights + use.gradients + use.optimizer + use.activations + use.temporary +
                         use.communication_buffers();
    return (static_cast<double>(use.fragmentation.value) - 0.04 * static_cast<double>(in_use.value)) /
           static_cast<double>(use.weights.value);
  };
  EXPECT_NEAR(idle(LossKernel::in_place), 1 - 4.0 / 16, 1e-6);
  EXPECT_NEAR(idle(LossKernel::narrow), 2 + (1 - 4.0) / 16, 1e-6);
}

// They would take the last of the memory, and are given back for what is in use.
TEST(PytorchMemory, ArraysThatExchangeWeightsAreGivenBackWhereMemoryRunsShort) {
  const std::string text =
      "family: llama\nlayers: 4\nhidden: 1024\nheads: 8\nfeed_forward: 4096\nvocabulary: 32768\n"
      "sequence: 256\n";
  const Model model = read_described_yaml(text, "m", {});
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.zero_stage = 1;
  plan.ranks = 8;
  plan.batch = 1;
  const auto use_on = [&](Bytes memory) {
    Device device;
    device.memory = memory;
    return hybrid_memory(lower_hybrid(model, plan), plan, device).front().use;
  };
  const MemoryUse roomy = use_on(Bytes(0));
  const Bytes all = roomy.needed();
  EXPECT_EQ(use_on(all + Bytes(1'000'000)).fragmentation, roomy.fragmentation);
  const MemoryUse narrow = use_on(all - Bytes(1'000'000));
  EXPECT_LT(narrow.fragmentation + Bytes(200'000'000), roomy.fragmentation);
}

// Shards of the optimizer whose gradients have wider arrays of their own exchange these.
TEST(PytorchMemory, OnlyGradientsThatHaveNoArraysAreExchangedInBuckets) {
  const auto buckets = [](int zero_stage, DType gradients) {
    Plan plan = plan_under(Framework::pytorch, Host::eager);
    plan.ranks = 4;
    plan.zero_stage = zero_stage;
    plan.gradient_dtype = gradients;
    const MemoryUse use = use_under(plan);
    return std::pair(use.buffer(MemoryBuffer::gradient_buckets), use.weights);
  };
  const Bytes weights = buckets(0, DType::fp32).second;
  EXPECT_EQ(buckets(0, DType::fp32).first, weights);
  EXPECT_EQ(buckets(1, DType::fp32).first, Bytes(0));
  EXPECT_EQ(buckets(1, DType::bf16).first, weights);
}

// Tables that are not divided are whole on every rank, which looks up its own tokens alone.
TEST(PytorchMemory, WholeEmbeddingsAreOnEveryTensorRank) {
  Plan plan = plan_under(Framework::pytorch, Host::compiled);
  plan.ranks = plan.tensor = 4;
  plan.sequence_parallel = true;
  const MemoryUse divided = use_under(plan);
  plan.embedding_parallel = false;
  const MemoryUse whole = use_under(plan);
  constexpr std::int64_t kMore = kLlamaVocabulary * kLlamaHidden * 3 / 4;
  EXPECT_EQ(whole.weights, divided.weights + Bytes(2 * kMore));
  EXPECT_EQ(whole.optimizer, divided.optimizer + Bytes(12 * kMore));
  EXPECT_EQ(shape_under(plan, 0).output, Bytes(2 * kLlamaTokens * kLlamaHidden / 4));
  const auto exchanges = [&](const Pass& pass) {
    return std::ranges::count(pass.steps, NodeKind::collective, &PassStep::kind);
  };
  EXPECT_EQ(exchanges(shape_under(plan, 0).forward), 0);
  plan.embedding_parallel = true;
  EXPECT_EQ(exchanges(shape_under(plan, 0).forward), 1);
}

// It is one operation, which makes the gradient where the probabilities are.
TEST(PytorchMemory, ALossInPlaceHoldsOneGradient) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.loss = LossKernel::in_place;
  EXPECT_EQ(shape_under(plan, kLlamaLayers + 1).working, Bytes(4 * kLlamaTokens * kLlamaVocabulary));
  EXPECT_EQ(shape_under(plan, kLlamaLayers + 1).saved,
            shape_under(plan_under(Framework::pytorch, Host::eager), kLlamaLayers + 1).saved);
}

// What is freed late is no longer in use, and nothing of it is lost.
TEST(PytorchMemory, WhatIsFreedLateHasNoFragments) {
  Plan plan = plan_under(Framework::pytorch, Host::eager);
  plan.ranks = plan.tensor = 4;
  const MemoryUse use = use_under(plan);
  ASSERT_GT(use.buffer(MemoryBuffer::freed_late), Bytes(0));
  const Bytes in_use = use.weights + use.gradients + use.optimizer + use.activations + use.temporary +
                       use.communication_buffers() - use.buffer(MemoryBuffer::freed_late);
  EXPECT_NEAR(static_cast<double>(use.fragmentation.value), 0.04 * static_cast<double>(in_use.value), 1);
}

// The host issues less than the device does in pipelines over so many tensor ranks.
TEST(PytorchMemory, NothingIsFreedLateInPipelinesOverManyTensorRanks) {
  const auto late = [](std::int64_t tensor, std::int64_t stages) {
    const std::string text =
        "family: llama\nlayers: 4\nhidden: 1024\nheads: 32\nfeed_forward: 4096\nvocabulary: 32768\n"
        "sequence: 2048\n";
    const Model model = read_described_yaml(text, "m", {});
    Plan plan = plan_under(Framework::pytorch, Host::eager);
    plan.tensor = tensor;
    plan.pipeline = stages;
    plan.ranks = tensor * stages;
    plan.batch = plan.micro_batches = 8;
    return hybrid_memory(lower_hybrid(model, plan), plan, Device())
        .front()
        .use.buffer(MemoryBuffer::freed_late);
  };
  EXPECT_GT(late(16, 4), Bytes(0));
  EXPECT_EQ(late(32, 4), Bytes(0));
  EXPECT_GT(late(32, 1), Bytes(0));
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
