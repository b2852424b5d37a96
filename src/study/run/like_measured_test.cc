#include "study/run/like_measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace armilla {
namespace {

Device device_called(const std::string& name) {
  Device device;
  device.name = name;
  return device;
}

Plan plan_of(std::int64_t ranks, DType precision) {
  Plan plan;
  plan.ranks = ranks;
  plan.precision = precision;
  return plan;
}

TEST(LikeMeasured, TheDeviceMustBeTheSame) {
  EXPECT_FALSE(like_measured(plan_of(8, DType::bf16), {}, device_called("abacus")));
  const auto like = like_measured(plan_of(64, DType::fp16), {}, device_called("h100-sxm"));
  ASSERT_TRUE(like);
  EXPECT_EQ(like->set, "dense models on h100-sxm in 16 bits");
  EXPECT_GT(like->rows, 1);
  EXPECT_GT(like->mape, 0);
  EXPECT_GE(like->p90, like->mape);
  EXPECT_TRUE(like->differences.empty());
}

TEST(LikeMeasured, WhatDiffersIsSaid) {
  ModelFacts experts;
  experts.experts = 8;
  EXPECT_EQ(like_measured(plan_of(64, DType::bf16), experts, device_called("h100-sxm"))->set,
            "mixtures of experts on h100-sxm in 16 bits");
  // Dense models only, and few devices.
  const auto like = like_measured(plan_of(1 << 20, DType::fp8), experts, device_called("v100-32gb-sxm2"));
  ASSERT_TRUE(like);
  EXPECT_EQ(like->differences, (std::vector<std::string>{"a mixture of experts", "in fp8",
                                                         "on 1,048,576 devices instead of 8"}));
}

// Steps of one device say nothing of those that communicate, and are told apart.
TEST(LikeMeasured, OneDeviceIsNotSeveral) {
  const Device h100 = device_called("h100-sxm");
  const auto one = like_measured(plan_of(1, DType::bf16), {}, h100);
  const auto several = like_measured(plan_of(64, DType::bf16), {}, h100);
  ASSERT_TRUE(one && several);
  EXPECT_NE(one->rows, several->rows);
  EXPECT_TRUE(one->differences.empty());
  EXPECT_TRUE(several->differences.empty());
  // None of one device was measured in fp8.
  EXPECT_THAT(like_measured(plan_of(1, DType::fp8), {}, h100)->differences,
              testing::ElementsAre(testing::StartsWith("on 1 device instead of ")));
}

}  // namespace
}  // namespace armilla
