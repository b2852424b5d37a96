#include "read/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error_testing.h"
#include "base/source_path_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace armilla {
namespace {

using testing::ElementsAre;

Study study_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  return read_study(Config::parse(text, "s.yaml", overrides));
}

std::string study_error(const std::string& text, const std::vector<Override>& overrides = {}) {
  return error_of([&] { study_of(text, overrides); });
}

constexpr const char* kSmall = "model: resnet50\nmachine: dgx-a100\n";

TEST(StudyYaml, DefaultsAreThoseOfTheStructsAndTheMachineAsItIs) {
  const Study study = study_of(kSmall);
  EXPECT_EQ(study.model.name, "resnet50");
  EXPECT_EQ(study.model.sequence, 0);
  EXPECT_EQ(rank_count(study.machine), 64);
  EXPECT_FALSE(study.request.ranks || study.request.tensor || study.request.data || study.request.batch);
  EXPECT_EQ(study.request.plan.bucket, Bytes(25 << 20));
  EXPECT_EQ(study.compute.name, "kernels");
  EXPECT_EQ(study.network.name, "analytical");
  EXPECT_TRUE(study.collectives.algorithms.empty());
  EXPECT_FALSE(study.what_if.changes_simulation());
}

// The dimensions of a graph do not tell which groups share its links.
TEST(StudyYaml, AGraphOfLinksIsSimulatedAsOneUnlessAnotherNetworkIsNamed) {
  const std::string graph =
      "model: resnet50\nmachine: {name: m, device: h100-sxm, topology: 'leaf-spine:leaves=2,hosts=2'}\n";
  EXPECT_EQ(study_of(graph).network.name, "flow");
  EXPECT_EQ(study_of(graph + "network: analytical\n").network.name, "analytical");
}

TEST(StudyYaml, ReadsEveryKey) {
  const Study study = study_of(
      "model: {name: bert, dimensions: {seq: 128, batch: 4}}\n"
      "machine: dgx-h100\n"
      "plan: {ranks: 16, batch: 64, micro_batches: 4, precision: bf16, bucket: 1MiB, first_bucket: 64KiB,\n"
      "       overlap: false, optimizer: adam}\n"
      "compute: {model: systolic, rows: 128, dataflow: os}\n"
      "network: analytical:share=false\n"
      "collectives:\n"
      "  algorithms: [ring, 'direct:window=4']\n"
      "  all-to-all: direct\n"
      "  decomposition: baseline\n"
      "  chunks: 8\n"
      "  active_chunks: 2\n"
      "  order: priority\n"
      "  charge_reductions: true\n");
  EXPECT_EQ(study.model.name, "bert");
  EXPECT_EQ(study.model.dimensions.at("seq"), 128);
  EXPECT_EQ(study.request.ranks, 16);
  EXPECT_EQ(study.request.batch, 64);
  EXPECT_EQ(study.request.micro_batches, 4);
  EXPECT_EQ(study.request.precision, DType::bf16);
  EXPECT_EQ(study.request.plan.bucket, Bytes(1 << 20));
  EXPECT_EQ(study.request.plan.first_bucket, Bytes(64 << 10));
  EXPECT_FALSE(study.request.plan.overlap);
  EXPECT_EQ(study.request.optimizer, Optimizer::adam);
  EXPECT_EQ(study.compute.name, "systolic");
  EXPECT_EQ(study.compute.where, "s.yaml:5:18: compute.model");
  EXPECT_EQ(study.compute.parameters.at("rows").value, "128");
  EXPECT_EQ(study.compute.parameters.at("dataflow").where, "s.yaml:5:49: compute.dataflow");
  EXPECT_EQ(study.network.parameters.at("share").value, "false");
  EXPECT_THAT(study.collectives.algorithms, ElementsAre("ring", "direct:window=4"));
  EXPECT_THAT(study.collectives.algorithms_by_kind.at(CollectiveKind::all_to_all), ElementsAre("direct"));
  EXPECT_EQ(study.collectives.decomposition, Decomposition::baseline);
  EXPECT_EQ(study.collectives.chunks, 8);
  EXPECT_EQ(study.collectives.active_chunks, 2);
  EXPECT_EQ(study.collectives.order, ChunkOrder::priority);
  EXPECT_TRUE(study.collectives.charge_reductions);
}

TEST(StudyYaml, ReadsEveryKeyOfAHybridPlan) {
  const PlanRequest request =
      study_of(
          "model: {name: llama3-8b, sequence: 4096}\nmachine: dgx-h100\n"
          "plan:\n"
          "  {tensor: 8, pipeline: 4, context: 2, data: 16, expert: 4, expert_tensor: 2, virtual_stages: 2,\n"
          "   schedule: interleaved, stage_blocks: [3, 5], global_batch: 99999999999, micro_batch: 2,\n"
          "   sequence_parallel: true, overlap_tensor: true, overlap_pipeline: false,\n"
          "   overlap_tensor_gradients: true,\n"
          "   scatter_gather: true,\n"
          "   context_method: all-to-all, expert_load: zipf, expert_skew: 0.5, seed: 7, zero: 3,\n"
          "   prefetch: false, reshard: false, hybrid_shard: 8, overlap_parameters: false,\n"
          "   offload: [optimizer, activations], accumulation_fusion: false, recompute_blocks: 3, "
          "recompute_early_stop: true,\n"
          "   order: data-tensor-pipeline-context, weight_type: bf16, gradient_type: fp32,\n"
          "   parameter_type: fp8, loss: narrow, loss_parallel: false, embedding_parallel: false,\n"
          "   head_parallel: false,\n"
          "   scaling: current, zero_partition: tensors, reduce_scatter: false, "
          "step_overhead: 15ms}\n")
          .request;
  const Plan& plan = request.plan;
  EXPECT_EQ(request.tensor, 8);
  EXPECT_EQ(request.pipeline, 4);
  EXPECT_EQ(request.context, 2);
  EXPECT_EQ(request.data, 16);
  EXPECT_EQ(plan.expert, 4);
  EXPECT_EQ(plan.expert_tensor, 2);
  EXPECT_EQ(plan.virtual_stages, 2);
  EXPECT_EQ(plan.schedule, "interleaved");
  EXPECT_THAT(plan.stage_blocks, ElementsAre(3, 5));
  EXPECT_FALSE(request.balance_stages);
  EXPECT_EQ(request.global_batch, 99'999'999'999);
  EXPECT_EQ(request.micro_batch, 2);
  EXPECT_TRUE(plan.sequence_parallel);
  EXPECT_TRUE(plan.overlap_tensor);
  EXPECT_TRUE(plan.overlap_tensor_gradients);
  EXPECT_FALSE(plan.overlap_pipeline);
  EXPECT_TRUE(plan.scatter_gather);
  EXPECT_EQ(plan.context_method, ContextMethod::all_to_all);
  EXPECT_EQ(plan.expert_load, ExpertLoad::zipf);
  EXPECT_EQ(plan.expert_skew, 0.5);
  EXPECT_EQ(plan.seed, 7U);
  EXPECT_EQ(plan.zero_stage, 3);
  EXPECT_FALSE(plan.prefetch);
  EXPECT_FALSE(plan.reshard);
  EXPECT_EQ(plan.hybrid_shard, 8);
  EXPECT_FALSE(plan.overlap_parameters);
  EXPECT_TRUE(plan.offload_optimizer);
  EXPECT_TRUE(plan.offload_activations);
  EXPECT_FALSE(plan.accumulation_fusion);
  EXPECT_EQ(plan.scaling, Scaling::current);
  EXPECT_EQ(plan.zero_partition, ZeroPartition::tensors);
  EXPECT_FALSE(plan.reduce_scatter);
  EXPECT_EQ(plan.step_overhead, microseconds(15'000));
  EXPECT_EQ(plan.loss, LossKernel::narrow);
  EXPECT_FALSE(plan.loss_parallel);
  EXPECT_FALSE(plan.embedding_parallel);
  EXPECT_FALSE(plan.head_parallel);
  EXPECT_EQ(plan.recompute, Recompute::block);
  EXPECT_EQ(plan.recompute_blocks, 3);
  EXPECT_EQ(plan.recompute_early_stop, true);
  EXPECT_THAT(plan.order, ElementsAre(Axis::data, Axis::tensor, Axis::pipeline, Axis::context));
  EXPECT_EQ(plan.weight_dtype, DType::bf16);
  EXPECT_EQ(plan.gradient_dtype, DType::fp32);
  EXPECT_EQ(plan.parameter_dtype, DType::fp8);
  const PlanRequest other =
      study_of(kSmall, {"plan.stage_blocks=balanced", "plan.order=[pipeline, data, context, tensor]",
                        "plan.offload=optimizer"})
          .request;
  EXPECT_TRUE(other.balance_stages);
  EXPECT_THAT(other.plan.order, ElementsAre(Axis::pipeline, Axis::data, Axis::context, Axis::tensor));
  EXPECT_TRUE(other.plan.offload_optimizer);
  EXPECT_FALSE(other.plan.offload_activations);
}

TEST(StudyYaml, ReadsPartsOfLayers) {
  const auto plan = [](const std::vector<Override>& settings) {
    return study_of(kSmall, settings).request.plan;
  };
  const Plan modules = plan({"plan.recompute_modules=[moe_act, layernorm]"});
  EXPECT_EQ(modules.recompute, Recompute::selective);
  EXPECT_EQ(modules.recompute_modules, (Parts{Part::layernorm, Part::moe_act}));
  EXPECT_EQ(plan({"plan.recompute=selective"}).recompute_modules, Parts{Part::core_attn});
  const Plan one = plan({"plan.recompute=selective", "plan.recompute_modules=mlp"});
  EXPECT_EQ(one.recompute_modules, Parts{Part::mlp});
  // No part at all is a choice, too: searches compare it with others.
  EXPECT_EQ(plan({"plan.recompute_modules=none"}).recompute, Recompute::none);
  EXPECT_EQ(plan({"plan.recompute=none", "plan.recompute_modules=[none]"}).recompute, Recompute::none);
  EXPECT_EQ(plan({"plan.recompute_blocks=2", "plan.recompute_modules=none"}).recompute, Recompute::block);
  EXPECT_EQ(plan({"plan.recompute=block:3"}).recompute, Recompute::block);
  EXPECT_EQ(plan({"plan.recompute=block:3"}).recompute_blocks, 3);
  EXPECT_TRUE(plan({"plan.wide_modules=none"}).wide_modules.empty());
  const Plan wide = plan(
      {"plan.wide_first_layers=1", "plan.wide_last_layers=2", "plan.wide_modules=[attention, prediction]"});
  EXPECT_EQ(wide.wide_first_layers, 1);
  EXPECT_EQ(wide.wide_last_layers, 2);
  EXPECT_EQ(wide.wide_modules, (Parts{Part::attention, Part::prediction}));
  EXPECT_EQ(plan({"plan.cuda_graph_scope=[attn, mlp]"}).cuda_graph_scope,
            (Parts{Part::attn, Part::mlp_layer}));
  const Plan masks = plan({"plan.expert_dispatch=one-hot", "plan.expert_capacity=1.25"});
  EXPECT_EQ(masks.expert_dispatch, ExpertDispatch::one_hot);
  EXPECT_EQ(masks.expert_capacity, 1.25);
}

TEST(StudyYaml, RefusesHybridPlansThatMakeNoSense) {
  const auto error = [](const std::string& setting) { return study_error(kSmall, {"plan." + setting}); };
  EXPECT_EQ(error("tensor=0"), "--set plan.tensor=0: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(error("zero=4"), "--set plan.zero=4: 4 is too large\n  hint: the highest value is 3");
  EXPECT_EQ(error("order=tensor-data"),
            "--set plan.order=tensor-data: the axis 'context' is missing\n"
            "  hint: name all four, innermost first: tensor-context-data-pipeline");
  EXPECT_EQ(error("order=tensor-tensor-data-pipeline"),
            "--set plan.order=tensor-tensor-data-pipeline: the axis 'tensor' is named twice");
  EXPECT_EQ(error("order=tensor-contxt-data-pipeline"),
            "--set plan.order=tensor-contxt-data-pipeline: unknown axis 'contxt'\n"
            "  hint: did you mean 'context'?");
  EXPECT_EQ(
      error("stage_blocks=odd"),
      "--set plan.stage_blocks=odd: expected 'even', 'balanced' or a list with the blocks of every stage\n"
      "  hint: for example [11, 12, 12, 11]");
  EXPECT_EQ(error("stage_blocks=[]"),
            "--set plan.stage_blocks=[]: a list of 0 stages\n  hint: give one number for every stage");
  EXPECT_EQ(error("expert_skew=-1"), "--set plan.expert_skew=-1: a skew of -1\n  hint: expected 0 to 100");
  EXPECT_EQ(error("offload=weights"),
            "--set plan.offload=weights: unknown value 'weights'\n"
            "  hint: known: none, optimizer, activations");
  EXPECT_EQ(error("recompute_modules=moes"),
            "--set plan.recompute_modules=moes: unknown value 'moes'\n  hint: did you mean 'moe'?");
  EXPECT_EQ(error("recompute_modules=[moe, moe]"),
            "--set plan.recompute_modules=[moe, moe]: plan.recompute_modules.1: 'moe' is named twice");
  EXPECT_EQ(study_error(kSmall, {"plan.recompute=full", "plan.recompute_modules=moe"}),
            "--set plan.recompute_modules=moe: cannot be combined with recompute 'full'\n"
            "  hint: leave plan.recompute out: plan.recompute_modules alone says what is recomputed");
  EXPECT_EQ(study_error(kSmall, {"plan.recompute_blocks=2", "plan.recompute_modules=moe"}),
            "--set plan.recompute_modules=moe: cannot be combined with plan.recompute_blocks\n"
            "  hint: blocks are recomputed whole, modules in every block");
  EXPECT_EQ(error("recompute_modules=[none, moe]"),
            "--set plan.recompute_modules=[none, moe]: plan.recompute_modules.0: 'none' cannot be combined "
            "with other parts");
  EXPECT_EQ(study_error(kSmall, {"plan.recompute=selective", "plan.recompute_modules=none"}),
            "--set plan.recompute_modules=none: cannot be combined with recompute 'selective'\n"
            "  hint: leave plan.recompute out: plan.recompute_modules alone says what is recomputed");
  EXPECT_EQ(error("recompute_modules=[]"),
            "--set plan.recompute_modules=[]: an empty list\n"
            "  hint: plan.recompute none recomputes nothing");
  EXPECT_EQ(error("expert_capacity=1001"),
            "--set plan.expert_capacity=1001: a capacity of 1001\n"
            "  hint: expected rows relative to the mean, up to 1000; 0: no limit");
  EXPECT_EQ(study_error(kSmall, {"plan.recompute=block:3", "plan.recompute_blocks=2"}),
            "--set plan.recompute_blocks=2: cannot be combined with recompute block:N, which says how many\n"
            "  hint: give one of them");
  EXPECT_THAT(study_error(kSmall, {"plan.recompute=block:x"}),
              testing::HasSubstr("plan.recompute=block:x: "));
  EXPECT_EQ(study_error(kSmall, {"plan.recompute=block:-2"}),
            "--set plan.recompute=block:-2: -2 is not a number of blocks\n  hint: for example block:8");
  EXPECT_EQ(study_error(kSmall, {"plan.recompute=full", "plan.recompute_blocks=2"}),
            "--set plan.recompute_blocks=2: cannot be combined with recompute 'full'\n"
            "  hint: plan.recompute_blocks needs plan.recompute block");
}

TEST(StudyYaml, ReadsWhatIf) {
  const WhatIf what_if = study_of(std::string(kSmall) +
                                  "what_if:\n"
                                  "  ranks: [{ranks: '0-7,12', time: 1.5}, {ranks: 3, time: 2}]\n"
                                  "  links: [{dimension: rail, ranks: 3, bandwidth: 0.5, latency: 2}]\n"
                                  "  jitter: {deviation: 0.1, seed: 4}\n"
                                  "  failures: {mtbf_of_node: 5y, ranks_per_node: 4, checkpoint: 30s,\n"
                                  "             restart: 10min, interval: 2h}\n")
                             .what_if;
  ASSERT_EQ(what_if.ranks.size(), 3U);
  EXPECT_EQ(what_if.ranks[0].ranks.last, 7);
  EXPECT_EQ(what_if.ranks[1].ranks.first, 12);
  EXPECT_EQ(what_if.ranks[1].time, 1.5);
  EXPECT_EQ(what_if.ranks[2].time, 2);
  ASSERT_EQ(what_if.links.size(), 1U);
  EXPECT_EQ(what_if.links[0].dimension, 1U);
  EXPECT_EQ(what_if.links[0].bandwidth, 0.5);
  EXPECT_EQ(what_if.links[0].latency, 2);
  EXPECT_EQ(what_if.jitter.deviation, 0.1);
  EXPECT_EQ(what_if.jitter.seed, 4U);
  EXPECT_DOUBLE_EQ(what_if.failures.mtbf_of_node, 5 * 365.25 * 86400);
  EXPECT_EQ(what_if.failures.ranks_per_node, 4);
  EXPECT_EQ(what_if.failures.checkpoint, 30);
  EXPECT_EQ(what_if.failures.restart, 600);
  EXPECT_EQ(what_if.failures.interval, 7200);
}

TEST(StudyYaml, RefusesWhatIfThatMakesNoSense) {
  const auto error = [](const std::string& setting) { return study_error(kSmall, {"what_if." + setting}); };
  EXPECT_EQ(error("ranks=[{ranks: 7-0, time: 2}]"),
            "--set what_if.ranks=[{ranks: 7-0, time: 2}]: what_if.ranks.0.ranks: the range 7-0 runs "
            "backwards\n  hint: write 0-7");
  EXPECT_EQ(error("ranks=[{ranks: 0, time: 0}]"),
            "--set what_if.ranks=[{ranks: 0, time: 0}]: what_if.ranks.0.time: a factor of 0\n  hint: "
            "expected 1e-06 to 1e+06");
  EXPECT_EQ(error("links=[{dimension: rails, ranks: 0}]"),
            "--set what_if.links=[{dimension: rails, ranks: 0}]: what_if.links.0.dimension: unknown "
            "dimension 'rails'\n"
            "  hint: did you mean 'rail'?");
  EXPECT_EQ(error("jitter={deviation: -1}"),
            "--set what_if.jitter={deviation: -1}: what_if.jitter.deviation: a factor of -1\n  hint: "
            "expected 0 to 10");
  EXPECT_EQ(error("failures={checkpoint: 1s}"),
            "--set what_if.failures={checkpoint: 1s}: the key 'mtbf_of_node' is missing");
  EXPECT_EQ(error("failures={mtbf_of_node: 0s}"),
            "--set what_if.failures={mtbf_of_node: 0s}: what_if.failures.mtbf_of_node: must be "
            "positive");
}

TEST(StudyYaml, ReadsHowMuchTheTrainingReads) {
  const std::string start = "model: llama3-8b\nmachine: dgx-h100\n";
  EXPECT_EQ(study_of(start + "training: {tokens: 15T}\n").training.tokens, 15e12);
  EXPECT_EQ(study_of(start + "training: {samples: 1.28e8}\n").training.samples, 1.28e8);
  EXPECT_EQ(study_of(start).training.tokens, 0);
  EXPECT_EQ(study_error(start, {"training.tokens=15 trillion"}),
            "--set training.tokens=15 trillion: 'trillion' is not the suffix of a count\n"
            "  hint: k, M, B and T stand for 1e3, 1e6, 1e9 and 1e12");
  EXPECT_EQ(study_error(start, {"training.tokens=1.5"}),
            "--set training.tokens=1.5: 1.5 tokens\n  hint: expected a whole number");
  EXPECT_EQ(study_error(start, {"training.tokens=1T", "training.samples=1M"}),
            "--set training.samples=1M: cannot be combined with training.tokens\n  hint: give one of them");
}

TEST(StudyYaml, OverridesWorkWithoutAFile) {
  const Study study =
      study_of("", {"model=vgg16", "machine=tpu-v4", "plan.ranks=32", "compute=systolic:rows=64"});
  EXPECT_EQ(study.model.name, "vgg16");
  EXPECT_EQ(study.request.ranks, 32);
  EXPECT_EQ(study.request.ranks_where, "--set plan.ranks=32");
  EXPECT_EQ(study.compute.parameters.at("rows").where, "--set compute=systolic:rows=64: rows");
}

TEST(StudyYaml, PathsAreRelativeToTheFile) {
  const std::string text = "model: nets/mine.onnx\nmachine: dgx-a100\n";
  EXPECT_EQ(read_study(Config::parse(text, "some/where/s.yaml")).model.name, "some/where/nets/mine.onnx");
  EXPECT_EQ(read_study(Config::parse(text, "s.yaml")).model.name, "nets/mine.onnx");
  EXPECT_EQ(read_study(Config::parse(text, "some/where/s.yaml", {"model=./other.onnx"})).model.name,
            "./other.onnx");
  EXPECT_EQ(read_study(Config::parse(text, "some/where/s.yaml", {"model=alexnet"})).model.name, "alexnet");
  EXPECT_EQ(read_study(Config::parse("model: {name: /a/b.onnx}\nmachine: dgx-a100\n", "x/s.yaml")).model.name,
            "/a/b.onnx");
  EXPECT_EQ(
      error_of([] { read_study(Config::parse("model: vgg16\nmachine: mine.yaml\n", "no/such/s.yaml")); }),
      "no/such/mine.yaml: cannot open the file: No such file or directory");
}

TEST(StudyYaml, RefusesWhatMakesNoSense) {
  EXPECT_EQ(study_error(""),
            "s.yaml: is empty, not a study\n  hint: a study has the keys 'model' and 'machine'");
  EXPECT_EQ(study_error("just text"),
            "s.yaml:1:1: holds a single value, not a study\n"
            "  hint: a study has the keys 'model' and 'machine'");
  EXPECT_EQ(study_error("model: resnet50\n"), "s.yaml:1:1: the key 'machine' is missing");
  EXPECT_EQ(study_error("model: ''\nmachine: dgx-a100\n"), "s.yaml:1:8: model: the name is empty");
  EXPECT_EQ(study_error("model: [a]\nmachine: dgx-a100\n"),
            "s.yaml:1:8: model: expected a mapping with the key 'name'");
  EXPECT_EQ(study_error("model: vgg16\nmachine: dgx-a1000\n"),
            "s.yaml:2:10: machine: unknown machine 'dgx-a1000'\n  hint: did you mean 'dgx-a100'?");
  const std::string small = kSmall;
  EXPECT_EQ(study_error(small + "plans: {}\n"),
            "s.yaml:3:1: plans: unknown key 'plans'\n  hint: did you mean 'plan'?");
  EXPECT_EQ(
      study_error(small + "plan: {microbatches: 2}\n"),
      "s.yaml:3:8: plan.microbatches: unknown key 'microbatches'\n  hint: did you mean 'micro_batches'?");
  // Words of flags, papers and other tools, and keys in the wrong section.
  EXPECT_EQ(study_error(small + "plan: {tp: 2}\n"),
            "s.yaml:3:8: plan.tp: unknown key 'tp'\n  hint: did you mean 'tensor'?");
  EXPECT_EQ(
      study_error(small + "plan: {tensor-parallel: 2}\n"),
      "s.yaml:3:8: plan.tensor-parallel: unknown key 'tensor-parallel'\n  hint: did you mean 'tensor'?");
  EXPECT_EQ(study_error("models: vgg16\nmachine: dgx-a100\n"),
            "s.yaml:1:1: the key 'model' is missing\n  hint: there is 'models': did you mean 'model'?");
  EXPECT_EQ(study_error("model: vgg16\nmachine: {name: dgx-a100, gpus: 8}\n"),
            "s.yaml:2:10: machine: the key 'device' is missing\n  hint: for the machine of this name write "
            "machine: dgx-a100, and plan.ranks for the number of devices");
  EXPECT_EQ(study_error(small + "plan: {sequence: 2}\n"),
            "s.yaml:3:8: plan.sequence: unknown key 'sequence'\n  hint: did you mean 'model.sequence'?");
  EXPECT_EQ(study_error(small + "ranks: 8\n"),
            "s.yaml:3:1: ranks: unknown key 'ranks'\n  hint: did you mean 'plan.ranks'?");
  EXPECT_EQ(study_error(small + "plan: {ranks: 0}\n"),
            "s.yaml:3:15: plan.ranks: 0 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(study_error(small + "plan: {batch: 3, global_batch: 6}\n"),
            "s.yaml:3:32: plan.global_batch: cannot be combined with plan.batch\n  hint: give one: of all "
            "ranks, or "
            "of one");
  EXPECT_EQ(study_error(small + "plan: {batch: -3}\n"),
            "s.yaml:3:15: plan.batch: -3 is too small\n  hint: the lowest value is 1");
  EXPECT_EQ(study_error(small + "plan: {bucket: 25}\n"),
            "s.yaml:3:16: plan.bucket: '25' has no unit\n"
            "  hint: expected a size with its unit, such as '25MiB'");
  EXPECT_EQ(study_error(small + "plan: {bucket: 0B}\n"),
            "s.yaml:3:16: plan.bucket: a gradient bucket must hold at least 1 byte");
  EXPECT_EQ(study_error(small + "plan: {offload: [optimizer, none]}\n"),
            "s.yaml:3:29: plan.offload.1: 'none' cannot be combined with others");
  EXPECT_EQ(study_error(small + "what_if: {failures: {mtbf_of_node: 1y, interval: 0s}}\n"),
            "s.yaml:3:50: what_if.failures.interval: the interval must be positive\n"
            "  hint: omit it for the best one");
  EXPECT_EQ(study_error(small + "plan: {precision: int8}\n"),
            "s.yaml:3:19: plan.precision: unknown value 'int8'\n"
            "  hint: known: fp64, fp32, tf32, bf16, fp16, fp8, fp4");
  EXPECT_EQ(study_error(small + "plan: {overlap: yes}\n"),
            "s.yaml:3:17: plan.overlap: expected true or false, not 'yes'");
  EXPECT_EQ(study_error(small + "compute: {rows: 8}\n"), "s.yaml:3:10: compute: the key 'model' is missing");
  EXPECT_EQ(study_error(small + "compute: {model: systolic, rows: [8]}\n"),
            "s.yaml:3:34: compute.rows: expected a single value");
  EXPECT_EQ(study_error(small + "network: 'analytical:'\n"),
            "s.yaml:3:10: network: '' is not name=value\n  hint: write NAME:parameter=value,parameter=value");
  EXPECT_EQ(
      study_error(small + "collectives: {algorithms: []}\n"),
      "s.yaml:3:27: collectives.algorithms: the list is empty\n  hint: leave the key out for the default");
  EXPECT_EQ(
      study_error(small + "collectives: {all_reduce: ring}\n"),
      "s.yaml:3:15: collectives.all_reduce: unknown key 'all_reduce'\n  hint: did you mean 'all-reduce'?");
  EXPECT_EQ(study_error(small + "collectives: {chunks: 1000000000}\n"),
            "s.yaml:3:23: collectives.chunks: 1000000000 is too large\n  hint: the highest value is 65536");
  EXPECT_EQ(study_error(small + "collectives: {order: random}\n"),
            "s.yaml:3:22: collectives.order: unknown value 'random'\n  hint: known: lifo, fifo, priority");
}

TEST(StudyYaml, JobsAreForThoseWhoTakeThem) {
  const std::string text = "machine: dgx-a100\njobs:\n  - {name: a, model: resnet18}\n";
  EXPECT_EQ(
      study_error(text),
      "s.yaml:3:3: jobs: several jobs where one model is expected\n  hint: armilla run and check take them");
  const JobsStudy study = read_jobs(Config::parse(text, "s.yaml", {}));
  ASSERT_EQ(study.jobs.size(), 1U);
  EXPECT_EQ(study.jobs[0].study.model.name, "resnet18");
  EXPECT_EQ(study.jobs[0].study.machine.name, "dgx-a100");
}

// A plan beside them would be nobody's, whether the file has it or a flag.
TEST(StudyYaml, SeveralJobsHaveNoPlanInCommon) {
  const std::string text = "machine: dgx-a100\njobs:\n  - {name: a, model: resnet18}\n";
  const auto error = [&](const std::string& more, const std::vector<Override>& settings) {
    return error_of([&] { read_jobs(Config::parse(text + more, "s.yaml", settings)); });
  };
  EXPECT_EQ(error("plan: {tensor: 2}\n", {}),
            "s.yaml:4:7: plan: one plan beside several jobs\n"
            "  hint: every job has its own: give `plan` in the list `jobs`");
  EXPECT_EQ(error("", {{"plan.tensor=2", "--tp 2"}}),
            "--tp 2: one plan beside several jobs\n"
            "  hint: every job has its own: give `plan` in the list `jobs`");
  EXPECT_NE(error("profile: times.csv\n", {}).find("one profile beside several jobs"), std::string::npos);
}

TEST(StudyYaml, TheExampleIsRead) {
  const Study study = read_study(Config::read(source_path("examples/resnet50-dgx-a100.yaml")));
  EXPECT_EQ(study.model.name, "resnet50");
  EXPECT_EQ(study.request.ranks, 64);
  EXPECT_EQ(study.request.precision, DType::fp16);
}

TEST(StudyYaml, TheFuzzCorpusIsReadOrRefused) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/fuzz/study"))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    SCOPED_TRACE(entry.path());
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), 0);
    ++files;
  }
  EXPECT_GE(files, 20);
}

// The editor's schema against the reader.
class StudySchema : public testing::Test {
 protected:
  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  }
  Config definition(const std::string& name) const { return schema_.at("definitions").at(name); }
  static std::vector<std::string> properties(const Config& object) {
    return sorted(object.at("properties").keys());
  }
  static std::vector<std::string> enumeration(const Config& object, const std::string& property) {
    std::vector<std::string> names;
    for (const Config& name : object.at("properties").at(property).at("enum").items())
      names.push_back(name.text());
    return sorted(names);
  }
  // The reader lists what it knows when nothing resembles a key or value: "... known: a, b, c".
  static std::vector<std::string> known(const std::string& override_text) {
    const std::string text =
        "model: {name: vgg16}\nmachine: {device: {memory: 1GB, memory_bandwidth: 1GB/s, vector_rate: "
        "1GFLOPS},\n"
        "  dimensions: [{kind: Ring, size: 2, bandwidth: 1GB/s, latency: 1us}]}\nplan: {}\ncollectives: {}\n";
    const std::string error = study_error(text, {override_text});
    const std::string mark = "known: ";
    std::vector<std::string> names;
    const auto at = error.find(mark);
    if (at == std::string::npos) return {error};
    std::string rest = error.substr(at + mark.size());
    for (std::size_t end; (end = rest.find(", ")) != std::string::npos; rest = rest.substr(end + 2))
      names.push_back(rest.substr(0, end));
    names.push_back(rest);
    return sorted(names);
  }

  Config schema_ = Config::read(source_path("docs/formats/study.schema.json"));
};

TEST_F(StudySchema, ItsKeysAreTheReaders) {
  const std::string odd = "~~~~~~~~~~~~=1";
  EXPECT_EQ(properties(schema_), known(odd));
  EXPECT_EQ(properties(definition("model")), known("model." + odd));
  EXPECT_EQ(properties(definition("plan")), known("plan." + odd));
  EXPECT_EQ(properties(definition("collectives")), known("collectives." + odd));
  EXPECT_EQ(properties(definition("machine")), known("machine." + odd));
  EXPECT_EQ(properties(definition("device")), known("machine.device." + odd));
  EXPECT_EQ(properties(definition("dimension")), known("machine.dimensions.0." + odd));
  EXPECT_EQ(properties(definition("what_if")), known("what_if." + odd));
  EXPECT_EQ(properties(definition("training")), known("training." + odd));
  EXPECT_EQ(properties(definition("jitter")), known("what_if.jitter={deviation: 0, ~~~~~~~~~~~~: 1}"));
  EXPECT_EQ(properties(definition("failures")),
            known("what_if.failures={mtbf_of_node: 1y, ~~~~~~~~~~~~: 1}"));
  EXPECT_EQ(properties(definition("slow_ranks")),
            known("what_if.ranks=[{ranks: 0, time: 1, ~~~~~~~~~~~~: 1}]"));
  EXPECT_EQ(properties(definition("slow_links")),
            known("what_if.links=[{ranks: 0, dimension: dim0, ~~~~~~~~~~~~: 1}]"));
  EXPECT_EQ(properties(definition("other_devices")),
            known("machine.devices=[{ranks: 0, device: a10, ~~~~~~~~~~~~: 1}]"));
}

TEST_F(StudySchema, ItsNamesAreTheReaders) {
  const std::string odd = "=~~~~~~~~~~~~";
  EXPECT_EQ(enumeration(definition("plan"), "precision"), known("plan.precision" + odd));
  for (const std::string key :
       {"optimizer", "context_method", "expert_load", "loss", "recompute", "tensor_method", "weight_type"})
    EXPECT_EQ(enumeration(definition("plan"), key), known("plan." + key + odd)) << key;
  EXPECT_EQ(enumeration(definition("collectives"), "decomposition"),
            known("collectives.decomposition" + odd));
  EXPECT_EQ(enumeration(definition("collectives"), "order"), known("collectives.order" + odd));
  EXPECT_EQ(enumeration(definition("dimension"), "kind"), known("machine.dimensions.0.kind" + odd));
}

}  // namespace
}  // namespace armilla
