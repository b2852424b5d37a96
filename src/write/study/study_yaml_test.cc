#include "write/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/config.h"
#include "base/source_path_testing.h"
#include "read/study.h"

namespace armilla {
namespace {

Study read_again(const Study& study) {
  return read_study(Config::parse(write_study_yaml(study, "made by\na test"), "s.yaml", {}));
}

TEST(StudyYaml, EveryChoiceOfAPlanIsReadAgain) {
  Study study;
  study.model.name = "odd: \"name\"";
  study.model.text = "family: gpt\nlayers: 2\n";
  study.model.sequence = 128;
  study.machine = load_machine("dgx-h100", "test");
  study.request.ranks = 16;
  study.request.tensor = study.request.pipeline = study.request.context = study.request.data = 2;
  study.request.global_batch = 64;
  study.request.micro_batch = 2;
  study.request.precision = DType::fp8;
  study.request.optimizer = Optimizer::adam;
  Plan& plan = study.request.plan;
  plan.weight_dtype = plan.gradient_dtype = plan.parameter_dtype = plan.state_dtype = DType::bf16;
  plan.scaling = Scaling::block;
  plan.wide_first_layers = 1;
  plan.wide_last_layers = 2;
  plan.wide_modules = {Part::attention, Part::prediction};
  plan.fp8_attention = plan.fused_experts = true;
  plan.cuda_graph_scope = {Part::attn, Part::moe_layer};
  plan.expert = plan.expert_tensor = 2;
  plan.virtual_stages = 2;
  plan.schedule = "combined-1f1b";
  plan.stage_blocks = {1, 2, 3, 4};
  plan.sequence_parallel = plan.overlap_tensor = plan.overlap_tensor_gradients = plan.scatter_gather = true;
  plan.overlap_pipeline = plan.overlap = plan.overlap_parameters = plan.prefetch = plan.reshard = false;
  plan.context_method = ContextMethod::all_to_all;
  plan.expert_load = ExpertLoad::zipf;
  plan.expert_skew = 0.3;
  plan.expert_dispatch = ExpertDispatch::one_hot;
  plan.expert_capacity = 1.25;
  plan.dispatch_dtype = DType::fp8;
  plan.seed = 7;
  plan.first_bucket = Bytes(12345);
  plan.bucket = Bytes(1 << 30);
  plan.zero_stage = 3;
  plan.zero_partition = ZeroPartition::tensors;
  plan.hybrid_shard = 2;
  plan.no_sync = plan.offload_optimizer = plan.offload_activations = true;
  plan.reduce_scatter = plan.accumulation_fusion = plan.channels_last = plan.loss_parallel =
      plan.embedding_parallel = plan.head_parallel = false;
  plan.tensor_method = TensorMethod::dtensor;
  plan.framework = Framework::pytorch;
  plan.host = Host::compiled;
  plan.issue_time = Time(60'000'001);
  plan.step_overhead = Time(15'000'000'001);
  plan.check_collectives = true;
  plan.fused_elementwise = {Part::norm, Part::rotary};
  plan.loss = LossKernel::narrow;
  plan.recompute = Recompute::selective;
  plan.recompute_modules = {Part::mlp, Part::moe_act};
  plan.recompute_early_stop = false;
  plan.order = {Axis::data, Axis::tensor, Axis::context, Axis::pipeline};
  // Each key is written: of two ways to say the same, one.
  const std::string text = write_study_yaml(study, "test");
  const Config schema = Config::read(source_path("docs/formats/study.schema.json"));
  std::vector<std::string> missing;
  for (const std::string& key : schema.at("definitions").at("plan").at("properties").keys()) {
    if (text.find("\n  " + key + ": ") == std::string::npos) missing.push_back(key);
  }
  EXPECT_THAT(missing, testing::UnorderedElementsAre("batch", "micro_batches", "recompute_blocks"));
  const Study read = read_again(study);
  EXPECT_EQ(read.request.plan, plan);
  EXPECT_EQ(read.request.ranks, 16);
  EXPECT_EQ(read.request.tensor, 2);
  EXPECT_EQ(read.request.pipeline, 2);
  EXPECT_EQ(read.request.context, 2);
  EXPECT_EQ(read.request.data, 2);
  EXPECT_EQ(read.request.global_batch, 64);
  EXPECT_EQ(read.request.micro_batch, 2);
  EXPECT_EQ(read.request.precision, DType::fp8);
  EXPECT_EQ(read.request.optimizer, Optimizer::adam);
  EXPECT_EQ(read.model.name, study.model.name);
  EXPECT_EQ(read.model.text, study.model.text);
  EXPECT_EQ(read.model.sequence, 128);
  EXPECT_EQ(read.compute.name, "kernels");
  EXPECT_TRUE(read.collectives.measured);
}

TEST(StudyYaml, SystolicArraysAreReadAgain) {
  for (const std::string name : {"tpu-7x", "tpu-v5e"}) {
    Study study;
    study.model.name = "resnet50";
    study.request.ranks = 8;
    study.machine = load_machine("dgx-h100", "test");
    study.machine.device = load_device(name, "test");
    ASSERT_TRUE(study.machine.device.arrays);
    study.machine.device.arrays->attention_block = 1234;
    EXPECT_EQ(dump_machine(read_again(study).machine), dump_machine(study.machine)) << name;
    study.machine.device.arrays->attention_forward = 0;
    EXPECT_EQ(dump_machine(read_again(study).machine), dump_machine(study.machine)) << name;
  }
}

// The row of a table that was measured on one device has a machine without links.
TEST(StudyYaml, ADeviceAloneIsReadAgain) {
  Study study;
  study.model.name = "resnet50";
  study.request.ranks = 1;
  study.machine = load_machine("dgx-h100", "test");
  study.machine.dimensions.clear();
  const Study again = read_again(study);
  EXPECT_EQ(again.machine.device.name, study.machine.device.name);
  EXPECT_LE(again.machine.dimensions.size(), 1U);
}

TEST(StudyYaml, MachinesOfTheZooAreReadAgain) {
  for (const std::string& name : machine_names()) {
    Study study;
    study.model.name = "resnet50";
    study.request.ranks = 8;
    study.machine = load_machine(name, "test");
    // Slices of tori are for machines that grow.
    if (!study.machine.graph.empty() || study.machine.largest_slice > 0 || !study.machine.others.empty())
      continue;
    EXPECT_EQ(dump_machine(read_again(study).machine), dump_machine(study.machine)) << name;
  }
}

}  // namespace
}  // namespace armilla
