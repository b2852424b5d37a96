#include "study/run_study.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "ir/metrics.h"
#include "read/machine_yaml.h"
#include "read/study_yaml.h"
#include "study/prepare.h"

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
