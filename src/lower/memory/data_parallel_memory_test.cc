// Memory of a data-parallel rank: the hybrid lowering with degrees of 1.
#include <gtest/gtest.h>

#include "lower/memory.h"
#include "lower/shard/small_model_testing.h"

namespace armilla {
namespace {

MemoryUse use_of(Plan plan) {
  plan.batch = 4;
  plan.weight_dtype = plan.gradient_dtype = DType::fp32;
  Device device;
  device.memory = Bytes(20'000);
  return hybrid_memory(lower_hybrid(small_model(4), plan), plan, device).front().use;
}

TEST(DataParallelMemory, CategoriesFollowTheirDefinitions) {
  Plan plan;
  plan.ranks = 2;
  plan.optimizer = Optimizer::adam;
  const MemoryUse use = use_of(plan);
  EXPECT_EQ(use.weights, Bytes(872 * 4 + 32));
  EXPECT_EQ(use.gradients, Bytes(872 * 4));
  EXPECT_EQ(use.optimizer, Bytes(872 * 8));
  EXPECT_EQ(use.communication_buffers(), Bytes(872 * 4));
  // Saved: the ids (8 B each), e for linear a, r for the relu and for linear b. Not a, b or the flattened b.
  EXPECT_EQ(use.activations, Bytes(4 * 8 + 2 * 128));
  EXPECT_EQ(use.temporary, Bytes(256));
  const Bytes tensors = use.weights + use.gradients + use.optimizer + use.activations +
                        use.communication_buffers() + use.temporary;
  EXPECT_EQ(use.fragmentation, Bytes(tensors.value * 4 / 100));
  EXPECT_EQ(use.peak(), tensors + use.fragmentation);
  EXPECT_TRUE(use.fits());
}

TEST(DataParallelMemory, PrecisionHalvesActivationsButNotWeights) {
  Plan plan;
  plan.precision = DType::bf16;
  EXPECT_EQ(use_of(plan).activations, Bytes(4 * 8 + 2 * 64));
  EXPECT_EQ(use_of(plan).weights, Bytes(872 * 4 + 32));
}

TEST(DataParallelMemory, OneRankNeedsNoBuckets) {
  Plan plan;
  plan.optimizer = Optimizer::sgd;
  EXPECT_EQ(use_of(plan).communication_buffers(), Bytes(0));
  EXPECT_EQ(use_of(plan).optimizer, Bytes(0));
}

}  // namespace
}  // namespace armilla
