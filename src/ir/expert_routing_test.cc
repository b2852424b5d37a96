#include "ir/expert_routing.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace armilla {
namespace {

// Every choice of groups and of experts, counted.
double counted(const ExpertRouting& routing, std::int64_t blocks) {
  const auto bits = [](std::uint32_t mask) { return static_cast<std::int64_t>(std::popcount(mask)); };
  // Of every choice of experts, whatever their groups: where they are.
  struct Choice {
    std::uint32_t groups = 0;
    std::int64_t blocks = 0;
  };
  std::vector<Choice> of_experts;
  for (std::uint32_t experts = 0; experts < 1U << routing.experts; ++experts) {
    if (bits(experts) != routing.active) continue;
    std::uint32_t groups = 0, hit = 0;
    for (std::int64_t e = 0; e < routing.experts; ++e) {
      if ((experts >> e & 1) == 0) continue;
      groups |= 1U << (e * routing.groups / routing.experts);
      hit |= 1U << (e * blocks / routing.experts);
    }
    of_experts.push_back({groups, bits(hit)});
  }
  double sum = 0, choices = 0;
  for (std::uint32_t groups = 0; groups < 1U << routing.groups; ++groups) {
    if (bits(groups) != routing.active_groups) continue;
    double in_groups = 0, hits = 0;
    for (const Choice& choice : of_experts) {
      if ((choice.groups & ~groups) != 0) continue;
      ++in_groups;
      hits += static_cast<double>(choice.blocks);
    }
    sum += hits / in_groups;
    ++choices;
  }
  return sum / choices;
}

TEST(ExpertRouting, AgreesWithCounting) {
  for (const std::int64_t groups : {1, 2, 3, 4, 6, 12}) {
    for (std::int64_t chosen = 1; chosen <= groups; ++chosen) {
      for (const std::int64_t active : {1, 2, 4}) {
        if (active > chosen * 12 / groups) continue;
        const ExpertRouting routing{12, active, groups, chosen, true};
        for (const std::int64_t blocks : {1, 2, 3, 4, 6, 12})
          EXPECT_NEAR(expected_blocks(routing, blocks), counted(routing, blocks), 1e-12)
              << active << " of 12 in " << chosen << " of " << groups << " groups on " << blocks;
      }
    }
  }
}

// 8 of 256 experts on 8 nodes of 8 ranks: 8 (1 - C(224, 8) / C(256, 8)) nodes, with at most 4 of them
// 4 (1 - C(96, 8) / C(128, 8)).
TEST(ExpertRouting, DeepSeekV3) {
  const ExpertRouting free{256, 8, 1, 1, true}, limited{256, 8, 8, 4, true};
  EXPECT_NEAR(expected_blocks(free, 8), 5.29, 0.01);
  EXPECT_NEAR(expected_blocks(limited, 8), 3.63, 0.01);
  EXPECT_NEAR(expected_blocks(free, 64), 7.68, 0.01);
  EXPECT_NEAR(expected_blocks(limited, 64), 7.36, 0.01);
  EXPECT_DOUBLE_EQ(expected_blocks(free, 256), 8);
  EXPECT_NEAR(expected_blocks(limited, 256), 8, 1e-12);
}

}  // namespace
}  // namespace armilla
