#include "lower/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lower/shard/shard_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PlanNotes, NameWhatWasGivenAndChangesNothing) {
  PlanRequest request;
  request.places = {
      {"sequence_parallel", "--sequence-parallel"}, {"seed", "--seed 3"}, {"batch", "--batch 2"}};
  Plan plan;
  plan.sequence_parallel = true;
  Model model;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--sequence-parallel has no effect: plan.tensor is 1",
                          "--seed 3 has no effect: the model has no experts"));
  model.facts.experts = 8;
  plan.ranks = 8;
  plan.tensor = 2;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--seed 3 has no effect: plan.expert is 1"));
  plan.expert = 4;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--seed 3 has no effect: plan.expert_load is not random"));
  plan.expert_load = ExpertLoad::random;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
  plan.sequence_parallel = false;
  plan.tensor = 1;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());  // switched off where it is idle
}

TEST(PlanNotes, PartsOfLayersThatAreNotThere) {
  PlanRequest request;
  request.places = {{"recompute_modules", "--recompute-modules moe"},
                    {"wide_modules", "--set plan.wide_modules=moe"},
                    {"wide_last_layers", "--set plan.wide_last_layers=2"},
                    {"scaling", "--set plan.scaling=current"},
                    {"expert_capacity", "--set plan.expert_capacity=2"}};
  request.plan.recompute = Recompute::selective;
  request.plan.recompute_modules = {Part::moe};
  Plan plan = request.plan;
  plan.wide_modules = {Part::moe};
  Model model;
  model.facts.heads = 4;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--set plan.scaling=current has no effect: plan.precision is not fp8",
                          "--set plan.wide_last_layers=2 has no effect: plan.precision has 16 bits or more",
                          "--set plan.wide_modules=moe has no effect: plan.precision has 16 bits or more",
                          "--recompute-modules moe has no effect: the model has none of these parts",
                          "--set plan.expert_capacity=2 has no effect: the model has no experts"));
  plan.precision = DType::fp8;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--set plan.wide_last_layers=2 has no effect: the model has no such layers",
                          "--set plan.wide_modules=moe has no effect: the model has none of these parts",
                          "--recompute-modules moe has no effect: the model has none of these parts",
                          "--set plan.expert_capacity=2 has no effect: the model has no experts"));
  Operator product;
  product.weight_is_operand = true;
  product.parts.add(Part::moe);
  model.operators = {product};
  model.blocks = {{"layer", BlockKind::decoder, 0, 1, 0}};
  model.facts.experts = 8;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
}

// On one rank there is nothing to schedule, but for what stays in memory or runs into the next iteration.
TEST(PlanNotes, SchedulesOfOneRank) {
  PlanRequest request;
  request.places = {{"schedule", "--schedule NAME"}, {"stage_blocks", "--stage-blocks 3"}};
  const auto notes = [&](std::string_view schedule, std::int64_t micro_batches) {
    Plan plan;
    plan.schedule = schedule;
    plan.micro_batches = micro_batches;
    return settings_without_effect(request, plan, {});
  };
  const std::string schedule = "--schedule NAME has no effect: plan.pipeline is 1";
  const std::string blocks = "--stage-blocks 3 has no effect: plan.pipeline is 1";
  EXPECT_THAT(notes("1f1b", 4), ElementsAre(schedule, blocks));
  EXPECT_THAT(notes("gpipe", 1), ElementsAre(schedule, blocks));
  EXPECT_THAT(notes("gpipe", 4), ElementsAre(blocks));
  EXPECT_THAT(notes("zb-h1", 1), ElementsAre(blocks));
  EXPECT_THAT(notes("pipedream-2bw", 1), ElementsAre(blocks));
  EXPECT_THAT(notes("combined-1f1b", 1), ElementsAre(blocks));
  request.places = {{"schedule", "--schedule NAME"}, {"virtual_stages", "--vpp 2"}};
  const auto chunks = [&](std::string_view name) {
    Plan plan;
    plan.schedule = name;
    plan.micro_batches = 4;
    plan.virtual_stages = 2;
    return settings_without_effect(request, plan, {});
  };
  EXPECT_THAT(chunks("interleaved"), ElementsAre());
  EXPECT_THAT(chunks("combined-1f1b"), ElementsAre());
  EXPECT_THAT(chunks("zb-v"), ElementsAre());
}

// What one has anyway needs no note.
TEST(PlanNotes, NoPartsAreNoSettingWithoutEffect) {
  PlanRequest request;
  request.places = {{"wide_modules", "plan.wide_modules"}, {"cuda_graph_scope", "plan.cuda_graph_scope"}};
  Plan plan;
  plan.precision = DType::fp8;
  for (const Host host : {Host::eager, Host::compiled}) {
    plan.host = host;
    EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
  }
}

TEST(PlanNotes, ASkewOfNoneMakesLoadsEven) {
  PlanRequest request;
  request.places = {{"expert_load", "--expert-load zipf"}, {"expert_skew", "--expert-skew 0"}};
  Plan plan;
  plan.ranks = plan.expert = 4;
  plan.expert_load = ExpertLoad::zipf;
  Model model;
  model.facts.experts = 8;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--expert-load zipf has no effect: plan.expert_skew is 0, which makes all experts "
                          "alike"));
  plan.expert_skew = 1;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
}

TEST(PlanNotes, WhatFrameworksDoNeedsSomethingToDoItWith) {
  PlanRequest request;
  request.places = {{"tensor_method", "plan.tensor_method"},
                    {"fused_elementwise", "plan.fused_elementwise"},
                    {"fused_experts", "plan.fused_experts"},
                    {"check_collectives", "plan.check_collectives"},
                    {"cuda_graph_scope", "plan.cuda_graph_scope"}};
  Plan plan;
  plan.fused_experts = plan.check_collectives = true;
  plan.cuda_graph_scope = {Part::attn};
  plan.host = Host::eager;
  EXPECT_THAT(
      settings_without_effect(request, plan, {}),
      ElementsAre("plan.tensor_method has no effect: plan.sequence_parallel does not share out tokens",
                  "plan.fused_elementwise has no effect: the model has none of these parts",
                  "plan.check_collectives has no effect: a single rank exchanges nothing",
                  "plan.cuda_graph_scope has no effect: the model has none of these parts",
                  "plan.fused_experts has no effect: the model has no experts"));
  const std::string text =
      "family: mixtral\nlayers: 2\nhidden: 256\nheads: 4\nvocabulary: 8192\nsequence: 512\n"
      "experts: {count: 4, active: 2, feed_forward: 384}\n";
  const Model model = read_described_yaml(text, "m", ModelOptions());
  plan.ranks = plan.tensor = 2;
  plan.sequence_parallel = true;
  plan.host = Host::compiled;
  EXPECT_THAT(
      settings_without_effect(request, plan, model),
      ElementsAre("plan.check_collectives has no effect: plan.host compiled issues a step as one",
                  "plan.cuda_graph_scope has no effect: plan.host compiled issues a step as one",
                  "plan.fused_experts has no effect: experts have products of other than multiples of "
                  "256, biases or no gate"));
  plan.host = Host::eager;
  plan.fused_experts = false;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
}

TEST(PlanNotes, ShardingNeedsSomebodyToShareWith) {
  PlanRequest request;
  request.places = {{"zero", "--zero 3"}};
  request.plan.zero_stage = 3;
  Plan plan;  // as resolved: ZeRO without replicas is none
  plan.ranks = plan.tensor = 8;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("--zero 3 has no effect: there are no data-parallel ranks to share states with"));
  plan.framework = Framework::pytorch;
  plan.zero_stage = 3;
  EXPECT_THAT(
      settings_without_effect(request, plan, {}),
      ElementsAre("--zero 3 shares nothing out, since there are no data-parallel ranks; how FSDP updates "
                  "weights and holds gradients is counted all the same"));
  plan.tensor = 4;
  plan.zero_stage = 3;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
}

// PyTorch waits for what it reduces; under sequence parallelism gathers and scatters come in pieces, and a
// compiled step reduces one sum beside another.
TEST(PlanNotes, TensorRanksOverlapOnlyWhatCanRunBesideProducts) {
  PlanRequest request;
  request.places = {{"overlap_tensor", "--overlap-tensor"}};
  Plan plan = plan_of(2);
  plan.framework = Framework::pytorch;
  plan.host = Host::eager;
  plan.overlap_tensor = true;
  const Model model = zoo_model("gpt2-345m");
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("--overlap-tensor has no effect: PyTorch waits for every all-reduce; under "
                          "plan.sequence_parallel or plan.host compiled products would run beside what is "
                          "exchanged"));
  Plan other = plan;
  other.sequence_parallel = true;
  EXPECT_THAT(settings_without_effect(request, other, model), IsEmpty());
  other = plan;
  other.host = Host::compiled;
  EXPECT_THAT(settings_without_effect(request, other, model), IsEmpty());
  other = plan;
  other.framework = Framework::megatron;
  EXPECT_THAT(settings_without_effect(request, other, model), IsEmpty());
}

TEST(PlanNotes, ZeRO3HasNoBuckets) {
  PlanRequest request;
  request.places = {{"bucket", "--bucket 10GiB"}, {"first_bucket", "--first-bucket 1GiB"}};
  Plan plan;
  plan.ranks = 8;
  plan.zero_stage = 3;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("--bucket 10GiB has no effect: ZeRO-3 exchanges gradients block by block",
                          "--first-bucket 1GiB has no effect: ZeRO-3 exchanges gradients block by block"));
  plan.zero_stage = 2;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
}

TEST(PlanNotes, TensorsAreSharedOutUnderZeRO1AmongReplicas) {
  PlanRequest request;
  request.places = {{"zero_partition", "plan.zero_partition"}};
  Plan plan;
  plan.ranks = 8;
  plan.zero_partition = ZeroPartition::tensors;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.zero_partition has no effect: plan.zero is 0"));
  plan.zero_stage = request.plan.zero_stage = 1;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
  plan.ranks = 1;
  plan.zero_stage = 0;  // as resolved
  EXPECT_THAT(
      settings_without_effect(request, plan, {}),
      ElementsAre("plan.zero_partition has no effect: there are no data-parallel ranks to share out for"));
}

TEST(PlanNotes, GradientsAreScatteredUnderZeROAmongReplicas) {
  PlanRequest request;
  request.places = {{"reduce_scatter", "plan.reduce_scatter"}};
  Plan plan;
  plan.ranks = 8;
  plan.reduce_scatter = false;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.reduce_scatter has no effect: gradients are scattered under ZeRO only"));
  plan.zero_stage = request.plan.zero_stage = 1;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
  plan.zero_partition = ZeroPartition::tensors;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.reduce_scatter has no effect: gradients of whole tensors are all-reduced"));
  plan.ranks = 1;
  plan.zero_stage = 0;  // as resolved
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.reduce_scatter has no effect: there are no data-parallel ranks to exchange "
                          "gradients with"));
}

TEST(PlanNotes, NothingLiesBetweenStepsThatOverlap) {
  PlanRequest request;
  request.places = {{"step_overhead", "plan.step_overhead"}};
  Plan plan;
  plan.ranks = plan.pipeline = 2;
  plan.step_overhead = Time(1);
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
  plan.schedule = "pipedream-2bw";
  EXPECT_THAT(
      settings_without_effect(request, plan, {}),
      ElementsAre("plan.step_overhead has no effect: steps overlap under plan.schedule pipedream-2bw"));
}

TEST(PlanNotes, WholeGradientsAreKeptOnlyWhereTheyAreSharded) {
  PlanRequest request;
  request.places = {{"no_sync", "plan.no_sync"}};
  Plan plan;
  plan.ranks = 8;
  plan.no_sync = true;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.no_sync has no effect: gradients are sharded by ZeRO-2 and ZeRO-3 only"));
  plan.zero_stage = 2;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.no_sync has no effect: there is one micro-batch"));
  plan.micro_batches = 2;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
}

TEST(PlanNotes, LossesWithOneKernelOrWithoutLogits) {
  PlanRequest request;
  request.places = {{"loss", "plan.loss"}, {"loss_parallel", "plan.loss_parallel"}};
  Plan plan;
  plan.ranks = 8;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());  // as they are without being given
  plan.loss = LossKernel::narrow;
  plan.loss_parallel = false;
  Model model;
  model.operators.resize(1);
  model.operators[0].type = "BinaryCrossEntropy";
  plan.framework = Framework::pytorch;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("plan.loss has no effect: the model has no loss over logits",
                          "plan.loss_parallel has no effect: the model has no loss over logits"));
  model.operators[0].type = "SoftmaxCrossEntropyLoss";
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("plan.loss has no effect: the loss is an operator of a graph, which has one kernel",
                          "plan.loss_parallel has no effect: plan.tensor is 1"));
  plan.tensor = 2;
  model.operators[0].forward.kernel = Kernel::loss;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
  plan.framework = Framework::megatron;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("plan.loss has no effect: plan.framework is megatron, whose loss is in fp32"));
}

TEST(PlanNotes, WeightsAreGatheredUnderZeroOnly) {
  PlanRequest request;
  request.places = {{"parameter_type", "plan.parameter_type"}};
  Plan plan;
  plan.ranks = 8;
  EXPECT_THAT(settings_without_effect(request, plan, {}),
              ElementsAre("plan.parameter_type has no effect: weights are gathered under ZeRO only"));
  plan.zero_stage = 1;
  EXPECT_THAT(settings_without_effect(request, plan, {}), IsEmpty());
}

TEST(PlanNotes, ConvolutionsOnTensorCoresWantChannelsLast) {
  PlanRequest request;
  Plan plan;
  plan.precision = DType::fp16;
  Model model;
  EXPECT_THAT(convolution_note(request, plan, model), IsEmpty());
  Operator& op = model.operators.emplace_back();
  op.type = "Conv";
  op.weight_is_operand = true;
  op.forward.gemms = {{64, 1, 9, 32}};  // channel by channel
  EXPECT_THAT(convolution_note(request, plan, model), IsEmpty());
  op.forward.gemms = {{64, 32, 288, 1}};
  EXPECT_THAT(convolution_note(request, plan, model), testing::HasSubstr("channels last (NHWC)"));
  request.places = {{"channels_last", "plan.channels_last"}};
  EXPECT_THAT(convolution_note(request, plan, model), IsEmpty());
  plan.channels_last = false;
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
  plan.precision = DType::fp32;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("plan.channels_last has no effect: the model has no convolutions that tensor cores "
                          "compute"));
}

TEST(PlanNotes, NothingStopsEarlyWithoutBlocksDoneAgain) {
  PlanRequest request;
  request.places = {{"recompute_early_stop", "plan.recompute_early_stop"}};
  Plan& plan = request.plan;
  plan.recompute_early_stop = false;
  for (const Recompute other : {Recompute::none, Recompute::operators}) {
    plan.recompute = other;
    EXPECT_THAT(
        settings_without_effect(request, plan, Model()),
        testing::Contains("plan.recompute_early_stop has no effect: plan.recompute is none or operators"));
  }
  for (const Recompute whole : {Recompute::full, Recompute::block, Recompute::selective}) {
    plan.recompute = whole;
    EXPECT_THAT(settings_without_effect(request, plan, Model()), IsEmpty());
  }
}

TEST(PlanNotes, WholeTablesWithoutTensorParallelismOrTables) {
  PlanRequest request;
  request.places = {{"embedding_parallel", "plan.embedding_parallel"}};
  Plan plan;
  plan.ranks = 8;
  plan.embedding_parallel = false;
  Model model;
  model.operators.resize(1);
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("plan.embedding_parallel has no effect: plan.tensor is 1"));
  plan.tensor = 2;
  EXPECT_THAT(settings_without_effect(request, plan, model),
              ElementsAre("plan.embedding_parallel has no effect: the model has no table of tokens"));
  model.operators[0].split = Split::vocabulary;
  model.operators[0].parameters = {0};
  EXPECT_THAT(settings_without_effect(request, plan, model), IsEmpty());
}

TEST(PlanNotes, SayHowABatchWasCut) {
  PlanRequest request;
  Plan plan;
  plan.ranks = 8;
  plan.batch = 1;
  EXPECT_EQ(batch_note(request, plan, true),
            "plan.batch was not given: 1 sample per replica and iteration is assumed, as 1 micro-batch of 1");
  plan.batch = 32;
  plan.micro_batches = 16;
  plan.pipeline = 4;
  EXPECT_EQ(
      batch_note(request, plan, false),
      "plan.batch was not given: 32 samples per replica and iteration are assumed, as 16 micro-batches of 2, "
      "4 per pipeline stage");
  request.batch = 32;
  EXPECT_EQ(batch_note(request, plan, false),
            "a replica's batch of 32 becomes 16 micro-batches of 2, as many as divide it up to 4 per "
            "pipeline stage; "
            "plan.micro_batch or plan.micro_batches chooses another number");
  plan.pipeline = plan.micro_batches = 1;
  EXPECT_EQ(
      batch_note(request, plan, true),
      "a replica's batch of 32 goes through as 1 micro-batch of 32; plan.micro_batch or plan.micro_batches "
      "cuts it into more");
  EXPECT_EQ(batch_note(request, plan, false), "");
  request.micro_batch = 32;
  EXPECT_EQ(batch_note(request, plan, true), "");
}

}  // namespace
}  // namespace armilla
