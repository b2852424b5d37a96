#include "study/run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/error_testing.h"
#include "ir/derived/communication.h"
#include "ir/derived/metrics.h"
#include "read/study.h"

namespace armilla {
namespace {

Study study_of(const std::string& model, const std::string& machine, std::int64_t ranks, std::int64_t batch) {
  Study study;
  study.model.name = model;
  study.machine = with_ranks(load_machine(machine, "test"), ranks, true, "test");
  study.plan.ranks = ranks;
  study.plan.batch = batch;
  return study;
}

bool mentions(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(RunStudy, ComputeIsTheSumOfItsKernels) {
  const auto run = run_study(study_of("resnet50", "dgx-a100", 8, 64));
  ASSERT_EQ(run.result.classes.size(), 1U);
  const RankClass& ranks = run.result.classes[0];
  Time sum;
  for (const Interval& interval : ranks.computes) sum += interval.end - interval.start;
  EXPECT_EQ(ranks.compute, sum);
  EXPECT_EQ(ranks.compute + ranks.exposed_communication + idle(ranks, run.result.iteration),
            run.result.iteration);
  EXPECT_EQ(ranks.finish, run.result.iteration);
}

TEST(RunStudy, NotesSayWhatCostsProducts) {
  const auto notes = [](const std::string& machine) {
    Study study = study_of("resnet50", machine, 4, 4);
    study.compute.name = "kernels";
    return run_study(study).notes;
  };
  EXPECT_TRUE(
      mentions(notes("tpu-v5e"), "tpu-v5e has no measured rates of kernels: its systolic arrays and "));
  EXPECT_TRUE(mentions(notes("dgx-1"), "has no measured rates of kernels: the roofline costs them, with "));
}

TEST(RunStudy, EveryGradientByteIsExchanged) {
  const auto run = run_study(study_of("resnet50", "dgx-a100", 16, 32));
  Bytes sum;
  for (const CollectiveRecord& record : run.result.collectives)
    sum += run.graph.collectives[record.call].bytes;
  EXPECT_EQ(sum, Bytes(25'557'032 * 4));
  EXPECT_EQ(run.result.collectives.size(), 5U);
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    EXPECT_GT(summary.link_share, 0.1);
    EXPECT_LE(summary.link_share, 1.0);
  }
}

TEST(RunStudy, MicroBatchesMultiplyComputeButNotCommunication) {
  Study study = study_of("resnet18", "ethernet-rack", 8, 64);
  const auto whole = run_study(study);
  study.plan.micro_batches = 4;
  const auto split = run_study(study);
  EXPECT_EQ(split.result.collectives.size(), whole.result.collectives.size());
  EXPECT_GT(split.result.classes[0].compute, whole.result.classes[0].compute)
      << "launches are paid four times";
  EXPECT_LT(split.memory.activations, whole.memory.activations);
}

TEST(RunStudy, OverlapHidesCommunication) {
  Study study = study_of("resnet50", "dgx-a100", 32, 64);
  const auto overlapped = run_study(study);
  study.plan.overlap = false;
  const auto serial = run_study(study);
  EXPECT_LT(overlapped.result.iteration, serial.result.iteration);
  EXPECT_EQ(overlapped.result.classes[0].compute, serial.result.classes[0].compute);
}

TEST(RunStudy, WhatTheUserMustNotOverlookIsSaid) {
  EXPECT_TRUE(mentions(run_study(study_of("vgg16", "dgx-a100", 8, 4096)).warnings, "does not fit"));
  EXPECT_TRUE(
      mentions(run_study(study_of("resnet18", "dgx-a100", 8, 8)).notes, "lists no matrix rate for fp32"));
  Study study = study_of("resnet18", "dgx-a100", 8, 8);
  EXPECT_TRUE(run_study(study).warnings.empty());
  study.network.name = "analytical-unshared";
  study.collectives.algorithms = {"direct"};
  EXPECT_TRUE(mentions(run_study(study).warnings, "does not share links"));
}

TEST(RunStudy, ChunksThatMakeTheScheduleInterleavedAreNoted) {
  const auto notes = [](const std::string& plan) {
    return run_study(
               prepare_study(read_study(Config::parse(
                   "model: gpt2-345m\nmachine: dgx-a100\nplan: {ranks: 8, pipeline: 4, virtual_stages: 2" +
                       plan + "}\n",
                   "study.yaml"))))
        .notes;
  };
  const std::string note = "2 model chunks per pipeline rank make the schedule 1f1b interleaved";
  EXPECT_TRUE(mentions(notes(""), note));
  EXPECT_TRUE(mentions(notes(", schedule: 1f1b"), note));
  EXPECT_FALSE(mentions(notes(", schedule: interleaved"), note));
}

armilla::Run run_of(const std::string& text) {
  return run_study(prepare_study(read_study(Config::parse(text, "study.yaml"))));
}

TEST(RunStudy, SelectiveRecomputeOfAModelWithoutAttentionIsNone) {
  for (const char* const more : {"", ", pipeline: 2", ", precision: bf16", ", zero: 3"}) {
    const auto with = [&](const std::string& recompute) {
      return run_of(std::string("model: resnet18\nmachine: dgx-h100\nplan: {ranks: 8") + more +
                    ", recompute: " + recompute + "}\n");
    };
    const auto none = with("none"), selective = with("selective");
    EXPECT_EQ(none.result.iteration, selective.result.iteration) << more;
    EXPECT_EQ(none.study.plan, selective.study.plan) << more;
    EXPECT_EQ(none.memory.peak(), selective.memory.peak()) << more;
    EXPECT_FALSE(mentions(none.notes, "has no effect")) << more;
    EXPECT_TRUE(
        mentions(selective.notes, "has no effect: the model has no attention that could be computed again"))
        << more;
    EXPECT_NE(with("full").result.iteration, none.result.iteration) << more;
  }
  EXPECT_NE(run_of("model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 8, recompute: selective}\n")
                .result.iteration,
            run_of("model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 8}\n").result.iteration);
}

std::string on_two_kinds(const std::string& first, const std::string& second, const std::string& more = {}) {
  return "model: gpt2-345m\nmachine:\n  device: a10\n  devices:\n    - {ranks: 0-3, device: " + first +
         "}\n    - {ranks: 4-7, device: " + second +
         "}\n  dimensions: [{kind: Switch, size: 8, bandwidth: 100GB/s, latency: 1us}]\n"
         "plan: {tensor: 2, pipeline: 2" +
         more + "}\n";
}

TEST(RunStudy, PeakAndCapacityAreThoseOfTheDevicesThatWork) {
  const auto slow = run_of(on_two_kinds("a40", "a40")), fast = run_of(on_two_kinds("h100-sxm", "h100-sxm"));
  const auto mixed = run_of(on_two_kinds("a40", "h100-sxm"));
  EXPECT_EQ(mixed.peak_rate.value, (slow.peak_rate.value + fast.peak_rate.value) / 2);
  EXPECT_GT(fast.peak_rate, slow.peak_rate);
  // The first stage runs on ranks 0 to 3.
  ASSERT_EQ(mixed.roles.size(), 2U);
  EXPECT_EQ(mixed.roles[0].use.capacity, slow.roles[0].use.capacity);
  EXPECT_EQ(mixed.roles[1].use.capacity, fast.roles[0].use.capacity);
  EXPECT_EQ(mixed.memory.capacity, slow.memory.capacity);  // closest to its limit
  for (const auto& run : {slow, fast, mixed}) EXPECT_LT(model_flops_utilization(run), 1);
}

TEST(RunStudy, TheDeviceThatIsTooSmallIsNamed) {
  const std::string more = ", micro_batch: 48";
  const auto run = run_of(on_two_kinds("h100-sxm", "v100-16gb-sxm2", more));
  ASSERT_EQ(run.warnings.size(), 1U);
  EXPECT_EQ(run.warnings[0].substr(0, 26), "does not fit: a rank needs");
  EXPECT_NE(run.warnings[0].find("device 'v100-16gb-sxm2' has 16.00 GiB; what would make it fit"),
            std::string::npos)
      << run.warnings[0];
  EXPECT_FALSE(run.memory.fits());
  EXPECT_TRUE(run_of(on_two_kinds("h100-sxm", "h100-sxm", more)).memory.fits());
}

TEST(RunStudy, UtilizationsNameTheirConventionAndAreSharesOfThePeak) {
  const std::string text =
      "model: {name: llama3-8b, sequence: 131072}\nmachine: dgx-h100\n"
      "plan: {ranks: 64, tensor: 8, recompute: full}\n";
  const auto run = run_of(text);
  EXPECT_TRUE(mentions(run.notes, "leave out the attention scores that the mask hides (causal half)"));
  // Attention is most of the work here; every block is computed forward twice, its scores a third time.
  EXPECT_GT(full_model_flops(run), 1.5 * model_flops(run));
  EXPECT_GT(hardware_flops(run), 1.3 * model_flops(run));
  EXPECT_GT(model_flops_utilization(run), 0.1);
  EXPECT_LT(hardware_flops_utilization(run), 1);
  EXPECT_FALSE(
      mentions(run_of("model: bert-large\nmachine: dgx-h100\nplan: {ranks: 8}\n").notes, "the mask hides"));
}

// Of flat groups a rank may be done before the last it sent has arrived; that is no fault of the network.
TEST(RunStudy, NoCallBeatsItsLinksOnANetworkThatSharesThem) {
  const auto run = run_of(
      "model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 64, tensor: 2}\n"
      "collectives: {decomposition: flat}\n");
  EXPECT_FALSE(mentions(run.warnings, "does not share links"));
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    EXPECT_LE(summary.link_share, 1);
    EXPECT_LE(summary.per_rank.link_share, 1);
  }
}

// Ranks out of step must not serve different calls and wait for each other. Last in, first out across
// communicators took 69 % more here.
TEST(RunStudy, ARankThatIsALittleFasterCostsLittle) {
  const std::string job =
      "model: {name: llama3-8b, sequence: 4096}\nmachine: dgx-h100\nplan: {ranks: 64, tensor: 4}\n";
  const Time alike = run_of(job).result.iteration;
  const Time apart = run_of(job + "what_if: {ranks: [{ranks: 13, time: 0.99}]}\n").result.iteration;
  EXPECT_LT(in_seconds(apart), 1.05 * in_seconds(alike));
}

TEST(RunStudy, ErrorsOfTheLoweringNameTheKey) {
  const auto error = [](const std::string& plan) {
    return error_of([&] { run_of("model: gpt2-345m\nmachine: dgx-h100\nplan: {" + plan + "}\n"); });
  };
  EXPECT_EQ(
      error("ranks: 64, pipeline: 2, stage_blocks: [34, 0]"),
      "study.yaml:3:46: plan.stage_blocks: plan.stage_blocks 34,0 adds up to 34, the model has 26 blocks, 24 "
      "of them layers\n  hint: make them add up to 24 (or 26, with embedding and head)");
  EXPECT_EQ(
      error("ranks: 8, pipeline: 4, recompute_blocks: 7"),
      "study.yaml:3:49: plan.recompute_blocks: plan.recompute_blocks 7 for model chunks of at most 6 layers\n"
      "  hint: plan.recompute_blocks can be at most 6; plan.recompute full takes all");
  EXPECT_EQ(error("ranks: 8, expert_tensor: 2"),
            "study.yaml:3:33: plan.expert_tensor: plan.expert_tensor 2 for a model without experts\n"
            "  hint: leave it out");
}

TEST(RunStudy, WhatChangesNothingIsNoted) {
  const auto run = run_of("model: gpt2-345m\nmachine: dgx-h100\nplan: {ranks: 8, sequence_parallel: true}\n");
  EXPECT_TRUE(mentions(run.notes, "study.yaml:3:37: plan.sequence_parallel has no effect: plan.tensor is 1"));
}

TEST(RunStudy, ASingleDeviceTrainsWithoutANetwork) {
  const auto run = run_study(study_of("resnet18", "dgx-a100", 1, 8));
  EXPECT_GT(run.result.iteration, Time(0));
  EXPECT_TRUE(run.result.collectives.empty());
  EXPECT_TRUE(run.warnings.empty());
}

TEST(RunStudy, WrongNamesAreErrors) {
  Study study = study_of("resnet18", "dgx-a100", 8, 8);
  study.compute.name = "ruffline";
  EXPECT_THROW(run_study(study), Error);
  study = study_of("resnet18", "dgx-a100", 8, 8);
  study.network.name = "garnet";
  EXPECT_THROW(run_study(study), Error);
  study = study_of("resnet18", "dgx-a100", 8, 7);
  study.plan.micro_batches = 2;
  EXPECT_THROW(run_study(study), Error);
}

}  // namespace
}  // namespace armilla
