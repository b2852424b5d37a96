#include "lower/rank_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace armilla {
namespace {

using testing::ElementsAre;

Plan plan_of_degrees(std::int64_t tensor, std::int64_t context, std::int64_t data, std::int64_t pipeline) {
  Plan plan;
  plan.tensor = tensor;
  plan.context = context;
  plan.pipeline = pipeline;
  plan.ranks = tensor * context * data * pipeline;
  return plan;
}

// Megatron-Core, parallel_state.py, the example of initialize_model_parallel: 16 GPUs, tensor 2, pipeline 4.
TEST(RankGrid, GroupsEqualMegatronsExample) {
  const Plan plan = plan_of_degrees(2, 1, 2, 4);
  const GroupFamily tensor = axis_family(plan, GroupAxis::tensor);
  EXPECT_EQ(tensor.name, "tensor");
  EXPECT_THAT(tensor.groups,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7),
                          ElementsAre(8, 9), ElementsAre(10, 11), ElementsAre(12, 13), ElementsAre(14, 15)));
  EXPECT_THAT(axis_family(plan, GroupAxis::data).groups,
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7),
                          ElementsAre(8, 10), ElementsAre(9, 11), ElementsAre(12, 14), ElementsAre(13, 15)));
  EXPECT_THAT(axis_family(plan, GroupAxis::pipeline).groups,
              ElementsAre(ElementsAre(0, 4, 8, 12), ElementsAre(1, 5, 9, 13), ElementsAre(2, 6, 10, 14),
                          ElementsAre(3, 7, 11, 15)));
  EXPECT_THAT(axis_family(plan, GroupAxis::embedding, {0, 3}).groups,
              ElementsAre(ElementsAre(0, 12), ElementsAre(1, 13), ElementsAre(2, 14), ElementsAre(3, 15)));
  EXPECT_EQ(axis_family(plan, GroupAxis::embedding, {0, 3}).group_of[5], -1);
  EXPECT_THAT(axis_family(plan, GroupAxis::mirror).groups,
              ElementsAre(ElementsAre(0, 12), ElementsAre(1, 13), ElementsAre(2, 14), ElementsAre(3, 15),
                          ElementsAre(4, 8), ElementsAre(5, 9), ElementsAre(6, 10), ElementsAre(7, 11)));
}

// Expert parallelism divides the same ranks of a stage another way.
TEST(RankGrid, ExpertsFillTheRanksOfAStage) {
  Plan plan = plan_of_degrees(2, 1, 4, 2);
  plan.expert = 4;
  plan.expert_tensor = 1;
  EXPECT_THAT(axis_family(plan, GroupAxis::expert).groups,
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9, 10, 11),
                          ElementsAre(12, 13, 14, 15)));
  EXPECT_THAT(axis_family(plan, GroupAxis::expert_data).groups,
              ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7),
                          ElementsAre(8, 12), ElementsAre(9, 13), ElementsAre(10, 14), ElementsAre(11, 15)));
  EXPECT_EQ(axis_family(plan, GroupAxis::expert_tensor).groups.size(), 16U);
  plan.expert_tensor = 0;
  plan.expert = 2;
  EXPECT_THAT(axis_family(plan, GroupAxis::expert).groups[0], ElementsAre(0, 2));
  EXPECT_THAT(axis_family(plan, GroupAxis::expert_tensor).groups[0], ElementsAre(0, 1));
  // With the pipeline inside, a stage's ranks are not neighbours.
  plan.order = {Axis::pipeline, Axis::tensor, Axis::context, Axis::data};
  EXPECT_THAT(axis_family(plan, GroupAxis::expert).groups[1], ElementsAre(1, 5));
}

TEST(RankGrid, ReplicasAreContextAndDataTogether) {
  Plan plan = plan_of_degrees(1, 2, 4, 1);
  EXPECT_THAT(axis_family(plan, GroupAxis::context).groups[1], ElementsAre(2, 3));
  EXPECT_THAT(axis_family(plan, GroupAxis::data).groups, ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  plan.zero_stage = 3;
  EXPECT_EQ(axis_family(plan, GroupAxis::shard).groups, axis_family(plan, GroupAxis::data).groups);
  EXPECT_EQ(axis_family(plan, GroupAxis::replicate).groups.size(), 8U);
  plan.hybrid_shard = 4;
  for (const auto& order : {std::vector{Axis::tensor, Axis::context, Axis::data, Axis::pipeline},
                            std::vector{Axis::data, Axis::tensor, Axis::context, Axis::pipeline}}) {
    plan.order = order;
    EXPECT_THAT(axis_family(plan, GroupAxis::shard).groups,
                ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
    EXPECT_THAT(axis_family(plan, GroupAxis::replicate).groups,
                ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7)));
  }
}

// For every order of the axes: coordinates are a bijection, and every family cuts the ranks into groups of
// the size of its degree, in order of position.
TEST(RankGrid, EveryOrderIsABijection) {
  Plan plan = plan_of_degrees(2, 3, 4, 5);
  plan.expert = 6;
  plan.expert_tensor = 2;
  std::vector<Axis> order = plan.order;
  int orders = 0;
  do {
    plan.order = order;
    ++orders;
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> dense, experts;
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
      const RankCoordinates at = coordinates_of(plan, rank);
      dense.emplace(at.tensor, at.context, at.data, at.pipeline);
      experts.emplace(at.expert_tensor, at.expert, at.expert_data, at.pipeline);
    }
    ASSERT_EQ(dense.size(), 120U);
    ASSERT_EQ(experts.size(), 120U);
    const std::pair<GroupAxis, std::size_t> sizes[] = {
        {GroupAxis::tensor, 2},      {GroupAxis::context, 3}, {GroupAxis::data, 12},
        {GroupAxis::pipeline, 5},    {GroupAxis::expert, 6},  {GroupAxis::expert_tensor, 2},
        {GroupAxis::expert_data, 2},
    };
    for (const auto& [axis, size] : sizes) {
      const GroupFamily family = axis_family(plan, axis);
      ASSERT_EQ(family.groups.size(), 120U / size) << name_of(axis);
      for (std::size_t g = 0; g < family.groups.size(); ++g) {
        ASSERT_EQ(family.groups[g].size(), size);
        std::int64_t position = 0;
        for (const std::int32_t rank : family.groups[g]) {
          ASSERT_EQ(family.group_of[static_cast<std::size_t>(rank)], static_cast<std::int32_t>(g));
          const RankCoordinates at = coordinates_of(plan, rank);
          if (axis == GroupAxis::tensor) {
            ASSERT_EQ(at.tensor, position);
          }
          if (axis == GroupAxis::pipeline) {
            ASSERT_EQ(at.pipeline, position);
          }
          if (axis == GroupAxis::expert) {
            ASSERT_EQ(at.expert, position);
          }
          ++position;
        }
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 24);
}

}  // namespace
}  // namespace armilla
