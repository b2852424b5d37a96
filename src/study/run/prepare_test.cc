#include "study/run.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "read/study.h"

namespace armilla {
namespace {

Study prepared(const std::string& text, const std::vector<Override>& overrides = {}) {
  return prepare_study(read_study(Config::parse(text, "s.yaml", overrides)));
}
std::string error(const std::string& text, const std::vector<Override>& overrides = {}) {
  return error_of([&] { prepared(text, overrides); });
}

constexpr const char* kSmall = "model: resnet50\nmachine: dgx-a100\n";

TEST(Prepare, ThePlanTakesTheWholeMachineAndTheDefaultBatch) {
  const Study study = prepared(kSmall);
  EXPECT_EQ(study.plan.ranks, 64);
  EXPECT_EQ(study.plan.batch, 32);
  EXPECT_EQ(study.plan.precision, DType::fp32);
  EXPECT_TRUE(study.plan.is_plain_data_parallel());
}

TEST(Prepare, TheMachineIsCutOrGrownToTheRanks) {
  const Study grown = prepared(kSmall, {"plan.ranks=1024"});
  ASSERT_EQ(grown.machine.dimensions.size(), 2U);
  EXPECT_EQ(grown.machine.dimensions[1].size, 128);
  const Study cut = prepared(kSmall, {"plan.ranks=4"});
  ASSERT_EQ(cut.machine.dimensions.size(), 1U);
  EXPECT_EQ(cut.machine.dimensions[0].size, 4);
  EXPECT_EQ(error(kSmall, {"plan.ranks=12"}),
            "--set plan.ranks=12: 12 ranks do not fill whole groups of 8 on machine 'dgx-a100'\n"
            "  hint: the nearest counts that do are 8 and 16, or take 6 of each group: "
            "machine.dimensions.0.size=6");
}

TEST(Prepare, OtherDevicesBeyondThePlanAreOutOfTheJob) {
  const std::string text =
      "model: resnet50\nmachine:\n  device: a10\n  devices: [{ranks: '6-9', device: a40}, {ranks: 1, device: "
      "a40}]\n"
      "  dimensions: [{kind: Ring, size: 16, bandwidth: 1GB/s, latency: 1us}]\n";
  const Study whole = prepared(text);
  ASSERT_EQ(whole.machine.others.size(), 2U);
  EXPECT_EQ(whole.machine.others[0].first, 1);
  EXPECT_EQ(whole.machine.others[1].first, 6);
  EXPECT_EQ(whole.machine.others[1].last, 9);
  EXPECT_EQ(whole.machine.others[1].device.name, "a40");
  const Study cut = prepared(text, {"plan.ranks=8"});
  ASSERT_EQ(cut.machine.others.size(), 2U);
  EXPECT_EQ(cut.machine.others[1].last, 7);
  EXPECT_EQ(prepared(text, {"plan.ranks=4"}).machine.others.size(), 1U);
}

TEST(Prepare, WhereEveryRankHasAnotherDeviceThatIsTheUsualOne) {
  const std::string machine =
      "model: resnet50\nmachine:\n  device: a10\n  devices: [{ranks: '0-3', device: a40}, {ranks: '4-7', "
      "device: h100-sxm}]\n  dimensions: [{kind: Ring, size: 8, bandwidth: 1GB/s, latency: 1us}]\n";
  const Study mixed = prepared(machine);
  EXPECT_EQ(mixed.machine.device.name, "a40");
  ASSERT_EQ(mixed.machine.others.size(), 1U);
  EXPECT_EQ(mixed.machine.others[0].device.name, "h100-sxm");
  EXPECT_EQ(device_of(mixed.machine, 3).name, "a40");
  EXPECT_EQ(device_of(mixed.machine, 4).name, "h100-sxm");
  const Study same = prepared(machine, {"plan.ranks=4"});
  EXPECT_EQ(same.machine.device.name, "a40");
  EXPECT_TRUE(same.machine.others.empty());
}

TEST(Prepare, WhatIfMustSpeakOfRanksAndDimensionsThatThePlanHas) {
  const std::string slow = std::string(kSmall) + "what_if: {ranks: [{ranks: '0-8', time: 2}]}\n";
  EXPECT_EQ(prepared(slow).what_if.ranks[0].ranks.last, 8);
  EXPECT_EQ(error(slow, {"plan.ranks=8"}),
            "s.yaml:3:27: what_if.ranks.0.ranks: there is no rank 8\n  hint: ranks are 0 to 7");
  EXPECT_EQ(
      error(std::string(kSmall) + "plan: {ranks: 8}\nwhat_if: {links: [{ranks: 0, dimension: rail}]}\n"),
      "s.yaml:4:27: what_if.links.0.ranks: 8 ranks of machine 'dgx-a100' do not reach dimension 1\n"
      "  hint: the outermost they use is 'nvswitch'");
}

TEST(Prepare, TheHostIsAsTheDeviceHasItUnlessThePlanSays) {
  const auto plan = [](const std::string& machine, const std::string& keys) {
    return prepared("model: resnet50\nmachine: " + machine + "\nplan: {ranks: 8" + keys + "}\n").plan;
  };
  EXPECT_EQ(plan("dgx-a100", "").host, Host::eager);
  EXPECT_EQ(plan("dgx-a100", "").issue_time, microseconds(80));
  EXPECT_EQ(plan("tpu-v4", "").host, Host::compiled);
  EXPECT_EQ(plan("dgx-a100", ", host: compiled").host, Host::compiled);
  EXPECT_EQ(plan("tpu-v4", ", host: eager").issue_time, kEagerIssue);
  EXPECT_EQ(plan("tpu-v4", ", issue_time: 5us").host, Host::eager);
  // Fused kernels, issued one by one.
  EXPECT_EQ(issue_time_of(plan("dgx-a100", ", host: compiled")), Time(0));
  EXPECT_EQ(issue_time_of(plan("dgx-a100", ", host: compiled, issue_time: 60us")), microseconds(60));
}

}  // namespace
}  // namespace armilla
