#include "lower/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "lower/pipeline/pipeline_schedule_testing.h"

namespace armilla {
namespace {

using testing::Each;
using testing::Le;

Plan scheduled_plan(std::string_view schedule, std::int64_t p, std::int64_t m, std::int64_t v = 1) {
  Plan plan;
  plan.schedule = schedule;
  plan.ranks = plan.pipeline = p;
  plan.batch = plan.micro_batches = m;
  plan.virtual_stages = v;
  return plan;
}

PlayedSchedule played(const Plan& plan, SlotTimes times = {}, std::int64_t iterations = 1) {
  const PipelineOrder order = pipeline_order(plan, iterations, "plan");
  return SchedulePlayer(order, times).play();
}

// "F0 F1 B0": the micro-batch, after the chunk where a rank has several ("F1.0").
std::string text_of(const PipelineOrder& order, std::size_t rank) {
  std::string text;
  for (const PipelineSlot& slot : order.slots[rank]) {
    if (!text.empty()) text += slot.beside_previous ? "+" : " ";
    // "D": both gradients, "B" and "W": one each.
    text += "FDBW"[static_cast<int>(slot.action)];
    if (order.chunks[rank].size() > 1) text += std::to_string(slot.chunk) + ".";
    text += std::to_string(slot.micro_batch);
  }
  return text;
}

bool is_legal(const Plan& plan) {
  return error_of([&] { check_schedule(plan, 1, "plan"); }) == "no error";
}

TEST(PipelineSchedule, EveryLegalPlanDoesEveryPassOnceAndNeverStalls) {
  int cases = 0;
  for (const PipelineScheduleInfo& info : pipeline_schedules()) {
    const std::string_view schedule = info.name;
    for (std::int64_t p = 1; p <= 8; ++p) {
      for (std::int64_t m = 1; m <= 24; ++m) {
        for (std::int64_t v = 1; v <= 4; ++v) {
          const Plan plan = scheduled_plan(schedule, p, m, v);
          if (!is_legal(plan)) continue;
          ++cases;
          const std::int64_t iterations = 1 + m % 2;
          const PipelineOrder order = pipeline_order(plan, iterations, "plan");
          SchedulePlayer player(order, {});
          const PlayedSchedule run = player.play();
          ASSERT_EQ(run.fault, "") << schedule << " p " << p << " m " << m << " v " << v;
          // DualPipe has two chains of all stages, each with half of the micro-batches.
          const auto passes = static_cast<std::size_t>(p * v * m * iterations);
          ASSERT_EQ(player.passes(0), passes);
          ASSERT_EQ(player.passes(1), passes);
          ASSERT_EQ(player.passes(2), passes);
        }
      }
    }
  }
  // gpipe, 1f1b, zb-h1 and zb-v: 8 x 24; interleaved: 3 for every multiple of p; combined: both; 2bw: m >= p;
  // dualpipe: even m >= 2p for even p.
  EXPECT_EQ(cases, 5 * 192 + 2 * 3 * (24 + 12 + 8 + 6 + 4 + 4 + 3 + 3) + (8 * 24 - 28) + (11 + 9 + 7 + 5));
}

// A forward pass beside the backward pass of another micro-batch, one more in the warm-up (Megatron-Core).
TEST(PipelineSchedule, CombinedPassesArePairsOfTwoMicroBatches) {
  EXPECT_EQ(text_of(pipeline_order(scheduled_plan("combined-1f1b", 1, 4), 1, "plan"), 0),
            "F0 F1+D0 F2+D1 F3+D2 D3");
  EXPECT_EQ(text_of(pipeline_order(scheduled_plan("combined-1f1b", 2, 5), 1, "plan"), 0),
            "F0 F1 F2 F3+D0 F4+D1 D2 D3 D4");
  for (std::int64_t p = 1; p <= 8; ++p) {
    for (std::int64_t v = 1; v <= 3; ++v) {
      const PipelineOrder order = pipeline_order(scheduled_plan("combined-1f1b", p, 3 * p, v), 1, "plan");
      for (const std::vector<PipelineSlot>& slots : order.slots) {
        for (std::size_t i = 1; i < slots.size(); ++i) {
          if (!slots[i].beside_previous) continue;
          EXPECT_FALSE(slots[i].chunk == slots[i - 1].chunk &&
                       slots[i].micro_batch == slots[i - 1].micro_batch);
        }
      }
    }
  }
}

TEST(PipelineSchedule, PlacesAreWhereTheChunksAre) {
  for (const PipelineScheduleInfo& info : pipeline_schedules()) {
    const std::string_view schedule = info.name;
    const std::int64_t v = schedule == "interleaved" ? 3 : schedule == "zb-v" ? 2 : 1;
    const PipelineOrder order = pipeline_order(scheduled_plan(schedule, 6, 12, v), 1, "plan");
    int places = 0;
    for (std::int32_t chain = 0; chain < order.chains; ++chain) {
      for (std::int32_t stage = 0; stage < order.stages; ++stage) {
        const PipelineOrder::Place place = order.place(chain, stage);
        ASSERT_GE(place.rank, 0);
        const PipelineChunk& chunk =
            order.chunks[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.chunk)];
        EXPECT_EQ(chunk.chain, chain);
        EXPECT_EQ(chunk.stage, stage);
        ++places;
      }
    }
    std::size_t held = 0;
    for (const auto& chunks : order.chunks) held += chunks.size();
    EXPECT_EQ(static_cast<std::size_t>(places), held) << schedule;
  }
}

// Huang et al. 2019, section 2.3: bubble (K - 1) / (M + K - 1) of the time; Narayanan et al. 2021, section
// 2.2.1: (p - 1)(F + B) for GPipe and 1F1B, section 2.2.2: the same / v interleaved.
TEST(PipelineSchedule, BubblesOfFlushingSchedulesEqualTheFormulas) {
  const SlotTimes times{3, 4, 2, 9};
  for (std::int64_t p = 1; p <= 8; ++p) {
    for (std::int64_t m = 1; m <= 24; ++m) {
      const std::int64_t bubble = (p - 1) * (3 + 4 + 2);
      EXPECT_THAT(played(scheduled_plan("gpipe", p, m), times).idle, Each(bubble));
      EXPECT_THAT(played(scheduled_plan("1f1b", p, m), times).idle, Each(bubble));
      for (std::int64_t v = 2; v <= 4 && m % p == 0; ++v) {
        // A chunk is 1 / v of a stage, and takes `times`.
        EXPECT_THAT(played(scheduled_plan("interleaved", p, m, v), times).idle, Each(bubble));
      }
    }
  }
}

// Qi et al. 2023, table 2: ZB-H1 (p - 1)(F + B - W), B being the input gradient alone.
TEST(PipelineSchedule, ZeroBubbleH1IdlesAsPublished) {
  for (const SlotTimes times : {SlotTimes{1, 1, 1, 3}, SlotTimes{3, 4, 2, 9}, SlotTimes{2, 2, 2, 6}}) {
    for (std::int64_t p = 1; p <= 8; ++p) {
      for (std::int64_t m = p; m <= 24; ++m) {
        const std::int64_t bubble = (p - 1) * (times.forward + times.input_gradient - times.weight_gradient);
        EXPECT_THAT(played(scheduled_plan("zb-h1", p, m), times).idle, Each(bubble))
            << "p " << p << " m " << m;
      }
    }
  }
}

// Qi et al. 2023, section 6: no bubble where F = B = W; rank r starts when the first micro-batch arrives and
// is never idle from then on.
TEST(PipelineSchedule, ZeroBubbleVNeverWaitsOnceStarted) {
  for (std::int64_t p = 1; p <= 8; ++p) {
    for (std::int64_t m = 2 * p - 1; m <= 24; ++m) {
      const PlayedSchedule run = played(scheduled_plan("zb-v", p, m, 2));
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(p); ++rank) {
        EXPECT_EQ(run.start[rank], static_cast<std::int64_t>(rank));
        EXPECT_EQ(run.end[rank] - run.start[rank], 6 * m) << "p " << p << " m " << m << " rank " << rank;
      }
    }
  }
}

// DeepSeek-AI 2024, table 2: (PP/2 - 1)(F&B + B - 3W), B being the whole backward pass: exact where F, input
// and weight gradient take equally long, for the middle ranks, which have the most overlapped pairs. With
// other times ranks wait for each other elsewhere, and less.
TEST(PipelineSchedule, DualPipeIdlesAsPublished) {
  const auto idle = [](std::int64_t p, std::int64_t m, SlotTimes times) {
    return played(scheduled_plan("dualpipe", p, m), times).idle;
  };
  for (std::int64_t p = 2; p <= 8; p += 2) {
    for (std::int64_t m = 2 * p; m <= 24; m += 2) {
      EXPECT_THAT(idle(p, m, {1, 1, 1, 3}), Each((p / 2 - 1) * (3 + 2 - 3))) << "p " << p << " m " << m;
      const std::vector<std::int64_t> overlapped = idle(p, m, {2, 2, 2, 5});
      EXPECT_EQ(overlapped[static_cast<std::size_t>(p / 2)], (p / 2 - 1) * (5 + 4 - 6));
      EXPECT_THAT(overlapped, Each(Le((p / 2 - 1) * (5 + 4 - 6))));
      EXPECT_THAT(idle(p, m, {2, 3, 1, 6}), Each(Le((p / 2 - 1) * (6 + 4 - 3))));
    }
  }
}

TEST(PipelineSchedule, TwoBufferedWeightsLeaveNoBubbleBetweenIterations) {
  for (std::int64_t p = 1; p <= 8; ++p) {
    const Plan plan = scheduled_plan("pipedream-2bw", p, 2 * p);
    const std::int64_t one = played(plan, {}, 1).makespan, four = played(plan, {}, 4).makespan;
    EXPECT_EQ(four - one, 3 * (2 * p) * 3);
    // With a flush every iteration has its bubble.
    const Plan flushed = scheduled_plan("1f1b", p, 2 * p);
    EXPECT_GE(played(flushed, {}, 4).makespan - played(flushed, {}, 1).makespan, 3 * (2 * p) * 3);
  }
}

// 1F1B: min(p - rank, m) (Narayanan et al. 2021, section 2.2.1); ZB-H1 as 1F1B (Qi et al. 2023); V-ZB p whole
// stages, that is 2p chunks (Qi et al. 2024, table 1); DualPipe at most PP + 1 (DeepSeek-AI 2024, table 2).
TEST(PipelineSchedule, PassesInFlightEqualThePapers) {
  for (std::int64_t p = 1; p <= 8; ++p) {
    for (std::int64_t m = 1; m <= 24; ++m) {
      std::vector<std::int64_t> expected;
      for (std::int64_t rank = 0; rank < p; ++rank) expected.push_back(std::min(p - rank, m));
      for (const auto schedule : {"1f1b", "zb-h1"})
        EXPECT_EQ(most_in_flight(pipeline_order(scheduled_plan(schedule, p, m), 1, "plan")), expected);
      EXPECT_THAT(most_in_flight(pipeline_order(scheduled_plan("gpipe", p, m), 1, "plan")), Each(m));
      if (m >= 2 * p - 1) {
        EXPECT_THAT(most_in_flight(pipeline_order(scheduled_plan("zb-v", p, m, 2), 1, "plan")), Each(2 * p));
      }
      for (std::int64_t v = 2; v <= 4 && m % p == 0; ++v) {
        std::vector<std::int64_t> passes;
        for (std::int64_t rank = 0; rank < p; ++rank)
          passes.push_back(std::min(2 * (p - rank - 1) + (v - 1) * p + 1, m * v));
        EXPECT_EQ(most_in_flight(pipeline_order(scheduled_plan("interleaved", p, m, v), 1, "plan")), passes);
      }
      if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p) {
        EXPECT_THAT(most_in_flight(pipeline_order(scheduled_plan("dualpipe", p, m), 1, "plan")), Each(p + 1));
      }
    }
  }
}

TEST(PipelineSchedule, OrdersAreThoseOfTheFigures) {
  const auto order = [](std::string_view schedule, std::int64_t p, std::int64_t m, std::int64_t v = 1) {
    return pipeline_order(scheduled_plan(schedule, p, m, v), 1, "plan");
  };
  // Huang et al. 2019, figure 2c.
  EXPECT_EQ(text_of(order("gpipe", 4, 4), 2), "F0 F1 F2 F3 D3 D2 D1 D0");
  // Narayanan et al. 2021, figure 4, top and bottom (device 1).
  EXPECT_EQ(text_of(order("1f1b", 4, 8), 0), "F0 F1 F2 F3 D0 F4 D1 F5 D2 F6 D3 F7 D4 D5 D6 D7");
  EXPECT_EQ(text_of(order("interleaved", 4, 4, 2), 0),
            "F0.0 F0.1 F0.2 F0.3 F1.0 F1.1 F1.2 F1.3 D1.0 D1.1 D1.2 D1.3 D0.0 D0.1 D0.2 D0.3");
  // The last device begins its backward passes after p (v - 1) + 1 forward ones.
  EXPECT_EQ(text_of(order("interleaved", 2, 4, 2), 1),
            "F0.0 F0.1 F1.0 D1.0 F1.1 D1.1 F0.2 D0.0 F0.3 D0.1 F1.2 D1.2 F1.3 D1.3 D0.2 D0.3");
  // Qi et al. 2023, figure 3: the first and the last device.
  EXPECT_EQ(text_of(order("zb-h1", 3, 4), 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(text_of(order("zb-h1", 3, 4), 2), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  EXPECT_EQ(text_of(order("dualpipe", 2, 4), 0), "F0.0 F1.2 F0.1 D1.2 F1.3+D0.0 D1.3 B0.1 W0.1");
}

TEST(PipelineSchedule, IterationsGoOnCounting) {
  const PipelineOrder order = pipeline_order(scheduled_plan("1f1b", 2, 2), 2, "plan");
  EXPECT_EQ(text_of(order, 0), "F0 F1 D0 D1 F2 F3 D2 D3");
  const PipelineOrder stream = pipeline_order(scheduled_plan("pipedream-2bw", 2, 2), 2, "plan");
  EXPECT_EQ(text_of(stream, 0), "F0 F1 D0 F2 D1 F3 D2 D3");
}

TEST(PipelineSchedule, RefusesWhatCannotBeScheduled) {
  const auto refusal = [](std::string_view schedule, std::int64_t p, std::int64_t m, std::int64_t v) {
    return error_of([&] { pipeline_order(scheduled_plan(schedule, p, m, v), 1, "plan"); });
  };
  EXPECT_EQ(refusal("interleaved", 4, 8, 1),
            "plan: plan.schedule interleaved with plan.virtual_stages 1\n"
            "  hint: it needs several model chunks per rank: plan.virtual_stages 2, or plan.schedule 1f1b");
  EXPECT_EQ(
      refusal("interleaved", 8, 20, 2),
      "plan: plan.schedule interleaved takes micro-batches in groups of plan.pipeline 8, and 20 is not a "
      "multiple of it\n"
      "  hint: plan.micro_batches could be 16 or 24");
  EXPECT_EQ(refusal("gpipe", 4, 8, 2),
            "plan: plan.schedule gpipe with plan.virtual_stages 2\n"
            "  hint: it has one model chunk per rank: plan.virtual_stages 1, or plan.schedule interleaved");
  EXPECT_EQ(refusal("zb-v", 4, 8, 3),
            "plan: plan.schedule zb-v with plan.virtual_stages 3\n"
            "  hint: it has two model chunks per rank: plan.virtual_stages 2");
  EXPECT_EQ(refusal("dualpipe", 3, 8, 1),
            "plan: plan.schedule dualpipe with plan.pipeline 3\n"
            "  hint: it runs from both ends: plan.pipeline could be 2 or 4");
  EXPECT_EQ(refusal("dualpipe", 1, 8, 1),
            "plan: plan.schedule dualpipe with plan.pipeline 1\n"
            "  hint: it runs from both ends: plan.pipeline could be 2");
  EXPECT_EQ(refusal("dualpipe", 4, 6, 1),
            "plan: plan.schedule dualpipe with plan.micro_batches 6 and plan.pipeline 4\n"
            "  hint: it needs an even number, at least 8: plan.micro_batches could be 8");
  EXPECT_EQ(refusal("dualpipe", 4, 9, 1),
            "plan: plan.schedule dualpipe with plan.micro_batches 9 and plan.pipeline 4\n"
            "  hint: it needs an even number, at least 8: plan.micro_batches could be 8 or 10");
  EXPECT_EQ(
      refusal("pipedream-2bw", 4, 2, 1),
      "plan: plan.schedule pipedream-2bw with plan.micro_batches 2 and plan.pipeline 4\n"
      "  hint: two versions of the weights need at least as many micro-batches as stages: plan.micro_batches "
      "could be 4");
  EXPECT_EQ(refusal("1f1b", 4, 1'000'000'000'000, 1),
            "plan: plan.micro_batches 1000000000000 x plan.pipeline 4 x plan.virtual_stages 1 x 1 iteration "
            "are too "
            "many to schedule\n"
            "  hint: a schedule is limited to 16777216 passes, 2097152 micro-batches here");
  EXPECT_EQ(
      refusal("zb-v", 8192, 1, 2),
      "plan: plan.micro_batches 1 x plan.pipeline 8192 x plan.virtual_stages 2 x 1 iteration are too many to "
      "schedule\n"
      "  hint: a schedule is limited to 16777216 passes");
  EXPECT_EQ(error_of([] { check_schedule(Plan(), 0, "plan"); }),
            "plan: 0 iterations\n  hint: there must be at least 1");
}

}  // namespace
}  // namespace armilla
