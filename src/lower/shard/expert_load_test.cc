#include "lower/shard/expert_load.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lower/expert_exchange.h"

namespace armilla {
namespace {

Plan plan_with(ExpertLoad load, double skew, std::int64_t positions) {
  Plan plan;
  plan.expert = positions;
  plan.expert_load = load;
  plan.expert_skew = skew;
  return plan;
}

double value(Share share) {
  return static_cast<double>(share.part) / static_cast<double>(share.of);
}

TEST(ExpertLoad, EvenLoadsAreOne) {
  EXPECT_EQ(expert_loads(plan_with(ExpertLoad::uniform, 1, 8), {}).size(), 1U);
  EXPECT_FALSE(is_uneven(plan_with(ExpertLoad::zipf, 1, 1)));
}

TEST(ExpertLoad, ASkewOfNoneMakesAllAlike) {
  EXPECT_FALSE(is_uneven(plan_with(ExpertLoad::zipf, 0, 8)));
  EXPECT_EQ(expert_loads(plan_with(ExpertLoad::random, 0, 8), {}).size(), 1U);
}

TEST(ExpertLoad, ZipfFallsWithThePosition) {
  const auto loads = expert_loads(plan_with(ExpertLoad::zipf, 1, 2), {});
  EXPECT_NEAR(value(loads[0]), 4.0 / 3, 1e-4);
  EXPECT_NEAR(value(loads[1]), 2.0 / 3, 1e-4);
}

TEST(ExpertLoad, RandomLoadsHaveTheDeviationAndTheSeedsOwnValues) {
  Plan plan = plan_with(ExpertLoad::random, 0.2, 512);
  const auto loads = expert_loads(plan, {});
  double sum = 0, squares = 0;
  for (const Share load : loads) {
    sum += value(load);
    squares += (value(load) - 1) * (value(load) - 1);
  }
  EXPECT_NEAR(sum / 512, 1, 1e-4);
  EXPECT_NEAR(std::sqrt(squares / 512), 0.2, 0.02);
  plan.seed = 2;
  const auto others = expert_loads(plan, {});
  EXPECT_NE(loads[0].part, others[0].part);
  EXPECT_EQ(others[0].part, expert_loads(plan, {})[0].part);
}

TEST(ExpertLoad, NoPositionIsLeftWithoutTokens) {
  for (const Share load : expert_loads(plan_with(ExpertLoad::random, 5, 64), {}))
    EXPECT_GE(value(load), 0.009);
}

// 128 experts, 8 of them for a token: one expert gets at most an eighth of all copies, 16 times the mean.
TEST(ExpertLoad, ATokenGoesToDifferentExperts) {
  ModelFacts facts;
  facts.experts = 128;
  facts.active_experts = 8;
  const auto sum = [](const std::vector<Share>& loads) {
    double all = 0;
    for (const Share load : loads) all += value(load);
    return all;
  };
  auto loads = expert_loads(plan_with(ExpertLoad::zipf, 1, 128), facts);
  EXPECT_NEAR(value(loads[0]), 16, 1e-4);
  EXPECT_NEAR(value(loads[1]) / value(loads[3]), 2, 1e-3);  // the others keep their proportion
  EXPECT_NEAR(sum(loads), 128, 0.01);
  loads =
      expert_loads(plan_with(ExpertLoad::zipf, 100, 8), facts);  // 16 experts each are enough for all copies
  EXPECT_NEAR(value(loads[0]), 8 / 1.07, 1e-3);  // the others keep the least weight, a hundredth
  facts.experts = 8;
  facts.active_experts = 2;
  for (const ExpertLoad load : {ExpertLoad::zipf, ExpertLoad::random}) {
    loads = expert_loads(plan_with(load, 100, 8), facts);
    for (const Share each : loads) EXPECT_LE(value(each), 4 + 1e-4);
    EXPECT_NEAR(sum(loads), 8, 0.1);
  }
  facts.active_experts = 8;  // every token goes everywhere
  for (const Share each : expert_loads(plan_with(ExpertLoad::zipf, 1, 8), facts))
    EXPECT_NEAR(value(each), 1, 1e-4);
}

TEST(ExpertLoad, WhatOneSendsTheOtherReceives) {
  const std::vector<Share> loads = {{3, 2}, {1, 1}, {1, 2}};
  for (const bool to_experts : {true, false}) {
    const CustomCollective exchange = uneven_all_to_all(loads, Bytes(300), to_experts);
    ASSERT_EQ(exchange.members.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(exchange.members[i].nodes.size(), 4U);
      for (const CustomNode& node : exchange.members[i].nodes) {
        const std::size_t receiver =
            node.kind == CustomNode::Kind::send ? static_cast<std::size_t>(node.peer) : i;
        const std::size_t sender =
            node.kind == CustomNode::Kind::send ? i : static_cast<std::size_t>(node.peer);
        const Share load = loads[to_experts ? receiver : sender];
        EXPECT_EQ(node.bytes, Bytes(100 * load.part / load.of));
      }
    }
  }
}

}  // namespace
}  // namespace armilla
