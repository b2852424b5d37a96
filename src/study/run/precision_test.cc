#include "study/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error_testing.h"
#include "read/study.h"

namespace armilla {
namespace {

void expect_error(const std::function<void()>& call, const std::string& what, const std::string& hint) {
  EXPECT_EQ(error_of(call), what + "\n  hint: " + hint);
}

Run lowered(const std::string& text, const std::vector<Override>& flags = {}) {
  const Study study = prepare_study(read_study(Config::parse(text, "study.yaml", flags)));
  return lower_study(study, *make_cost_model(study.compute, study.machine.device));
}

TEST(Precision, TypesWithoutARateAreRefusedWithTheNearest) {
  expect_error(
      [] {
        lowered("model: gpt2-345m\nmachine: dgx-a100\n", {{"plan.precision=fp8", "--precision fp8"}});
      },
      "--precision fp8: a100-80gb-sxm has no fp8 matrix units",
      "a100-80gb-sxm computes in bf16, fp16, tf32, fp32 and fp64");
  expect_error([] { lowered("model: gpt2-345m\nmachine: dgx-h100\nplan: {precision: fp4}\n"); },
               "study.yaml:3:19: plan.precision: h100-sxm has no fp4 matrix units",
               "h100-sxm computes in fp8, bf16, fp16, tf32, fp32 and fp64");
  expect_error([] { lowered("model: resnet50\nmachine: dgx-2\nplan: {precision: bf16}\n"); },
               "study.yaml:3:19: plan.precision: v100-32gb-sxm2 has no bf16 matrix units",
               "v100-32gb-sxm2 computes in fp16, fp32 and fp64");
  expect_error([] { lowered("model: resnet50\nmachine: tpu-v4\nplan: {precision: tf32}\n"); },
               "study.yaml:3:19: plan.precision: tpu-v4 has no tf32 matrix units",
               "tpu-v4 computes in bf16 and fp32");
}

constexpr const char* kMixed =
    "machine:\n  device: h100-sxm\n  devices: [{ranks: 1, device: v100-32gb-sxm2}]\n"
    "  dimensions: [{kind: Switch, size: 2, bandwidth: 100GB/s, latency: 1us}]\n";

TEST(Precision, EveryDeviceOfTheRanksCounts) {
  expect_error([] { lowered(std::string("model: gpt2-345m\n") + kMixed + "plan: {precision: bf16}\n"); },
               "study.yaml:6:19: plan.precision: v100-32gb-sxm2 has no bf16 matrix units",
               "v100-32gb-sxm2 computes in fp16, fp32 and fp64");
  const std::string jobs = std::string(kMixed) +
                           "jobs:\n  - {name: a, model: gpt2-345m, plan: {ranks: 1}}\n"
                           "  - {name: b, model: gpt2-345m, plan: {ranks: 1, precision: fp8}}\n";
  const JobsStudy study = read_jobs(Config::parse(jobs, "jobs.yaml"));
  const auto cost = make_cost_model(study.shared.compute, study.shared.machine.device);
  expect_error([&] { lower_jobs(study, *cost); },
               "jobs.yaml:7:61: jobs.1.plan.precision: v100-32gb-sxm2 has no fp8 matrix units",
               "v100-32gb-sxm2 computes in fp16, fp32 and fp64");
}

TEST(Precision, ADeviceOfOnesOwnComputesInWhatItNames) {
  const std::string machine =
      "machine:\n  device: {name: mine, memory: 80GiB, memory_bandwidth: 1TB/s, vector_rate: 10TFLOPS,\n"
      "    matrix_rate: {fp8: 100TFLOPS}}\n"
      "  dimensions: [{kind: Switch, size: 2, bandwidth: 100GB/s, latency: 1us}]\n";
  // Attention, embeddings and heads of an fp8 plan are in bf16.
  expect_error([&] { lowered("model: gpt2-345m\n" + machine + "plan: {precision: fp8}\n"); },
               "study.yaml:6:19: plan.precision: mine has no bf16 matrix units",
               "mine computes in fp8 and fp32");
  EXPECT_NO_THROW(
      lowered("model: gpt2-345m\n" + machine + "compute: roofline:peak=100TFLOPS\nplan: {precision: fp8}\n"));
}

TEST(Precision, TheDefaultIsOneThatTheDevicesHave) {
  const auto run = lowered("model: gpt2-345m\nmachine: dgx-2\n");
  EXPECT_EQ(run.study.plan.precision, DType::fp16);
  EXPECT_EQ(run.study.plan.weight_dtype, DType::fp16);
  ASSERT_FALSE(run.notes.empty());
  EXPECT_EQ(std::count(run.notes.begin(), run.notes.end(),
                       "precision fp16: the usual bf16 has no matrix units on these devices"),
            1);
  EXPECT_EQ(lowered("model: gpt2-345m\nmachine: dgx-h100\n").study.plan.precision, DType::bf16);
}

TEST(Precision, WhatIsOnlyStoredCanHaveAnyType) {
  EXPECT_NO_THROW(lowered("model: gpt2-345m\nmachine: dgx-a100\nplan: {weight_type: fp8}\n"));
}

}  // namespace
}  // namespace armilla
