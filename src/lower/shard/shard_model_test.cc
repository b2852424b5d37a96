#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error_testing.h"
#include "ir/derived/backward.h"
#include "lower/shard/expert_load.h"
#include "lower/shard/shard_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// In the order of the model, views left out.
std::vector<Work> computations(const ShardedModel& sharded, bool backward) {
  std::vector<Work> works;
  for (const ShardedBlock& block : sharded.blocks) {
    const BlockShape& shape = sharded.shapes[block.shape];
    for (const PassStep& step : backward ? shape.backward.steps : shape.forward.steps) {
      EXPECT_EQ(step.kind, NodeKind::compute);
      works.push_back(sharded.works[step.work]);
    }
  }
  return works;
}

// The last of the forward pass is the loss, the first of the backward pass its gradient. Vocabulary-parallel
// ranks have their share of the logits.
TEST(ShardModel, LossesMoveWhatTheFrameworksKernelsDo) {
  struct Case {
    Framework framework;
    Host host;
    LossKernel loss;
    Kernel kernel;
    std::int64_t forward, backward;  // bytes per logit of bf16
  };
  const Model model = zoo_model("llama2-7b");
  for (const Case& c :
       {Case{Framework::pytorch, Host::eager, LossKernel::automatic, Kernel::norm, 2 + 4 + 8, 4 + 12 + 4 + 2},
        Case{Framework::pytorch, Host::compiled, LossKernel::automatic, Kernel::norm, 2, 4},
        // Copied, largest, less that, exponential, sum, divided; multiplied, copied.
        Case{Framework::megatron, Host::eager, LossKernel::automatic, Kernel::loss, 6 + 4 + 8 + 8 + 4 + 8,
             8 + 6},
        Case{Framework::megatron, Host::eager, LossKernel::wide, Kernel::norm, 6 + 8 + 8, 8 + 2},
        Case{Framework::megatron, Host::eager, LossKernel::fused, Kernel::loss, 2 + 4, 4}}) {
    for (const std::int64_t tensor : {1, 4}) {
      Plan plan = plan_of(tensor);
      plan.tensor = tensor;
      plan.precision = DType::bf16;
      plan.framework = c.framework;
      plan.host = c.host;
      plan.loss = c.loss;
      std::vector<Work> losses;
      const ShardedModel sharded = shard_model(model, plan, 0, "plan");
      for (const auto* pass : {&sharded.shapes[sharded.blocks.back().shape].forward.steps,
                               &sharded.shapes[sharded.blocks.back().shape].backward.steps}) {
        for (const PassStep& step : *pass) {
          if (step.kind == NodeKind::compute && sharded.names.at(step.name).find("loss") != std::string::npos)
            losses.push_back(sharded.works[step.work]);
        }
      }
      ASSERT_EQ(losses.size(), 2U);
      std::int64_t logits = 0;
      for (const Operator& op : model.operators) {
        if (op.forward.kernel == Kernel::loss)
          logits = element_count(model.tensors[op.inputs.front()].shape, "");
      }
      EXPECT_EQ(losses[0].bytes, Bytes(logits / tensor * c.forward));
      EXPECT_EQ(losses[1].bytes, Bytes(logits / tensor * c.backward));
      EXPECT_EQ(losses[0].kernel, c.kernel);
    }
  }
}

// Of attention that is not fused: a kernel that reads scores and writes probabilities, or PyTorch's
// operators one by one.
TEST(ShardModel, SoftmaxesMoveWhatTheFrameworksKernelsDo) {
  ModelOptions options;
  options.batch = 1;
  const Model model = read_described_yaml(
      std::string("name: m\nfamily: gpt\nlayers: 2\nhidden: 128\nheads: 4\nvocabulary: 512\nsequence: 64\n"
                  "attention: unfused\n"),
      "m", options);
  const auto softmax = [&](Framework framework, Host host) {
    Plan plan = plan_of(1);
    plan.precision = DType::bf16;
    plan.framework = framework;
    plan.host = host;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    std::vector<Work> works;
    for (const auto* pass : {&sharded.shapes[sharded.blocks[1].shape].forward.steps,
                             &sharded.shapes[sharded.blocks[1].shape].backward.steps}) {
      for (const PassStep& step : *pass) {
        if (step.kind == NodeKind::compute &&
            sharded.names.at(step.name).find("softmax") != std::string::npos)
          works.push_back(sharded.works[step.work]);
      }
    }
    return works;
  };
  const auto scores =
      std::ranges::find_if(model.operators, [](const Operator& op) { return op.type == "Softmax"; });
  ASSERT_NE(scores, model.operators.end());
  const std::int64_t elements = element_count(model.tensors[scores->inputs.front()].shape, "");
  for (const Host host : {Host::eager, Host::compiled}) {
    const std::vector<Work> fused = softmax(Framework::megatron, host);
    ASSERT_EQ(fused.size(), 2u);
    EXPECT_EQ(fused[0].bytes, Bytes(elements * 4));
    EXPECT_EQ(fused[1].bytes, Bytes(elements * 6));
    EXPECT_EQ(fused[1].kernel, Kernel::any);
  }
  const std::vector<Work> eager = softmax(Framework::pytorch, Host::eager);
  ASSERT_EQ(eager.size(), 2u);
  EXPECT_EQ(eager[0].kernel, Kernel::norm) << "rows are reduced";
  EXPECT_EQ(eager[0].bytes, Bytes(elements * (4 + 4 + 6 + 6)));
  EXPECT_EQ(eager[1].bytes, Bytes(elements * (6 + 8 + 2 + 4)));
  EXPECT_EQ(softmax(Framework::pytorch, Host::compiled)[0].bytes, Bytes(elements * 4));
}

TEST(ShardModel, OneRankDoesTheUnshardedModelsWork) {
  for (const std::string name : {"gpt2-345m", "mixtral-8x7b", "t5-large", "deepseek-v3", "vit-l-16"}) {
    const Model model = zoo_model(name);
    const ShardedModel sharded = shard_model(model, plan_of(1), 0, "plan");
    std::vector<Work> forward;
    Flops backward;
    for (const Operator& op : model.operators) {
      if (!op.is_view && (op.forward.flops.value > 0 || op.forward.bytes.value > 0))
        forward.push_back(op.forward);
      backward += input_gradient(model, op).flops + weight_gradient(model, op).flops;
    }
    const std::vector<Work> got = computations(sharded, false);
    ASSERT_EQ(got.size(), forward.size()) << name;
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].flops, forward[i].flops) << name << " " << i;
      // A loss moves what the framework's kernels do.
      if (forward[i].kernel != Kernel::loss) {
        EXPECT_EQ(got[i].bytes, forward[i].bytes) << name << " " << i;
      }
      EXPECT_EQ(got[i].gemms, forward[i].gemms) << name << " " << i;
    }
    Flops sum;
    for (const Work& work : computations(sharded, true)) sum += work.flops;
    EXPECT_EQ(sum, backward) << name;
    std::map<std::int64_t, std::int64_t> tied;
    std::int64_t elements = 0;
    for (const ShardedBlock& block : sharded.blocks) {
      for (const WeightGroup& group : sharded.shapes[block.shape].weights) {
        if (group.tied < 0 || tied.emplace(group.tied, group.elements).second) elements += group.elements;
      }
    }
    EXPECT_EQ(elements, totals(model).parameters) << name;
  }
}

TEST(ShardModel, SmallerBlocksKeepWhatLargerOnesKeep) {
  for (const std::string name : {"bert-large", "vit_b_16", "resnet50"}) {
    const Model model = zoo_model(name, 2);
    Plan plan = plan_of(1);
    plan.batch = 2;
    const auto saved = [&] {
      const ShardedModel sharded = shard_model(model, plan, 0, "plan");
      Bytes sum;
      for (const ShardedBlock& block : sharded.blocks) sum += sharded.shapes[block.shape].saved;
      EXPECT_EQ(sharded.distributed_data_parallel, plan.zero_stage == 0);
      return std::pair(sharded.blocks.size(), sum);
    };
    const auto [operators, by_operators] = saved();
    plan.zero_stage = 1;
    const auto [blocks, by_blocks] = saved();
    EXPECT_GT(operators, blocks) << name;
    EXPECT_EQ(by_operators, by_blocks) << name;
  }
}

// Beside every convolution, each way, what it reads and writes is read and written; by the call that launches
// it.
TEST(ShardModel, ImagesThatLieOtherwiseAreTransposed) {
  const Model model = zoo_model("resnet18", 2);
  Plan plan = plan_of(1);
  plan.batch = 2;
  plan.precision = DType::fp16;
  const auto moved = [&] {
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    std::array<Bytes, 2> bytes;
    Bytes working;
    for (const ShardedBlock& block : sharded.blocks) {
      const BlockShape& shape = sharded.shapes[block.shape];
      working = std::max(working, shape.working);
      for (const auto& [pass, sum] : {std::pair(&shape.forward, &bytes[0]), {&shape.backward, &bytes[1]}}) {
        for (const PassStep& step : pass->steps) {
          if (!sharded.names[step.name].ends_with(": transposes")) continue;
          EXPECT_TRUE(step.along);
          *sum += sharded.works[step.work].bytes;
        }
      }
    }
    return std::tuple(bytes[0], bytes[1], working);
  };
  const auto [none, none_back, working] = moved();
  EXPECT_EQ(none, Bytes(0));
  plan.channels_last = false;
  const auto [forward, backward, with_copies] = moved();
  Bytes both_ways;
  for (const Operator& op : model.operators) {
    if (op.type != "Conv") continue;
    for (const std::uint32_t t : {op.inputs.front(), op.outputs.front()})
      both_ways += Bytes(2 * 2 * element_count(model.tensors[t].shape, "t"));  // fp16, read and written
  }
  EXPECT_EQ(forward, both_ways);
  EXPECT_EQ(backward, both_ways);
  // The first convolution's output is the largest.
  EXPECT_GT(with_copies, working);
  plan.precision = DType::fp32;
  EXPECT_EQ(std::get<0>(moved()), Bytes(0));
}

Flops forward_of(const ShardedModel& sharded) {
  Flops sum;
  for (const ShardedBlock& block : sharded.blocks)
    sum += arithmetic(sharded, sharded.shapes[block.shape].forward);
  return sum;
}

TEST(ShardModel, WorkAddsUpToTheWholeWhereEverythingDivides) {
  struct Case {
    std::string model;
    std::int64_t tensor, context, data, expert, expert_tensor;
  };
  for (const Case& c : {Case{"gpt3-175b", 8, 1, 1, 1, 0}, Case{"llama3-8b", 2, 4, 1, 1, 0},
                        Case{"mixtral-8x7b", 2, 1, 4, 8, 1}, Case{"mixtral-8x7b", 2, 2, 2, 2, 0}}) {
    const Model model = zoo_model(c.model);
    Plan plan = plan_of(c.tensor, c.context, c.data);
    plan.sequence_parallel = true;
    plan.expert = c.expert;
    plan.expert_tensor = c.expert_tensor;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    EXPECT_EQ(forward_of(sharded) * (c.tensor * c.context), totals(model).forward_flops) << c.model;
  }
}

// s = 2048, b = 1, h = 12288: 2 s b h = 50,331,648 bytes.
TEST(ShardModel, GptUnderTensorParallelismReducesTwicePerPass) {
  const ShardedModel sharded = shard_model(zoo_model("gpt3-175b"), plan_of(8), 0, "plan");
  const BlockShape& layer = shape_named(sharded, "layers.0");
  EXPECT_THAT(
      communication(sharded, layer.forward),
      ElementsAre("attention.output: all-reduce tensor 50331648", "mlp.fc2: all-reduce tensor 50331648"));
  EXPECT_THAT(
      communication(sharded, layer.backward),
      ElementsAre("mlp.fc1: all-reduce tensor 50331648", "attention.qkv: all-reduce tensor 50331648"));
  EXPECT_THAT(communication(sharded, shape_named(sharded, "embedding").forward),
              ElementsAre("tokens: all-reduce tensor 50331648"));
  // 2048 tokens, 4 bytes each.
  EXPECT_THAT(communication(sharded, shape_named(sharded, "head").forward),
              ElementsAre("loss: all-reduce of the largest logit tensor 8192",
                          "loss: all-reduce of the label's logit tensor 8192",
                          "loss: all-reduce of the sum of exponentials tensor 8192"));
  EXPECT_THAT(communication(sharded, shape_named(sharded, "head").backward),
              ElementsAre("logits: all-reduce tensor 50331648"));
}

// Korthikanti et al. 2022, section 4.2.2 and figure 5, and the gather for weight gradients (section 4.2.2,
// end).
TEST(ShardModel, SequenceParallelismGathersAndScatters) {
  Plan plan = plan_of(8);
  plan.sequence_parallel = true;
  const ShardedModel sharded = shard_model(zoo_model("gpt3-175b"), plan, 0, "plan");
  const BlockShape& layer = shape_named(sharded, "layers.0");
  EXPECT_THAT(communication(sharded, layer.forward),
              ElementsAre("attention.qkv: all-gather tensor 50331648",
                          "attention.output: reduce-scatter tensor 50331648",
                          "mlp.fc1: all-gather tensor 50331648", "mlp.fc2: reduce-scatter tensor 50331648"));
  EXPECT_THAT(
      communication(sharded, layer.backward),
      ElementsAre("mlp.fc2: all-gather tensor 50331648", "mlp.fc1: all-gather tensor 50331648",
                  "mlp.fc1: reduce-scatter tensor 50331648", "attention.output: all-gather tensor 50331648",
                  "attention.qkv: all-gather tensor 50331648",
                  "attention.qkv: reduce-scatter tensor 50331648"));
  EXPECT_EQ(layer.output, Bytes(50331648 / 8));
  // Norms and the biases after partial sums: 6 h; their gradients are sums over the tensor ranks.
  ASSERT_EQ(layer.weights.size(), 2U);
  EXPECT_TRUE(layer.weights[0].tensor_partial);
  EXPECT_EQ(layer.weights[0].elements, 6 * 12288);
  EXPECT_FALSE(layer.weights[1].tensor_partial);
  EXPECT_EQ(layer.weights[1].elements, (12 * 12288LL * 12288 + 7 * 12288) / 8);
}

TEST(ShardModel, SeparateProductsOfOneActivationShareItsCollectives) {
  const ShardedModel sharded = shard_model(zoo_model("llama3-8b"), plan_of(2), 0, "plan");
  EXPECT_THAT(
      communication(sharded, shape_named(sharded, "layers.0").backward),
      ElementsAre("mlp.gate_up: all-reduce tensor 67108864", "attention.q: all-reduce tensor 67108864"));
}

// 8 key-value heads of 128 for 8192 / 4 tokens, both, in bf16.
TEST(ShardModel, RingAttentionSendsKeysAndValues) {
  const ShardedModel sharded = shard_model(zoo_model("llama3-8b"), plan_of(1, 4), 0, "plan");
  const BlockShape& layer = shape_named(sharded, "layers.0");
  const std::string send = "send context 8388608 +1", receive = "receive context 8388608 -1";
  EXPECT_THAT(communication(sharded, layer.forward),
              ElementsAre(send, receive, send, receive, send, receive));
  // Keys and values three times, their gradients four times.
  EXPECT_EQ(communication(sharded, layer.backward).size(), 14U);
  std::int64_t steps = 0;
  for (const PassStep& step : layer.forward.steps)
    steps += static_cast<std::int64_t>(sharded.names[step.name] == "attention.core");
  EXPECT_EQ(steps, 4);
}

TEST(ShardModel, UlyssesExchangesHeadsForTokens) {
  Plan plan = plan_of(2, 8);
  plan.context_method = ContextMethod::all_to_all;
  const ShardedModel sharded = shard_model(zoo_model("llama3-8b"), plan, 0, "plan");
  // 16 query heads of 128 for 1024 tokens in bf16: 4 MiB. The 4 key heads of a tensor rank are sent twice
  // each, so that 8 ranks have one.
  EXPECT_THAT(
      communication(sharded, shape_named(sharded, "layers.0").forward),
      ElementsAre("attention.core: all-to-all of queries context 4194304",
                  "attention.core: all-to-all of keys context 2097152",
                  "attention.core: all-to-all of values context 2097152",
                  "attention.core: all-to-all of results context 4194304",
                  "attention.output: all-reduce tensor 8388608", "mlp.down: all-reduce tensor 8388608"));
}

// A sample reads a row of 128 numbers of every table; what is read twice is updated once.
TEST(ShardModel, OfTablesWhatIsReadIsUpdated) {
  const Model model = zoo_model("dlrm");
  const auto updated = [&](std::int64_t data, std::int64_t expert, std::int64_t micro_batches, int zero = 0) {
    Plan plan = plan_of(1, 1, data);
    plan.expert = expert;
    plan.batch = plan.micro_batches = micro_batches;
    plan.zero_stage = zero;
    std::int64_t sum = 0;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    for (const WeightGroup& group : shape_named(sharded, "embedding").weights) sum += group.updated;
    return sum;
  };
  // Of every table at most so many rows, on one of so many ranks.
  const auto rows = [&](std::int64_t most, std::int64_t ranks) {
    std::int64_t sum = 0;
    for (const Parameter& parameter : model.parameters) {
      if (parameter.name.find("tables.") == std::string::npos) continue;
      sum += std::min(most, parameter.shape[0]) * 128 / ranks;
    }
    return sum;
  };
  EXPECT_EQ(updated(1, 1, 1, 1), 26 * 128);
  EXPECT_EQ(updated(1, 1, 100, 1), rows(100, 1));
  EXPECT_EQ(updated(8, 1, 100, 1), rows(800, 1));
  EXPECT_EQ(updated(2, 2, 100, 1), rows(200, 2));
  EXPECT_EQ(updated(8, 2, 100, 1), rows(800, 2));
  EXPECT_EQ(updated(8, 2, 100, 2), 0);  // all
}

// 4096 tokens x 2 experts x 4096 x 2 bytes = 67,108,864.
TEST(ShardModel, ExpertsGetTheirTokensByAllToAll) {
  const Model model = zoo_model("mixtral-8x7b");
  Plan plan = plan_of(1, 1, 4);
  plan.expert = 4;
  const ShardedModel even = shard_model(model, plan, 0, "plan");
  const BlockShape& layer = shape_named(even, "layers.0");
  EXPECT_THAT(communication(even, layer.forward), ElementsAre("mlp.dispatch: all-to-all expert 67108864",
                                                              "mlp.combine: all-to-all expert 67108864"));
  EXPECT_THAT(communication(even, layer.backward), ElementsAre("mlp.combine: all-to-all expert 67108864",
                                                               "mlp.dispatch: all-to-all expert 67108864"));
  // 4096 tokens and two copies of each, read or written once; the two experts of a rank sort all copies
  // once more. A copy per rank, of which there are 4 (1 - C(6, 2) / C(8, 2)) = 13 / 7, is put in order
  // where it arrives.
  constexpr std::int64_t kTokens = 4096LL * 4096 * 2;
  const auto moved = [&](const Plan& how) {
    const ShardedModel sharded = shard_model(model, how, 0, "plan");
    const BlockShape& shape = shape_named(sharded, "layers.0");
    std::vector<std::int64_t> bytes;
    for (const Pass* const pass : {&shape.forward, &shape.backward}) {
      for (const PassStep& step : pass->steps) {
        if (step.kind == NodeKind::compute && sharded.works[step.work].kernel == Kernel::permute)
          bytes.push_back(sharded.works[step.work].bytes.value);
      }
    }
    return bytes;
  };
  EXPECT_THAT(moved(plan), ElementsAre(7 * kTokens, 7 * kTokens, 7 * kTokens, 7 * kTokens));
  Plan once = plan;
  once.expert_dispatch = ExpertDispatch::deduplicated;
  constexpr std::int64_t kOnce = (kTokens * (14 + 13) + 3) / 7;
  EXPECT_THAT(moved(once), ElementsAre(kOnce, kOnce, kOnce, kOnce));
  once.expert = 8;
  once.ranks = 8;
  once.expert_dispatch = ExpertDispatch::per_expert;
  EXPECT_THAT(moved(once), ElementsAre(3 * kTokens, 3 * kTokens, 3 * kTokens, 3 * kTokens));
  ASSERT_EQ(layer.weights.size(), 2U);
  EXPECT_EQ(layer.weights[1].axis, GroupAxis::expert_data);
  EXPECT_EQ(layer.weights[1].elements, 8 / 4 * 3 * 4096LL * 14336);
}

TEST(ShardModel, ExpertTensorParallelismGathersTokensAndKeepsThem) {
  Plan plan = plan_of(2, 1, 4);
  plan.sequence_parallel = true;
  plan.expert = 4;
  const ShardedModel sharded = shard_model(zoo_model("mixtral-8x7b"), plan, 0, "plan");
  const auto of_mlp = [&](const Pass& pass) {
    std::vector<std::string> lines = communication(sharded, pass);
    std::erase_if(lines, [](const std::string& line) { return line.find("mlp.") == std::string::npos; });
    return lines;
  };
  const BlockShape& layer = shape_named(sharded, "layers.0");
  EXPECT_THAT(of_mlp(layer.forward), ElementsAre("mlp.dispatch: all-to-all expert 33554432",
                                                 "mlp.experts.gate_up: all-gather expert tensor 67108864",
                                                 "mlp.experts.down: reduce-scatter expert tensor 67108864",
                                                 "mlp.combine: all-to-all expert 33554432"));
  EXPECT_THAT(of_mlp(layer.backward),
              ElementsAre("mlp.combine: all-to-all expert 33554432",
                          "mlp.experts.down: all-gather expert tensor 67108864",
                          "mlp.experts.gate_up: reduce-scatter expert tensor 67108864",
                          "mlp.dispatch: all-to-all expert 33554432"));
}

// 4,096 tokens of 4 experts each: 16,384 rows of 2,880, or 5,760 of gate and up, of which a rank of 4 has as
// many. Tensor parallelism of the experts divides gate and up by features, and results, once they are
// added up, by tokens.
TEST(ShardModel, ExpertsPassesAreKernelsOfAnEagerHostAlone) {
  const Model model = zoo_model("gpt-oss-20b");
  for (const std::int64_t tensor : {1, 2}) {
    Plan plan = plan_of(tensor, 1, 4);
    plan.sequence_parallel = tensor > 1;
    plan.expert = 4;
    plan.precision = DType::bf16;
    std::map<std::string, std::vector<std::int64_t>> bytes;
    std::map<Host, Bytes> saved;
    for (const Host host : {Host::eager, Host::compiled}) {
      plan.host = host;
      const ShardedModel sharded = shard_model(model, plan, 0, "plan");
      const BlockShape& layer = shape_named(sharded, "layers.0");
      for (const Pass* const pass : {&layer.forward, &layer.backward}) {
        for (const PassStep& step : pass->steps) {
          const std::string name(sharded.names[step.name]);
          if (step.kind == NodeKind::compute && (name.ends_with("clamp") || name.ends_with("bias_add")) &&
              name.find("experts") != std::string::npos)
            bytes[fmt::format("{} {}", name, name_of(host))].push_back(sharded.works[step.work].bytes.value);
        }
      }
      EXPECT_EQ(communication(sharded, layer.forward).size(), tensor > 1 ? 6U : 2U);
      saved[host] = layer.saved;
    }
    constexpr std::int64_t kRows = 4096 * 4;
    EXPECT_THAT(bytes,
                testing::ElementsAre(
                    testing::Pair("mlp.experts.activation.clamp eager",
                                  ElementsAre(kRows * 5760 * 8 / tensor, kRows * 5760 * 15 / tensor)),
                    testing::Pair("mlp.experts.bias_add eager",
                                  ElementsAre(kRows * 2880 * 28 / tensor, kRows * 2880 * 40 / tensor))));
    // What is clamped is kept beside what it is made of.
    EXPECT_EQ(saved[Host::eager] - saved[Host::compiled], Bytes(kRows * 5760 * 2 / tensor));
  }
}

TEST(ShardModel, UnevenLoadsScaleWorkAndMessages) {
  const Model model = zoo_model("mixtral-8x7b");
  Plan plan = plan_of(1, 1, 4);
  plan.expert = 4;
  plan.expert_load = ExpertLoad::zipf;
  plan.expert_skew = 1;
  // Shares of 1, 1/2, 1/3, 1/4 relative to their mean, 25/48.
  const double loads[] = {1.92, 0.96, 0.64, 0.48};
  Plan even = plan;
  even.expert_load = ExpertLoad::uniform;
  const auto experts = [&](const ShardedModel& sharded) {
    for (const PassStep& step : shape_named(sharded, "layers.0").forward.steps) {
      if (sharded.names[step.name] == "mlp.experts.gate_up")
        return static_cast<double>(sharded.works[step.work].flops.value);
    }
    return 0.0;
  };
  const double usual = experts(shard_model(model, even, 0, "plan"));
  for (std::int64_t position = 0; position < 4; ++position) {
    const ShardedModel sharded = shard_model(model, plan, position, "plan");
    EXPECT_NEAR(experts(sharded) / usual, loads[position], 1e-3) << position;
    ASSERT_EQ(sharded.uneven.size(), 2U);
    for (const std::size_t to_experts : {0U, 1U}) {
      const UnevenExchange& uneven = sharded.uneven[to_experts == 1 ? 0 : 1];
      EXPECT_EQ(uneven.to_experts, to_experts == 1);
      const CustomCollective exchange =
          uneven_all_to_all(sharded.expert_loads, uneven.bytes, uneven.to_experts);
      for (std::size_t member = 0; member < 4; ++member) {
        for (const CustomNode& node : exchange.members[member].nodes) {
          const auto peer = static_cast<std::size_t>(node.peer);
          const bool sends = node.kind == CustomNode::Kind::send;
          const std::size_t receiver = sends ? peer : member, sender = sends ? member : peer;
          EXPECT_NEAR(static_cast<double>(node.bytes.value),
                      67108864 / 4.0 * loads[to_experts == 1 ? receiver : sender], 2000);
        }
      }
    }
  }
}

TEST(ShardModel, RecomputeRepeatsWhatItSays) {
  const Model model = zoo_model("gpt3-175b");
  Plan plan = plan_of(8);
  const ShardedModel none = shard_model(model, plan, 0, "plan");
  EXPECT_THAT(shape_named(none, "layers.0").recompute.steps, IsEmpty());

  plan.recompute = Recompute::full;
  const ShardedModel full = shard_model(model, plan, 0, "plan");
  const BlockShape& layer = shape_named(full, "layers.0");
  EXPECT_EQ(arithmetic(full, layer.recompute), arithmetic(full, layer.forward));
  EXPECT_EQ(communication(full, layer.recompute), communication(full, layer.forward));
  // Its input: 2 s b h (Korthikanti et al. 2022, table 2).
  EXPECT_EQ(layer.saved, Bytes(50331648));
  EXPECT_THAT(shape_named(full, "head").recompute.steps, IsEmpty());
  EXPECT_THAT(shape_named(full, "embedding").recompute.steps, IsEmpty());

  plan.recompute = Recompute::selective;
  const ShardedModel selective = shard_model(model, plan, 0, "plan");
  const Pass& core = shape_named(selective, "layers.0").recompute;
  ASSERT_EQ(core.steps.size(), 1U);
  EXPECT_EQ(selective.names[core.steps[0].name], "attention.core");

  plan.recompute = Recompute::block;
  plan.recompute_blocks = 1;
  const ShardedModel some = shard_model(model, plan, 0, "plan");
  EXPECT_THAT(some.shapes[some.blocks[1].shape].recompute.steps, IsEmpty());
  EXPECT_EQ(some.shapes[some.blocks[1].recomputed_shape].saved, Bytes(50331648));
  EXPECT_EQ(some.blocks[0].shape, some.blocks[0].recomputed_shape);
}

// Korthikanti et al. 2022, equations 2 and 4 without the scores, that flash attention does not keep:
// s b h (10 + 24 / t), with sequence parallelism 34 s b h / t.
TEST(ShardModel, SavedActivationsOfGptAreThePapers) {
  const std::int64_t sbh = 2048LL * 12288;
  const Model model = zoo_model("gpt3-175b");
  Plan plan = plan_of(8);
  EXPECT_EQ(shape_named(shard_model(model, plan, 0, "plan"), "layers.5").saved, Bytes(13 * sbh));
  plan.sequence_parallel = true;
  EXPECT_EQ(shape_named(shard_model(model, plan, 0, "plan"), "layers.5").saved, Bytes(34 * sbh / 8));
}

TEST(ShardModel, EqualLayersAreShardedOnce) {
  const ShardedModel sharded = shard_model(zoo_model("llama3-405b"), plan_of(8), 0, "plan");
  EXPECT_EQ(sharded.blocks.size(), 128U);
  EXPECT_EQ(sharded.shapes.size(), 3U);
}

TEST(ShardModel, DecodersCarryTheEncodersOutput) {
  const Model model = zoo_model("t5-large");
  const ShardedModel sharded = shard_model(model, plan_of(1), 0, "plan");
  // 512 and 128 tokens x 1024 x 2 bytes; the last decoder passes on its own alone.
  EXPECT_EQ(shape_named(sharded, "encoder.3").output, Bytes(1048576));
  EXPECT_EQ(shape_named(sharded, "decoder.3").output, Bytes(1048576 + 262144));
  EXPECT_EQ(shape_named(sharded, "decoder.23").output, Bytes(262144));
  EXPECT_EQ(shape_named(sharded, "embedding").input, Bytes(0));
  EXPECT_EQ(shape_named(sharded, "head").output, Bytes(0));
  const auto tied = [&](const std::string& block) { return shape_named(sharded, block).weights.back().tied; };
  EXPECT_GE(tied("decoder.3"), 0);
  EXPECT_EQ(tied("decoder.3"), tied("decoder.4"));
  EXPECT_NE(tied("decoder.3"), tied("encoder.3"));
}

const PassStep& step_named(const ShardedModel& sharded, const Pass& pass, const std::string& name,
                           Phase phase) {
  for (const PassStep& step : pass.steps) {
    if (sharded.names[step.name] == name && step.phase == phase) return step;
  }
  throw Error(name, "no such step");
}

TEST(ShardModel, OverlapRunsReductionsBesideWeightGradients) {
  const Model model = zoo_model("gpt3-175b");
  Plan plan = plan_of(8);
  const auto waits_for = [&](const ShardedModel& sharded, const PassStep& step, const std::string& name) {
    const Pass& pass = shape_named(sharded, "layers.0").backward;
    return std::any_of(step.after.begin(), step.after.end(),
                       [&](std::uint32_t other) { return sharded.names[pass.steps[other].name] == name; });
  };
  for (const bool overlap : {false, true}) {
    plan.overlap_tensor = overlap;
    const ShardedModel sharded = shard_model(model, plan, 0, "plan");
    const Pass& pass = shape_named(sharded, "layers.0").backward;
    const PassStep& reduction = step_named(sharded, pass, "mlp.fc1: all-reduce", Phase::input_gradient);
    ASSERT_EQ(reduction.after.size(), overlap ? 1U : 2U);  // its gradient; strictly the weight's, too
    EXPECT_EQ(pass.steps[reduction.after[0]].phase, Phase::input_gradient);
    EXPECT_TRUE(waits_for(sharded, step_named(sharded, pass, "mlp.norm", Phase::input_gradient),
                          "mlp.fc1: all-reduce"));
    const PassStep& weight = step_named(sharded, pass, "mlp.fc1", Phase::weight_gradient);
    EXPECT_EQ(&weight > &reduction, overlap);
    EXPECT_FALSE(waits_for(sharded, weight, "mlp.fc1: all-reduce"));
  }
}

// Megatron-LM's: the gather of the input beside its gradient's product, whose sum is reduced beside the
// weight gradient's; all else is as without, the forward pass whole.
TEST(ShardModel, OverlapOfGradientsLeavesTheRestAsItIs) {
  Plan plan = plan_of(8);
  plan.sequence_parallel = true;
  const Model model = zoo_model("gpt3-175b");
  const ShardedModel strict = shard_model(model, plan, 0, "plan");
  plan.overlap_tensor_gradients = true;
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  const BlockShape& layer = shape_named(sharded, "layers.0");
  const BlockShape& before = shape_named(strict, "layers.0");
  EXPECT_EQ(communication(sharded, layer.forward), communication(strict, before.forward));
  EXPECT_THAT(communication(sharded, layer.backward),
              testing::UnorderedElementsAreArray(communication(strict, before.backward)));
  EXPECT_EQ(arithmetic(sharded, layer.backward), arithmetic(strict, before.backward));
  const auto waits = [](const ShardedModel& of, const Pass& pass, const PassStep& step,
                        std::string_view name) {
    return std::ranges::any_of(step.after,
                               [&](std::uint32_t other) { return of.names[pass.steps[other].name] == name; });
  };
  for (const bool overlap : {false, true}) {
    const ShardedModel& of = overlap ? sharded : strict;
    const Pass& pass = overlap ? layer.backward : before.backward;
    const PassStep& gradient = step_named(of, pass, "mlp.fc1", Phase::input_gradient);
    const PassStep& weight = step_named(of, pass, "mlp.fc1", Phase::weight_gradient);
    const PassStep& gather = step_named(of, pass, "mlp.fc1: all-gather", Phase::weight_gradient);
    const PassStep& scatter = step_named(of, pass, "mlp.fc1: reduce-scatter", Phase::input_gradient);
    EXPECT_EQ(waits(of, pass, gradient, "mlp.fc1: all-gather"), !overlap);
    EXPECT_TRUE(waits(of, pass, weight, "mlp.fc1: all-gather"));
    EXPECT_FALSE(waits(of, pass, weight, "mlp.fc1: reduce-scatter"));
    EXPECT_EQ(&weight > &scatter, overlap);
    EXPECT_LT(&gather, &weight);
  }
}

TEST(ShardModel, OverlapCutsGathersAndScattersInPieces) {
  Plan plan = plan_of(8);
  plan.sequence_parallel = true;
  const Model model = zoo_model("gpt3-175b");
  const ShardedModel strict = shard_model(model, plan, 0, "plan");
  plan.overlap_tensor = true;
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  const Pass& pass = shape_named(sharded, "layers.0").forward;
  std::vector<std::string> expected;
  for (const char* line : {"attention.qkv: all-gather", "attention.output: reduce-scatter",
                           "mlp.fc1: all-gather", "mlp.fc2: reduce-scatter"}) {
    for (int piece = 0; piece < 4; ++piece) expected.push_back(fmt::format("{} tensor 12582912", line));
  }
  EXPECT_EQ(communication(sharded, pass), expected);
  EXPECT_EQ(arithmetic(sharded, pass), arithmetic(strict, shape_named(strict, "layers.0").forward));
}

TEST(ShardModel, AccumulationIsAKernelOfItsOwnUnlessFused) {
  const Model model = zoo_model("gpt2-345m");
  Plan plan = plan_of(1);
  plan.accumulation_fusion = false;
  plan.gradient_dtype = DType::fp32;
  const ShardedModel sharded = shard_model(model, plan, 0, "plan");
  const Pass& pass = shape_named(sharded, "layers.0").backward;
  const PassStep& step = step_named(sharded, pass, "mlp.fc1: accumulation", Phase::weight_gradient);
  // 1024 x 4096 weights and 4096 biases: bf16 read, fp32 read and written.
  EXPECT_EQ(sharded.works[step.work].bytes, Bytes((1024 * 4096 + 4096) * 10));
}

TEST(ShardModel, NarrowPrecisionIsForProductsInLayers) {
  Plan plan = plan_of(1);
  plan.precision = DType::fp8;
  const ShardedModel sharded = shard_model(zoo_model("llama3-8b"), plan, 0, "plan");
  const auto dtype = [&](const std::string& block, const std::string& name) {
    const Pass& pass = shape_named(sharded, block).forward;
    return sharded.works[step_named(sharded, pass, name, Phase::forward).work].dtype;
  };
  EXPECT_EQ(dtype("layers.0", "mlp.down"), DType::fp8);
  EXPECT_EQ(dtype("layers.0", "attention.core"), DType::bf16);
  EXPECT_EQ(dtype("layers.0", "mlp.norm"), DType::bf16);
  EXPECT_EQ(dtype("head", "logits"), DType::bf16);
  EXPECT_EQ(shape_named(sharded, "layers.0").output, Bytes(8192 * 4096 * 2));
}

TEST(ShardModel, RefusesWhatCannotBe) {
  const Model llama = zoo_model("llama3-8b"), mixtral = zoo_model("mixtral-8x7b"),
              resnet = zoo_model("resnet18");
  const auto error = [](const Model& model, const Plan& plan, std::int64_t position = 0) {
    return error_of([&] { shard_model(model, plan, position, "plan"); });
  };
  EXPECT_EQ(error(llama, plan_of(3)),
            "plan: plan.tensor 3 does not divide attention heads 32\n  hint: plan.tensor could be 1, or on "
            "other numbers of ranks 2 or 4");
  EXPECT_EQ(error(resnet, plan_of(1, 2)),
            "plan: plan.context 2 for a model without sequences\n  hint: context parallelism divides the "
            "tokens of a sequence; leave it out");
  Plan plan = plan_of(2);
  plan.sequence_parallel = true;
  EXPECT_EQ(error(resnet, plan),
            "plan: plan.sequence_parallel with plan.tensor 2 for a model without sequences\n  hint: sequence "
            "parallelism divides the tokens of a sequence; leave it out");
  plan = plan_of(2, 1, 4);
  plan.expert = 8;
  plan.expert_tensor = 1;
  EXPECT_EQ(
      error(mixtral, plan),
      "plan: plan.expert_tensor 1 with plan.tensor 2 needs plan.sequence_parallel\n  hint: without it all "
      "tensor ranks would send the same tokens to the experts");
  plan.expert = 2;
  plan.expert_tensor = 4;
  EXPECT_EQ(error(mixtral, plan),
            "plan: plan.expert_tensor 4 is more than plan.tensor 2\n"
            "  hint: plan.expert_tensor can be at most 2");
  plan = plan_of(1, 1, 8);
  plan.expert = 8;
  EXPECT_EQ(error(mixtral, plan, 8), "plan: expert position 8 of plan.expert 8");
  plan = plan_of(2);
  plan.embedding_parallel = false;
  EXPECT_EQ(error(llama, plan), "no error");  // its head has weights of its own
  EXPECT_EQ(
      error(zoo_model("gpt2-124m"), plan),
      "plan: plan.embedding_parallel false for a model whose head has the weights of its embedding\n"
      "  hint: tensor parallelism divides the other one, and so the weights that both share; leave it out");
  plan.head_parallel = false;
  EXPECT_EQ(error(zoo_model("gpt2-124m"), plan), "no error");
  plan.embedding_parallel = true;
  EXPECT_NE(error(zoo_model("gpt2-124m"), plan), "no error");
  EXPECT_NE(error(llama, plan_of(0)), "no error");
  EXPECT_NE(error(llama, plan_of(-8)), "no error");
  EXPECT_NE(error(llama, plan_of(1, 1'000'000'000)), "no error");
}

// Whatever is legal: steps wait for earlier ones, messages have partners, and nothing is negative.
TEST(ShardModel, PassesAreSoundUnderAnyLegalPlan) {
  std::mt19937 random(11);
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  const Model models[] = {zoo_model("llama3-8b"),   zoo_model("mixtral-8x7b"), zoo_model("bert-large"),
                          zoo_model("deepseek-v3"), zoo_model("t5-large"),     zoo_model("vgg11")};
  int legal = 0;
  for (int round = 0; round < 400; ++round) {
    const Model& model = models[random() % std::size(models)];
    Plan plan = plan_of(one_of({1, 2, 4, 7, 16}), one_of({1, 1, 2, 3, 8}), one_of({1, 2, 8}));
    plan.sequence_parallel = random() % 2 == 0;
    plan.overlap_tensor = random() % 2 == 0;
    plan.expert = one_of({1, 1, 2, 8});
    plan.expert_tensor = one_of({0, 1, 2});
    plan.context_method = random() % 2 == 0 ? ContextMethod::ring : ContextMethod::all_to_all;
    plan.recompute = static_cast<Recompute>(random() % 4);
    plan.expert_load = static_cast<ExpertLoad>(random() % 3);
    plan.expert_skew = 0.5;
    plan.accumulation_fusion = random() % 2 == 0;
    plan.precision = random() % 2 == 0 ? DType::bf16 : DType::fp8;
    ShardedModel sharded;
    try {
      sharded = shard_model(model, plan, plan.expert - 1, "plan");
    } catch (const Error&) {
      continue;
    }
    ++legal;
    for (const BlockShape& shape : sharded.shapes) {
      EXPECT_GE(std::min({shape.saved, shape.working, shape.input, shape.output}), Bytes(0));
      for (const Pass* pass : {&shape.forward, &shape.recompute, &shape.backward}) {
        std::map<std::uint32_t, std::int64_t> tags;
        for (std::uint32_t s = 0; s < pass->steps.size(); ++s) {
          const PassStep& step = pass->steps[s];
          for (const std::uint32_t other : step.after) ASSERT_LT(other, s);
          if (step.kind == NodeKind::compute) {
            ASSERT_LT(step.work, sharded.works.size());
          } else if (step.kind == NodeKind::collective) {
            EXPECT_GT(step.bytes, Bytes(0));
          } else {
            tags[step.tag] += step.shift * step.bytes.value;
          }
        }
        for (const auto& [tag, balance] : tags) EXPECT_EQ(balance, 0) << tag;
      }
    }
  }
  EXPECT_GT(legal, 60);
}

}  // namespace
}  // namespace armilla
