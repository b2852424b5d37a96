#include "study/run.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/study.h"

namespace armilla {
namespace {

constexpr std::string_view kRing =
    "machine:\n"
    "  name: ring\n"
    "  device: a100-80gb-sxm\n"
    "  dimensions: [{name: rack, kind: Ring, size: 8, bandwidth: 12.5GB/s, latency: 2us}]\n";

JobsStudy study(std::string_view jobs) {
  return read_jobs(Config::parse(std::string(kRing) + std::string(jobs), "jobs.yaml", {}));
}

std::string two(std::string_view first, std::string_view second) {
  return "jobs:\n"
         "  - {name: a, model: resnet18, devices: \"" +
         std::string(first) +
         "\", plan: {batch: 8}}\n"
         "  - {name: b, model: resnet34, devices: \"" +
         std::string(second) + "\", start: 1ms, plan: {batch: 8}}\n";
}

TEST(RunJobs, JobsOnLinksOfTheirOwnDoNotNoticeEachOther) {
  const auto run = run_jobs(study(two("0-3", "4-7")));
  ASSERT_EQ(run.jobs.size(), 2u);
  for (const JobOutcome& job : run.jobs) EXPECT_EQ(job.shared, job.alone) << job.name;
  EXPECT_EQ(run.jobs[1].model, "resnet34");
  EXPECT_EQ(run.jobs[1].devices, "4-7");
  EXPECT_EQ(run.jobs[1].start, milliseconds(1));
  EXPECT_EQ(run.result.iteration, std::max(run.jobs[0].shared, run.jobs[1].shared + milliseconds(1)));
}

TEST(RunJobs, JobsThatCrossEachOtherSlowDown) {
  // Both exchange gradients at the same time.
  const auto run =
      run_jobs(study("jobs:\n"
                     "  - {name: a, model: resnet18, devices: \"0,2,4,6\", plan: {batch: 8}}\n"
                     "  - {name: b, model: resnet18, devices: \"1,3,5,7\", plan: {batch: 8}}\n"));
  for (const JobOutcome& job : run.jobs) EXPECT_GT(job.shared, job.alone) << job.name;
  EXPECT_EQ(run.jobs[0].devices, "0,2,4,6");
}

TEST(RunJobs, OneJobAloneIsTheStudy) {
  const auto jobs = run_jobs(study("jobs: [{name: a, model: resnet18, plan: {batch: 8}}]\n"));
  const auto alone = run_study(prepare_study(read_study(
      Config::parse(std::string(kRing) + "model: resnet18\nplan: {batch: 8}\n", "study.yaml", {}))));
  EXPECT_EQ(jobs.jobs[0].ranks, 8);
  EXPECT_EQ(jobs.jobs[0].shared, alone.result.iteration);
  EXPECT_EQ(jobs.jobs[0].alone, alone.result.iteration);
}

// Links carry what a collective library attains on them, for one job as for several.
TEST(RunJobs, LinksAreAsFastAsTheyWereMeasured) {
  const std::string slow =
      "machine:\n"
      "  name: ring\n"
      "  device: a100-80gb-sxm\n"
      "  dimensions: [{name: rack, kind: Ring, size: 8, bandwidth: 12.5GB/s, latency: 2us, efficiency: "
      "0.5}]\n";
  const auto jobs = run_jobs(read_jobs(
      Config::parse(slow + "jobs: [{name: a, model: resnet18, plan: {batch: 8}}]\n", "jobs.yaml", {})));
  const auto alone = run_study(
      prepare_study(read_study(Config::parse(slow + "model: resnet18\nplan: {batch: 8}\n", "s.yaml", {}))));
  EXPECT_EQ(jobs.jobs[0].shared, alone.result.iteration);
  EXPECT_EQ(jobs.study.machine.dimensions[0].bandwidth, alone.study.machine.dimensions[0].bandwidth);
}

TEST(RunJobs, DevicesThatNobodyNamesAreTakenInOrder) {
  const auto run = run_jobs(study(
      "jobs:\n"
      "  - {name: a, model: resnet18, plan: {ranks: 3, batch: 8}}\n"
      "  - {name: b, model: resnet18, devices: \"1-2\", plan: {batch: 8}}\n"
      "  - {name: c, model: gpt2-345m, plan: {ranks: 2, tensor: 2, micro_batch: 1, micro_batches: 1}}\n"));
  EXPECT_EQ(run.jobs[0].devices, "0,3-4");
  EXPECT_EQ(run.jobs[1].devices, "1-2");
  EXPECT_EQ(run.jobs[2].devices, "5-6");
}

// The last four devices are smaller; only the job that has them does not fit, whatever it calls its ranks.
TEST(RunJobs, EveryJobHasTheDevicesOfItsOwnRanks) {
  const std::string machine =
      "machine:\n  device: a100-80gb-sxm\n  devices: [{ranks: 4-7, device: a10}]\n"
      "  dimensions: [{name: rack, kind: Ring, size: 8, bandwidth: 12.5GB/s, latency: 2us}]\n";
  const auto run = run_jobs(read_jobs(
      Config::parse(machine + "jobs:\n  - {name: a, model: resnet50, devices: 0-3, plan: {batch: 512}}\n"
                              "  - {name: b, model: resnet50, devices: 4-7, plan: {batch: 512}}\n",
                    "jobs.yaml", {})));
  ASSERT_EQ(run.warnings.size(), 1U);
  EXPECT_EQ(run.warnings[0].substr(0, 24), "b: does not fit: a rank ");
  EXPECT_NE(run.warnings[0].find("device 'a10' has"), std::string::npos) << run.warnings[0];
}

// Jobs that one slice of a torus does not hold are in slices of the largest kind. The model is one whose
// gradients are exchanged at once, by hundreds of ranks message by message.
TEST(RunJobs, ASecondSliceBeginsWhereTheFirstIsFull) {
  const auto sizes = [](const std::string& ranks) {
    const auto run = run_jobs(read_jobs(Config::parse(
        "machine: tpu-v5e\njobs:\n  - {name: a, model: mobilenet_v2, plan: {ranks: 256, batch: 1}}\n"
        "  - {name: b, model: mobilenet_v2, plan: {ranks: " +
            ranks + ", batch: 1}}\n",
        "jobs.yaml", {})));
    // A job that has its slice to itself notices nothing of the other.
    EXPECT_EQ(run.jobs[0].shared, run.jobs[0].alone);
    std::vector<std::int64_t> of;
    for (const Dimension& dimension : run.study.machine.dimensions) of.push_back(dimension.size);
    return of;
  };
  EXPECT_EQ(sizes("16"), (std::vector<std::int64_t>{16, 16, 2}));
  EXPECT_EQ(sizes("272"), (std::vector<std::int64_t>{16, 16, 3}));
}

TEST(RunJobs, RefusesJobsThatDoNotFitTogether) {
  EXPECT_EQ(
      error_of([] {
        run_jobs(
            study("jobs:\n  - {name: a, model: resnet18, plan: {ranks: 6, batch: 8}}\n"
                  "  - {name: b, model: resnet18, plan: {ranks: 4, batch: 8}}\n"));
      }),
      "jobs.yaml:7:46: jobs.1.plan.ranks: the 8 devices of machine 'ring' are not enough for 'b' beside "
      "the jobs before it\n  hint: give a larger machine or the jobs fewer ranks");
  EXPECT_EQ(
      error_of([] {
        study("jobs: [{name: a, model: resnet18, devices: 0-2147483646, plan: {batch: 8}}]\n");
        run_jobs(study("jobs: [{name: a, model: resnet18, devices: 0-2147483646, plan: {batch: 8}}]\n"));
      }),
      "jobs.yaml:5:44: jobs.0.devices: 2147483647 devices\n  hint: a job can have at most 16777216");
  EXPECT_EQ(
      error_of([] { run_jobs(study(two("0-3", "3-6"))); }),
      "jobs.yaml:7:41: jobs.1.devices: device 3 already runs a rank of 'a'\n  hint: a device runs one rank");
  EXPECT_EQ(error_of([] { run_jobs(study(two("0-3", "6-9"))); }),
            "jobs.yaml:7:41: jobs.1.devices: device 9 does not exist\n"
            "  hint: devices of machine 'ring' are 0 to 7");
  EXPECT_EQ(error_of([] {
              run_jobs(study("jobs: [{name: a, model: resnet18, devices: \"0-3\", plan: {ranks: 2}}]\n"));
            }),
            "jobs.yaml:5:44: jobs.0.devices: 4 devices for the 2 ranks of 'a'\n  hint: name as many devices "
            "as the plan has ranks, or leave `devices` out");
  EXPECT_EQ(error_of([] { study("jobs: []\n"); }),
            "jobs.yaml:5:7: jobs: the list is empty\n  hint: give a model and a plan for each job");
  EXPECT_EQ(error_of([] { study("jobs: [{name: a, model: resnet18}, {name: a, model: resnet18}]\n"); }),
            "jobs.yaml:5:43: jobs.1.name: 'a' is the name of an earlier job");
}

}  // namespace
}  // namespace armilla
