// What frameworks run operator by operator, and PyTorch's own tensor parallelism: counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "lower/shard/shard_testing.h"
#include "lower/shard/shard_work.h"
#include "lower/sharded_model.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr std::int64_t kRows = 512, kModelWidth = 256, kGate = 512, kHalf = 2, kTensorRanks = 4;
constexpr std::int64_t kGathered = kRows * kModelWidth * kHalf;

Model llama_with(std::string_view norm = "rmsnorm") {
  return read_described_yaml(
      fmt::format("family: llama\nlayers: 2\nhidden: 256\nheads: 4\nkv_heads: 2\nfeed_forward: 512\n"
                  "vocabulary: 8192\nsequence: 512\nnorm: {}\n",
                  norm),
      "m", ModelOptions());
}

struct Moved {
  std::int64_t forward = 0, backward = 0;
  friend bool operator==(const Moved&, const Moved&) = default;
};
std::ostream& operator<<(std::ostream& out, const Moved& moved) {
  return out << moved.forward << " and " << moved.backward;
}

// Bytes that an operator of the first layer moves.
Moved bytes_of(const Model& model, const Plan& plan, std::string_view name) {
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  const BlockShape& layer = shape_named(sharded, "layers.0");
  const auto sum = [&](const Pass& pass) {
    std::int64_t bytes = 0;
    for (const PassStep& step : pass.steps) {
      if (step.kind == NodeKind::compute && sharded.names[step.name] == name)
        bytes += sharded.works[step.work].bytes.value;
    }
    return bytes;
  };
  return {sum(layer.forward), sum(layer.backward)};
}

Plan eager_pytorch() {
  Plan plan = plan_of(1);
  plan.framework = Framework::pytorch;
  plan.host = Host::eager;
  return plan;
}

TEST(ShardFramework, EagerPyTorchReadsAndWritesBetweenOperations) {
  const Model model = llama_with();
  const std::int64_t elements = kRows * kModelWidth;
  const std::int64_t turned = elements + elements / 2;  // queries, and half as many keys
  EXPECT_EQ(bytes_of(model, eager_pytorch(), "attention.norm"), (Moved{36 * elements, 92 * elements}));
  EXPECT_EQ(bytes_of(model, eager_pytorch(), "attention.rotary"), (Moved{20 * turned, 20 * turned}));
  const std::int64_t inner = kRows * kGate;
  EXPECT_EQ(bytes_of(model, eager_pytorch(), "mlp.activation"), (Moved{10 * inner, 18 * inner}));

  // Without casts, of numbers of 4 bytes.
  Plan wide = eager_pytorch();
  wide.precision = DType::fp32;
  EXPECT_EQ(bytes_of(model, wide, "attention.norm"), (Moved{28 * elements, 92 * elements}));
  EXPECT_EQ(bytes_of(model, wide, "attention.rotary"), (Moved{8 * turned, 8 * turned}));
  EXPECT_EQ(bytes_of(model, wide, "mlp.activation"), (Moved{20 * inner, 36 * inner}));
}

// Of 48 elements of a latent head 16 are turned, of queries and keys alike.
TEST(ShardFramework, WhatIsNotTurnedIsCopied) {
  const std::string text =
      "family: deepseek\nlayers: 2\nhidden: 256\nheads: 4\nvocabulary: 8192\nsequence: 512\nfeed_forward: "
      "512\n"
      "latent_attention: {query_rank: 96, key_value_rank: 64, nope_head_dim: 32, rope_head_dim: 16, "
      "value_head_dim: 32}\n";
  const Model model = read_described_yaml(text, "m", ModelOptions());
  const ShardedModel sharded = shard_model(model, eager_pytorch(), 0, "plan");
  std::int64_t turned = 0, bytes = 0;
  for (const PassStep& step : shape_named(sharded, "layers.0").forward.steps) {
    if (step.kind != NodeKind::compute || sharded.names[step.name] != "attention.rotary") continue;
    turned = sharded.works[step.work].flops.value / 3;
    bytes = sharded.works[step.work].bytes.value;
  }
  ASSERT_GT(turned, 0);
  const std::int64_t all = 2 * kRows * 4 * 48;
  ASSERT_LT(turned, all);
  EXPECT_EQ(bytes, 20 * turned + 4 * (all - turned));
}

TEST(ShardFramework, OneKernelReadsItsInputAndWritesItsResult) {
  const Model model = llama_with();
  Plan compiled = eager_pytorch(), megatron = eager_pytorch();
  compiled.host = Host::compiled;
  megatron.framework = Framework::megatron;
  for (const std::string_view name : {"attention.norm", "attention.rotary", "mlp.activation"}) {
    SCOPED_TRACE(name);
    const Moved fused = bytes_of(model, megatron, name), split = bytes_of(model, eager_pytorch(), name);
    EXPECT_GT(split.forward, fused.forward);
    EXPECT_EQ(bytes_of(model, compiled, name), fused);
    // As the plan says, whatever the framework.
    for (const Part part : fusable_parts()) {
      Plan one = eager_pytorch(), other = megatron;
      one.fused_elementwise = {part};
      other.fused_elementwise = Parts();
      const bool is_it = (name == "attention.norm") == (part == Part::norm) &&
                         (name == "attention.rotary") == (part == Part::rotary);
      EXPECT_EQ(bytes_of(model, one, name), is_it ? fused : split);
      EXPECT_EQ(bytes_of(model, other, name), split);
    }
  }
  // PyTorch has a kernel for this one.
  const Model layer_norm = llama_with("layernorm");
  EXPECT_EQ(bytes_of(layer_norm, eager_pytorch(), "attention.norm"),
            bytes_of(layer_norm, megatron, "attention.norm"));
}

Plan divided(TensorMethod method, Recompute recompute = Recompute::none) {
  Plan plan = plan_of(kTensorRanks);
  plan.sequence_parallel = true;
  plan.tensor_method = method;
  plan.recompute = recompute;
  return plan;
}

// Copies between collectives and products, by their bytes.
std::vector<std::string> copies(const ShardedModel& model, const Pass& pass) {
  std::vector<std::string> lines;
  for (const PassStep& step : pass.steps) {
    if (step.kind == NodeKind::compute && model.names[step.name].find("reordering") != std::string_view::npos)
      lines.push_back(fmt::format("{} {}", model.names[step.name], model.works[step.work].bytes.value));
  }
  return lines;
}

std::vector<std::string> gathers(const ShardedModel& model, const Pass& pass) {
  std::vector<std::string> lines = communication(model, pass);
  std::erase_if(lines, [](const std::string& line) { return line.find("all-gather") == std::string::npos; });
  return lines;
}

TEST(ShardFramework, DTensorCopiesWhatItGathersAndScatters) {
  const Model model = llama_with();
  const ShardedModel own = shard_model(model, divided(TensorMethod::dtensor), 0, "plan");
  const BlockShape& layer = shape_named(own, "layers.0");
  const auto line = [](std::string_view name) {
    return fmt::format("{}: reordering {}", name, 2 * kGathered);
  };
  EXPECT_THAT(copies(own, layer.forward), ElementsAre(line("attention.q"), line("attention.output"),
                                                      line("mlp.gate_up"), line("mlp.down")));
  EXPECT_THAT(copies(own, layer.backward), ElementsAre(line("mlp.down"), line("mlp.gate_up"),
                                                       line("attention.output"), line("attention.q")));

  const ShardedModel megatron = shard_model(model, divided(TensorMethod::megatron), 0, "plan");
  EXPECT_THAT(copies(megatron, shape_named(megatron, "layers.0").forward), ElementsAre());
  Plan automatic = divided(TensorMethod::automatic);
  EXPECT_EQ(tensor_method_of(automatic), TensorMethod::megatron);
  automatic.framework = Framework::pytorch;
  EXPECT_EQ(tensor_method_of(automatic), TensorMethod::dtensor);
}

TEST(ShardFramework, DTensorKeepsWhatItGathered) {
  const Model model = llama_with();
  using Counts = std::pair<std::size_t, std::size_t>;  // in what is done again, and in the backward pass
  const auto of_layer = [&](TensorMethod method, Recompute recompute) {
    const ShardedModel sharded = shard_model(model, divided(method, recompute), 0, "plan");
    const BlockShape& layer = shape_named(sharded, "layers.0");
    return Counts{gathers(sharded, layer.recompute).size(), gathers(sharded, layer.backward).size()};
  };
  // Two of gradients, and Megatron's two of inputs once more.
  EXPECT_EQ(of_layer(TensorMethod::megatron, Recompute::none), (Counts{0, 4}));
  EXPECT_EQ(of_layer(TensorMethod::dtensor, Recompute::none), (Counts{0, 2}));
  EXPECT_EQ(of_layer(TensorMethod::megatron, Recompute::full), (Counts{2, 4}));
  EXPECT_EQ(of_layer(TensorMethod::dtensor, Recompute::full), (Counts{2, 2}));
  // What is gathered is not on the list of what is kept.
  EXPECT_EQ(of_layer(TensorMethod::megatron, Recompute::operators), (Counts{0, 4}));
  EXPECT_EQ(of_layer(TensorMethod::dtensor, Recompute::operators), (Counts{2, 2}));
}

// Queries, keys, values, gate and up each gather their input, unless a compiler sees that it is the same, and
// each reduce their gradient.
TEST(ShardFramework, ModulesExchangeForThemselves) {
  const Model model = llama_with();
  const auto of_layer = [&](Host host, bool sequence, bool backward) {
    Plan plan = divided(TensorMethod::modules);
    plan.host = host;
    plan.sequence_parallel = sequence;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    const BlockShape& layer = shape_named(sharded, "layers.0");
    return communication(sharded, backward ? layer.backward : layer.forward);
  };
  const auto count = [](const std::vector<std::string>& lines, std::string_view what) {
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.starts_with(what); });
  };
  EXPECT_EQ(count(of_layer(Host::eager, true, false), "attention.q: all-gather"), 3);
  EXPECT_EQ(count(of_layer(Host::eager, true, false), "mlp.gate_up: all-gather"), 2);
  EXPECT_EQ(count(of_layer(Host::compiled, true, false), "attention.q: all-gather"), 1);
  EXPECT_EQ(count(of_layer(Host::compiled, true, true), "attention.q: reduce-scatter"), 3);
  EXPECT_EQ(count(of_layer(Host::compiled, true, true), "mlp.gate_up: reduce-scatter"), 2);
  EXPECT_EQ(count(of_layer(Host::eager, false, true), "attention.q: all-reduce"), 3);
  EXPECT_EQ(of_layer(Host::eager, false, false).size(), 2U);
}

TEST(ShardFramework, AWholeHeadComputesAllLogitsAndExchangesNone) {
  const Model model = zoo_model("llama2-7b");
  const auto head_of = [&](bool divided, bool sequence) {
    Plan plan = plan_of(4);
    plan.sequence_parallel = sequence;
    plan.head_parallel = divided;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    return std::pair(sharded, sharded.shapes[sharded.blocks.back().shape]);
  };
  const auto elements = [](const BlockShape& head) {
    std::int64_t sum = 0, partial = 0;
    for (const WeightGroup& group : head.weights) {
      sum += group.elements;
      if (group.tensor_partial) partial += group.elements;
    }
    return std::pair(sum, partial);
  };
  const std::int64_t matrix = 32000 * 4096, norm = 4096;
  const auto [divided_model, divided] = head_of(true, false);
  const auto [whole_model, whole] = head_of(false, false);
  EXPECT_EQ(elements(divided), std::pair(matrix / 4 + norm, std::int64_t{0}));
  EXPECT_EQ(elements(whole), std::pair(matrix + norm, std::int64_t{0}));
  EXPECT_THAT(communication(whole_model, whole.forward), ElementsAre());
  EXPECT_THAT(communication(whole_model, whole.backward), ElementsAre());
  EXPECT_FALSE(communication(divided_model, divided.forward).empty());
  // Of a part of the tokens gradients are incomplete.
  EXPECT_EQ(elements(head_of(false, true).second), std::pair(matrix + norm, matrix + norm));
}

TEST(ShardFramework, GathersOfScaledRowsAreNotCut) {
  Plan plan = divided(TensorMethod::dtensor);
  plan.overlap_tensor = true;
  plan.precision = DType::fp8;
  const auto pieces = [&](std::string_view name) {
    const ShardedModel sharded = shard_model(llama_with(), plan, 0, "plan");
    return std::ranges::count_if(communication(sharded, shape_named(sharded, "layers.0").forward),
                                 [&](const std::string& line) { return line.starts_with(name); });
  };
  EXPECT_EQ(pieces("mlp.gate_up: all-gather"), kTensorRanks);
  plan.scaling = Scaling::rows;
  EXPECT_EQ(pieces("mlp.gate_up: all-gather"), 1);
  EXPECT_EQ(pieces("mlp.down: reduce-scatter"), kTensorRanks);
}

TEST(ShardFramework, OverlappedDTensorCutsByRanksAndHidesNoSumOfGradients) {
  Plan plan = divided(TensorMethod::dtensor);
  plan.overlap_tensor = true;
  const ShardedModel sharded = shard_model(llama_with(), plan, 0, "plan");
  const BlockShape& layer = shape_named(sharded, "layers.0");
  // Pieces of the two sums at the ends of attention and MLP, and of gate and up's gather; attention's gather
  // feeds two products.
  const std::vector<std::string> forward = communication(sharded, layer.forward);
  const auto pieces = [&](std::string_view name) {
    return std::ranges::count(forward, fmt::format("{} {}", name, kGathered / kTensorRanks));
  };
  EXPECT_EQ(pieces("mlp.gate_up: all-gather tensor"), kTensorRanks);
  EXPECT_EQ(pieces("mlp.down: reduce-scatter tensor"), kTensorRanks);
  EXPECT_EQ(pieces("attention.output: reduce-scatter tensor"), kTensorRanks);
  // What arrived from all ranks is added up.
  EXPECT_THAT(
      copies(sharded, layer.forward),
      ElementsAre(fmt::format("attention.output: reordering {}", kGathered + kGathered / kTensorRanks),
                  fmt::format("mlp.down: reordering {}", kGathered + kGathered / kTensorRanks)));
  // Scatters of gradients come after all products, and what follows waits for them.
  const std::vector<PassStep>& steps = layer.backward.steps;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind != NodeKind::collective || steps[s].collective != CollectiveKind::reduce_scatter)
      continue;
    EXPECT_THAT(steps[s].after, UnorderedElementsAre(s - 1));
    ASSERT_LT(s + 1, steps.size());
    EXPECT_THAT(steps[s + 1].after, testing::Contains(s));
  }
}

Model with_experts(std::int64_t inner) {
  return read_described_yaml(
      fmt::format("family: mixtral\nlayers: 2\nhidden: 256\nheads: 4\nkv_heads: 2\nvocabulary: 8192\n"
                  "sequence: 512\nexperts: {{count: 4, active: 2, feed_forward: {}}}\n",
                  inner),
      "m", ModelOptions());
}

// Work of the steps of a pass whose names have that in them.
std::vector<Work> works_of(const ShardedModel& model, const Pass& pass, std::string_view part) {
  std::vector<Work> found;
  for (const PassStep& step : pass.steps) {
    if (step.kind == NodeKind::compute && step.phase != Phase::weight_gradient &&
        model.names[step.name].find(part) != std::string_view::npos)
      found.push_back(model.works[step.work]);
  }
  return found;
}

TEST(ShardFramework, FusedExpertsActivateAndCastWhereTheyAreComputed) {
  Plan plan = plan_of(1);
  plan.precision = DType::fp8;
  plan.scaling = Scaling::block;
  const std::int64_t made = 2 * kRows * kGate, read = 2 * made;  // by two experts of each token
  for (const DType precision : {DType::fp8, DType::bf16}) {
    plan.precision = precision;
    plan.fused_experts = true;
    const ShardedModel sharded = shard_model(with_experts(kGate), plan, 0, "plan");
    const BlockShape& layer = shape_named(sharded, "layers.0");
    const bool narrow = precision == DType::fp8;
    const auto forward = works_of(sharded, layer.forward, "activation");
    const auto backward = works_of(sharded, layer.backward, "activation");
    ASSERT_EQ(forward.size(), 1U);
    ASSERT_EQ(backward.size(), 1U);
    // Narrow ones are written by rows and by columns.
    EXPECT_EQ(forward[0].bytes, Bytes(2 * made));
    EXPECT_EQ(backward[0].bytes, Bytes(2 * read + 2 * read - 2 * made));
    // Down's input and the gradient of gate and up come cast.
    const auto scaling = [&](const Pass& pass, std::string_view name) {
      const std::vector<Work> works = works_of(sharded, pass, name);
      EXPECT_EQ(works.size(), 1U);
      EXPECT_FALSE(is_grouped(works.at(0).gemms.at(0)));
      return works.at(0).scaling;
    };
    EXPECT_EQ(scaling(layer.forward, "down"), Scaling::done);
    EXPECT_EQ(scaling(layer.backward, "gate_up"), Scaling::done);
    EXPECT_EQ(scaling(layer.forward, "gate_up"), narrow ? Scaling::block : Scaling::delayed);
    EXPECT_EQ(scaling(layer.backward, "down"), narrow ? Scaling::block : Scaling::delayed);
  }
}

TEST(ShardFramework, ExpertsOfOtherSizesAreNotFused) {
  Plan plan = plan_of(1), fused = plan;
  fused.fused_experts = true;
  const auto works = [](const Model& model, const Plan& of) {
    return shard_model(model, of, 0, "plan").works;
  };
  EXPECT_NE(works(with_experts(kGate), plan), works(with_experts(kGate), fused));
  EXPECT_EQ(works(with_experts(kGate - 64), plan), works(with_experts(kGate - 64), fused));
  EXPECT_FALSE(can_fuse_experts(zoo_model("gpt-oss-120b")));
  EXPECT_TRUE(can_fuse_experts(zoo_model("qwen3-30b-a3b")));
  EXPECT_TRUE(can_fuse_experts(zoo_model("deepseek-v3")));
  EXPECT_FALSE(can_fuse_experts(llama_with()));
}

}  // namespace
}  // namespace armilla
