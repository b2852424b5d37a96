// Memory of whole transformers against published formulas and figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units_text.h"
#include "lower/memory.h"
#include "lower/plan.h"
#include "read/read.h"

namespace armilla {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// The layer of Korthikanti et al. 2022, figure 2, in the size of the paper's 22B model (table 3).
constexpr std::int64_t kHidden = 6144, kHeads = 64, kSequence = 2048, kBatch = 4, kLayers = 48;

Model transformer_of(const std::string& attention) {
  const std::string text =
      "name: m\nfamily: gpt\nlayers: 48\nhidden: 6144\nheads: 64\nvocabulary: 51200\nsequence: 2048\n"
      "dropout: true\nattention: " +
      attention + "\n";
  ModelOptions options;
  options.batch = kBatch;
  return read_described_yaml(text, "m", options);
}

Plan tensor_plan(std::int64_t tensor, bool sequence_parallel, Recompute recompute) {
  Plan plan;
  plan.ranks = plan.tensor = tensor;
  plan.batch = kBatch;
  plan.sequence_parallel = sequence_parallel;
  plan.recompute = recompute;
  plan.precision = plan.weight_dtype = plan.parameter_dtype = DType::bf16;
  plan.gradient_dtype = DType::fp32;
  plan.optimizer = Optimizer::adam;
  return plan;
}

// Bytes that block `index` keeps, over s b h.
double kept(const Model& model, const Plan& plan, std::size_t index) {
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  return static_cast<double>(sharded.shapes[sharded.blocks[index].shape].saved.value) /
         static_cast<double>(kSequence * kBatch * kHidden);
}
double kept_by_layer(const Model& model, const Plan& plan) {
  return kept(model, plan, 2);  // after the embedding and the first layer
}

// Of the 34 bytes an element of Korthikanti et al.'s equation 1, 14 are inputs of products with weights: both
// norms' results, the attention's and the activation's.
TEST(TransformerMemory, ProductsInEightBitsKeepNarrowInputs) {
  const Model model = transformer_of("unfused");
  const double scores = 5.0 * kHeads * kSequence / kHidden;
  for (const std::int64_t tensor : {1, 2}) {
    const auto t = static_cast<double>(tensor);
    Plan plan = tensor_plan(tensor, false, Recompute::none);
    plan.precision = DType::fp8;
    EXPECT_NEAR(kept_by_layer(model, plan), 8 + 19 / t + scores / t, 1e-9);
    plan.scaling = Scaling::block;  // a byte for 32; the attention's result stays as it is
    EXPECT_NEAR(kept_by_layer(model, plan), 8 + 20 / t + scores / t + (2 + 4 / t) / 32, 1e-9);
    plan.precision = DType::fp4;  // four bits, and a byte for 16
    EXPECT_NEAR(kept_by_layer(model, plan), 8 + 20 / t + scores / t - (2 + 4 / t) * (1 - 4.5 / 8), 1e-9);
    plan.precision = DType::fp8;
    plan.wide_first_layers = kLayers;
    EXPECT_NEAR(kept_by_layer(model, plan), 10 + 24 / t + scores / t, 1e-9);
  }
  // The fused kernel keeps its result, too, of which the product behind it keeps a copy.
  const Model flash = transformer_of("flash");
  Plan plan = tensor_plan(1, false, Recompute::none);
  const double wide = kept_by_layer(flash, plan);
  plan.precision = DType::fp8;
  EXPECT_NEAR(kept_by_layer(flash, plan), wide - 2 - 4 + 1, 1e-9);
  plan.scaling = Scaling::current;
  EXPECT_NEAR(kept_by_layer(flash, plan), wide - 2 - 4, 1e-9);
  // Torchao's products keep what they were given.
  plan.framework = Framework::pytorch;
  const double narrow = kept_by_layer(flash, plan);
  plan.precision = DType::bf16;
  EXPECT_EQ(narrow, kept_by_layer(flash, plan));
}

// PyTorch's for two threads, one of Transformer Engine's, two more where products overlap with communication.
TEST(TransformerMemory, ProductsHaveWorkspaces) {
  const Model model = transformer_of("flash");
  Plan plan = tensor_plan(8, true, Recompute::none);
  plan.accumulation_fusion = false;
  Device device;
  const auto workspaces = [&] { return largest_use(model, plan, device)->buffer(MemoryBuffer::workspaces); };
  EXPECT_EQ(workspaces(), Bytes(0)) << "of devices that do not say";
  device.product_workspace = Bytes(10 << 20);
  EXPECT_EQ(workspaces(), Bytes((20 + 4) << 20));
  plan.overlap_tensor = true;
  EXPECT_EQ(workspaces(), Bytes((20 + 3 * 4) << 20));
  device.matrix_rate[DType::fp8] = FlopRate(1e15);
  EXPECT_EQ(workspaces(), Bytes((20 + 3 * 32) << 20));
  plan.framework = Framework::pytorch;
  EXPECT_EQ(workspaces(), Bytes(20 << 20));
  plan.framework = Framework::megatron;
  plan.host = Host::compiled;
  EXPECT_EQ(workspaces(), Bytes(0));
}

// One for queries, keys and values, one for the projection, one for both of the MLP's matrices, whatever the
// number of layers.
TEST(TransformerMemory, GradientsThatAreAddedAtOnceHavePlaceholders) {
  const Model model = transformer_of("flash");
  Device device;
  device.product_workspace = Bytes(1);
  for (const std::int64_t tensor : {1, 8}) {
    Plan plan = tensor_plan(tensor, true, Recompute::none);
    const auto workspaces = [&] {
      return largest_use(model, plan, device)->buffer(MemoryBuffer::workspaces);
    };
    plan.accumulation_fusion = false;
    const Bytes without = workspaces();
    plan.accumulation_fusion = true;
    EXPECT_EQ(workspaces() - without, Bytes(2 * (3 + 1 + 4) * kHidden * kHidden / tensor));
  }
}

// Korthikanti et al. 2022, equations 1, 2 and 4, table 2.
TEST(TransformerMemory, ALayerKeepsWhatTheFormulasSay) {
  const Model model = transformer_of("unfused");
  const double scores = 5.0 * kHeads * kSequence / kHidden;
  for (const std::int64_t tensor : {1, 2, 8}) {
    const auto t = static_cast<double>(tensor);
    const auto of = [&](bool sequence_parallel, Recompute recompute) {
      return kept_by_layer(model, tensor_plan(tensor, sequence_parallel, recompute));
    };
    EXPECT_NEAR(of(false, Recompute::none), 10 + 24 / t + scores / t, 1e-9);
    EXPECT_NEAR(of(true, Recompute::none), 34 / t + scores / t, 1e-9);
    EXPECT_NEAR(of(false, Recompute::selective), 10 + 24 / t, 1e-9);
    EXPECT_NEAR(of(true, Recompute::selective), 34 / t, 1e-9);
    EXPECT_NEAR(of(false, Recompute::full), 2, 1e-9);
  }
}

// Attention and MLP that read the same input keep it once, and no sum between them.
TEST(TransformerMemory, AParallelResidualKeepsOneTensorLess) {
  const Model model = transformer_of("unfused\nparallel_residual: true");
  EXPECT_NEAR(kept_by_layer(model, tensor_plan(8, false, Recompute::selective)), 8 + 24 / 8.0, 1e-9);
}

// Flash attention never writes the scores: what selective recompute would free is not there. Beside 34 s b h
// it keeps the softmax's statistics, 4 bytes per token and head, in the operator's own buffers (not counted).
TEST(TransformerMemory, FlashAttentionKeepsNoScores) {
  const Model model = transformer_of("flash");
  for (const auto recompute : {Recompute::none, Recompute::selective})
    EXPECT_NEAR(kept_by_layer(model, tensor_plan(8, true, recompute)), 34.0 / 8, 1e-9);
}

// Section 4.3: the embedding's dropout s b h, the head 4 s b h (1 + v / h), all over t with sequence
// parallelism.
TEST(TransformerMemory, AModelKeepsWhatTheFormulasSay) {
  const Model model = transformer_of("unfused");
  const Plan plan = tensor_plan(8, true, Recompute::none);
  double sum = 0;
  for (std::size_t block = 0; block < kLayers + 2; ++block) sum += kept(model, plan, block);
  const double layer = 34 + 5.0 * kHeads * kSequence / kHidden;
  // The token ids and their labels are not in the formula.
  EXPECT_NEAR(sum, (1 + kLayers * layer + 4 * (1 + 51200.0 / kHidden)) / 8, 0.01);
}

// Equation 5: the first stage keeps s b h L / t (34 + 5 a s / h) whatever the pipeline, and 1F1B's later ones
// (p - rank) / p of it. The last stage needs most while it works on its last layer, when the head keeps
// nothing.
TEST(TransformerMemory, StagesKeepWhatTheFormulasSay) {
  const Model model = transformer_of("unfused");
  Plan plan = tensor_plan(8, true, Recompute::none);
  plan.pipeline = 4;
  plan.ranks = 32;
  plan.micro_batches = 8;
  plan.batch = plan.micro_batches * kBatch;
  const std::vector<RoleMemory> roles = hybrid_memory(lower_hybrid(model, plan), plan, Device());
  ASSERT_EQ(roles.size(), 4U);
  const double unit = static_cast<double>(kSequence * kBatch * kHidden) / 8;
  const double layer = 34 + 5.0 * kHeads * kSequence / kHidden;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double in_flight = 4 - static_cast<double>(rank);
    const double embedding = rank == 0 ? in_flight : 0;
    EXPECT_NEAR(static_cast<double>(roles[rank].use.activations.value) / unit,
                in_flight * (kLayers / 4) * layer + embedding, 0.05)
        << "rank " << rank;
    EXPECT_EQ(roles[rank].most_in_flight, static_cast<std::int64_t>(in_flight));
    ASSERT_FALSE(roles[rank].over_time.empty());
    EXPECT_EQ(roles[rank].over_time.back().activations, Bytes(0));
    Bytes most;
    for (const MemoryMoment& moment : roles[rank].over_time)
      most = std::max(most, moment.activations + moment.temporary);
    EXPECT_EQ(most, roles[rank].use.activations + roles[rank].use.temporary);
  }
}

TEST(TransformerMemory, AdviceNamesWhatFits) {
  const Model model = transformer_of("unfused");
  const Plan plan = tensor_plan(8, false, Recompute::none);
  const auto advice = [&](std::int64_t gib) {
    Device device;
    device.memory = Bytes(gib << 30);
    return memory_advice(model, plan, device);
  };
  EXPECT_THAT(advice(1000), IsEmpty());  // it fits
  EXPECT_THAT(advice(80),
              ElementsAre(StartsWith("plan.micro_batch 1: "), StartsWith("plan.recompute full: "),
                          StartsWith("plan.offload optimizer: "), StartsWith("plan.offload activations: ")));
  EXPECT_THAT(advice(60),
              ElementsAre(StartsWith("plan.recompute full: "), StartsWith("plan.offload activations: ")));
  EXPECT_THAT(
      advice(20),
      ElementsAre("plan.micro_batch 1 and plan.recompute full and plan.offload optimizer: 17.75 GiB"));
  EXPECT_THAT(advice(5), IsEmpty());  // nothing helps
}

TEST(TransformerMemory, AdviceIsWhatThePlanThenNeeds) {
  const Model model = transformer_of("flash");
  Plan plan = tensor_plan(8, true, Recompute::none);
  plan.ranks = 64;
  Device device;
  device.memory = Bytes(std::int64_t{48} << 30);
  std::vector<std::string> expected;
  const auto expect = [&](const std::string& name, const Plan& changed) {
    Bytes most;
    for (const RoleMemory& role : hybrid_memory(lower_hybrid(model, changed), changed, device))
      most = std::max(most, role.use.peak());
    if (most <= device.memory) expected.push_back(name + ": " + to_text(most));
  };
  const auto changed = [&](const auto& change) {
    Plan other = plan;
    change(other);
    return other;
  };
  expect("plan.zero 1", changed([](Plan& p) { p.zero_stage = 1; }));
  expect("plan.zero 2", changed([](Plan& p) { p.zero_stage = 2; }));
  ASSERT_EQ(expected.size(), 2U);
  const std::vector<std::string> advice = memory_advice(model, plan, device);
  for (const std::string& line : expected) EXPECT_THAT(advice, Contains(line));
  const Plan wide = changed([](Plan& p) { p.tensor = 16, p.batch *= 2, p.micro_batches *= 2; });
  expect("plan.tensor 16", wide);
  EXPECT_THAT(advice, Contains(expected.back()));
}

TEST(TransformerMemory, AdviceNamesADegreeOnceWithItsLastValue) {
  const Model model = transformer_of("flash");
  Plan plan = tensor_plan(1, false, Recompute::none);
  plan.ranks = 64;
  int together = 0;
  for (std::int64_t gib = 2; gib < 64; gib += 2) {
    Device device;
    device.memory = Bytes(gib << 30);
    for (const std::string& line : memory_advice(model, plan, device)) {
      for (const std::string degree : {"plan.tensor", "plan.pipeline"})
        EXPECT_EQ(line.find(degree), line.rfind(degree)) << line;
      const bool names_both = line.find(" and plan.tensor") != std::string::npos;
      together += names_both ? 1 : 0;
    }
  }
  EXPECT_GT(together, 0);
}

}  // namespace
}  // namespace armilla
