#include "write/report.h"

#include <gmock/gmock.h>

#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WhatIfText, EverySettingIsASentence) {
  auto run = example_run();
  EXPECT_THAT(what_if_settings(run), IsEmpty());
  WhatIf& what_if = run.study.what_if;
  what_if.ranks = {{{3, 3}, 1.2, "a"}, {{0, 1}, 2, "b"}, {{2, 2}, 2, "b"}, {{1, 1}, 1, "c"}};
  what_if.links = {{1, {0, 1}, 0.5, 1, "d"}, {1, {3, 3}, 0.5, 1, "d"}, {0, {2, 2}, 0.25, 3, "e"}};
  what_if.jitter = {0.05, 7};
  what_if.failures.mtbf_of_node = 3600 * 5000;
  what_if.failures.checkpoint = 30;
  EXPECT_THAT(
      what_if_settings(run),
      ElementsAre("rank 3 takes 1.2 times as long to compute", "ranks 0-1,2 take 2 times as long to compute",
                  "links of ranks 0-1,3 in rail have 0.5 times the bandwidth",
                  "links of rank 2 in nvlink have 0.25 times the bandwidth and 3 times the latency",
                  "the time of every computation scatters by 5 % around its mean (seed 7)",
                  "a node of 8 ranks fails every 208.3 days on average, a checkpoint takes 30 s"));
}

TEST(WhatIfText, TheEffectIsTheDifference) {
  auto run = example_run();
  EXPECT_EQ(what_if_effect(run), "");
  run.ideal = nanoseconds(10'000);
  EXPECT_EQ(what_if_effect(run),
            "the iteration takes 10.70 us, 700.0 ns (7.0 %) longer than the 10.00 us without");
  run.ideal = nanoseconds(21'400);
  EXPECT_EQ(what_if_effect(run),
            "the iteration takes 10.70 us, 10.70 us (50.0 %) shorter than the 21.40 us without");
  run.ideal = run.result.iteration;
  EXPECT_EQ(what_if_effect(run), "the iteration takes 10.70 us with and without");
}

}  // namespace
}  // namespace armilla
