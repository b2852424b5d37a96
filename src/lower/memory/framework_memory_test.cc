#include "lower/memory.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

Plan plan_on_ranks(std::int64_t ranks, std::int64_t tensor, std::int64_t pipeline) {
  Plan plan;
  plan.ranks = ranks;
  plan.tensor = tensor;
  plan.pipeline = pipeline;
  return plan;
}

TEST(FrameworkMemory, CountsTheGroupsThatARankIsIn) {
  EXPECT_EQ(communicators(plan_on_ranks(1, 1, 1)), 0);
  EXPECT_EQ(communicators(plan_on_ranks(8, 1, 1)), 1);
  EXPECT_EQ(communicators(plan_on_ranks(8, 8, 1)), 1);
  EXPECT_EQ(communicators(plan_on_ranks(8, 2, 2)), 3);
  Plan plan = plan_on_ranks(16, 1, 1);
  plan.expert = 8;
  EXPECT_EQ(communicators(plan), 3);  // data, experts, copies of the experts
  plan.expert = 16;
  EXPECT_EQ(communicators(plan), 2);
  plan.expert = 1;
  plan.zero_stage = 3;
  plan.hybrid_shard = 8;
  EXPECT_EQ(communicators(plan), 2);
  plan.hybrid_shard = 16;  // all replicas
  EXPECT_EQ(communicators(plan), 1);
}

TEST(FrameworkMemory, IsTheContextAndTheBuffersOfEveryGroup) {
  Device device;
  device.reserved = Bytes(1000);
  device.communicator_buffers = Bytes(10);
  EXPECT_EQ(framework_memory(plan_on_ranks(8, 2, 2), device), Bytes(1030));
  EXPECT_EQ(framework_memory(plan_on_ranks(1, 1, 1), device), Bytes(1000));
  EXPECT_EQ(framework_memory(plan_on_ranks(8, 2, 2), {}), Bytes(0));
}

}  // namespace
}  // namespace armilla
