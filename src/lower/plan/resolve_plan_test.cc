#include "lower/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "base/error.h"
#include "base/error_testing.h"
#include "lower/pipeline_schedule.h"

namespace armilla {
namespace {

using Change = std::function<void(PlanRequest&)>;

// On a machine of 64 devices that can grow, for a model by description.
Plan resolved(const Change& change, bool described = true, bool elastic = true) {
  PlanRequest request;
  request.where = "plan";
  change(request);
  return resolve_plan(request, 64, elastic, described);
}

std::string refusal(const Change& change, bool described = true, bool elastic = true) {
  return error_of([&] { resolved(change, described, elastic); });
}

TEST(ResolvePlan, ChunksTakeTurnsOnSeveralRanks) {
  const auto chunks = [](std::int64_t pipeline, std::int64_t of_rank, const std::string& schedule) {
    return refusal([&](PlanRequest& request) {
      request.pipeline = pipeline;
      request.batch = 8;
      request.plan.virtual_stages = of_rank;
      request.plan.schedule = schedule;
    });
  };
  EXPECT_EQ(
      chunks(1, 4, "1f1b"),
      "plan: plan.virtual_stages 4 with plan.pipeline 1\n  hint: chunks of the model take turns on the ranks "
      "of a pipeline: plan.virtual_stages 1 and plan.schedule 1f1b, or plan.pipeline 2 or more");
  EXPECT_TRUE(
      chunks(1, 1, "interleaved").starts_with("plan: plan.schedule interleaved with plan.pipeline 1\n"));
  EXPECT_EQ(chunks(1, 1, "combined-1f1b"), "no error");
  EXPECT_EQ(chunks(1, 1, "1f1b"), "no error");
  EXPECT_EQ(chunks(2, 4, "1f1b"), "no error");
}

// A search tells by the keys what stands in the way, and does not look into messages.
TEST(ResolvePlan, ErrorsCarryTheKeysThatTheirMessagesName) {
  const Change changes[] = {
      [](PlanRequest& r) { r.tensor = 3, r.pipeline = 4; },
      [](PlanRequest& r) { r.ranks = 64, r.tensor = 2, r.context = 2, r.pipeline = 2, r.data = 2; },
      [](PlanRequest& r) { r.ranks = 64, r.context = 2, r.data = 2; },
      [](PlanRequest& r) { r.pipeline = 1, r.plan.schedule = "interleaved"; },
      [](PlanRequest& r) { r.pipeline = 1, r.plan.virtual_stages = 4; },
      [](PlanRequest& r) { r.data = 3, r.ranks = 3, r.global_batch = 4; },
      [](PlanRequest& r) { r.batch = 4, r.micro_batch = 3; },
      [](PlanRequest& r) { r.batch = 4, r.micro_batches = 3; },
      [](PlanRequest& r) { r.batch = 4, r.micro_batch = 2, r.micro_batches = 4; },
      [](PlanRequest& r) { r.plan.zero_stage = 3, r.plan.reduce_scatter = false; },
      [](PlanRequest& r) { r.plan.zero_stage = 1, r.plan.hybrid_shard = 3; },
      [](PlanRequest& r) { r.plan.expert = 3; },
      [](PlanRequest& r) { r.plan.expert_dispatch = ExpertDispatch::one_hot; },
      [](PlanRequest& r) {
        r.pipeline = 2, r.plan.stage_blocks = {1, 2, 3};
      },
      [](PlanRequest& r) { r.pipeline = 4, r.batch = 4, r.micro_batches = 2, r.plan.schedule = "dualpipe"; },
  };
  const std::regex key("plan\\.[a-z_]+");
  for (const Change& change : changes) {
    try {
      resolved(change);
      ADD_FAILURE() << "change " << &change - changes << " was not refused";
    } catch (const Error& error) {
      for (std::sregex_iterator named(error.message.begin(), error.message.end(), key), end; named != end;
           ++named) {
        // Nothing chooses the ranks by itself.
        if (named->str() == "plan.ranks") continue;
        EXPECT_THAT(error.keys, testing::Contains(named->str())) << error.message;
      }
    }
  }
}

std::vector<std::int64_t> degrees(const Change& change) {
  const Plan plan = resolved(change);
  return {plan.ranks, plan.tensor, plan.context, plan.data(), plan.pipeline};
}

using FiveDegrees = std::vector<std::int64_t>;

TEST(ResolvePlan, ADegreeLeftOutIsWhatTheOthersLeave) {
  EXPECT_EQ(degrees([](PlanRequest&) {}), (FiveDegrees{64, 1, 1, 64, 1}));
  EXPECT_EQ(degrees([](PlanRequest& r) { r.tensor = 8, r.pipeline = 4; }), (FiveDegrees{64, 8, 1, 2, 4}));
  EXPECT_EQ(degrees([](PlanRequest& r) { r.ranks = 16384, r.tensor = 8, r.pipeline = 16; }),
            (FiveDegrees{16384, 8, 1, 128, 16}));
  EXPECT_EQ(degrees([](PlanRequest& r) { r.ranks = 16384, r.tensor = 8, r.data = 128; }),
            (FiveDegrees{16384, 8, 1, 128, 16}));
  EXPECT_EQ(degrees([](PlanRequest& r) { r.ranks = 16384, r.pipeline = 16, r.data = 128; }),
            (FiveDegrees{16384, 8, 1, 128, 16}));
  EXPECT_EQ(degrees([](PlanRequest& r) { r.ranks = 1024, r.pipeline = 16, r.data = 2, r.tensor = 8; }),
            (FiveDegrees{1024, 8, 4, 2, 16}));
  EXPECT_EQ(degrees([](PlanRequest& r) { r.tensor = 8, r.pipeline = 16, r.data = 2; }),
            (FiveDegrees{256, 8, 1, 2, 16}));
  // One replica needs more than the machine as given.
  EXPECT_EQ(degrees([](PlanRequest& r) { r.tensor = 8, r.pipeline = 16; }), (FiveDegrees{128, 8, 1, 1, 16}));
}

TEST(ResolvePlan, DegreesThatClashAreNamed) {
  EXPECT_EQ(refusal([](PlanRequest& r) { r.tensor = 3, r.pipeline = 4; }),
            "plan: plan.tensor 3 x plan.pipeline 4 = 12 does not divide 64, the machine's devices\n"
            "  hint: plan.ranks could be 60 or 72, or plan.tensor 2 or 4");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.ranks = 100, r.tensor = 8, r.ranks_where = "--ranks"; }),
            "--ranks: plan.tensor 8 does not divide 100 ranks\n  hint: plan.ranks could be 96 or 104, or "
            "plan.tensor 5 or 10");
  EXPECT_EQ(refusal([](PlanRequest& r) {
              r.ranks = 8192, r.tensor = 8, r.pipeline = 16, r.data = 128, r.context = 1;
            }),
            "plan: plan.tensor 8 x plan.context 1 x plan.data 128 x plan.pipeline 16 = 16384 does "
            "not divide 8192 ranks\n  hint: plan.ranks could be 16384, or plan.tensor 4");
  EXPECT_EQ(refusal([](PlanRequest& r) {
              r.ranks = 8192, r.tensor = 8, r.pipeline = 16, r.data = 32, r.context = 1;
            }),
            "plan: plan.tensor 8 x plan.context 1 x plan.data 32 x plan.pipeline 16 = 4096 "
            "ranks, but plan.ranks is 8192\n  hint: plan.ranks could be 4096, or plan.data 64");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.ranks = 64, r.data = 8; }),
            "plan: plan.data 8 of 64 ranks leaves 8 for plan.tensor and plan.pipeline together\n"
            "  hint: give one of the two");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.data = 128; }, true, false),
            "plan: the plan has 128 ranks, the machine 64 devices\n"
            "  hint: give smaller degrees or a larger machine");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.tensor = 0; }),
            "plan: plan.tensor 0\n  hint: it must be at least 1");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.ranks = -4; }),
            "plan: plan.ranks -4\n  hint: it must be at least 1");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.tensor = r.pipeline = r.context = r.data = 1'000'000'000; }),
            "plan: plan.tensor 1000000000 x plan.context 1000000000 x plan.data 1000000000 x "
            "plan.pipeline 1000000000 is more than 16777216 ranks\n  hint: give smaller degrees");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.plan.expert = 5; }),
            "plan: plan.expert 5 x plan.expert_tensor 1 does not divide the 64 ranks of a pipeline "
            "stage (tensor 1 x context 1 x data 64)\n"
            "  hint: plan.expert could be 4 or 8, or tensor x context x data could be 60 or 65");
}

// Hints are for plans that pass.
TEST(ResolvePlan, ProposedRanksFillTheMachinesGroups) {
  PlanRequest request;
  request.where = request.ranks_where = "plan";
  request.tensor = 4, request.pipeline = 3, request.ranks = 64;
  EXPECT_EQ(error_of([&] { resolve_plan(request, 64, true, true, 8); }),
            "plan: plan.tensor 4 x plan.pipeline 3 = 12 does not divide 64 ranks\n"
            "  hint: plan.ranks could be 48 or 72, or plan.pipeline 2 or 4");
  request.ranks = 1'000'000'000;
  EXPECT_EQ(error_of([&] { resolve_plan(request, 64, true, true, 8); }),
            "plan: plan.ranks 1000000000\n  hint: a job can have at most 16777216");
}

TEST(ResolvePlan, ProposedMicroBatchesDivideTheBatch) {
  const auto interleaved = [](PlanRequest& r) {
    r.pipeline = 4;
    r.plan.virtual_stages = 2;
  };
  EXPECT_EQ(
      refusal([&](PlanRequest& r) { interleaved(r), r.batch = 10; }),
      "plan: plan.schedule interleaved takes micro-batches in groups of plan.pipeline 4, and 10 is not a "
      "multiple of it\n  hint: plan.batch could be 12");
  EXPECT_EQ(
      refusal([&](PlanRequest& r) { interleaved(r), r.global_batch = 160; }),
      "plan: plan.schedule interleaved takes micro-batches in groups of plan.pipeline 4, and 10 is not a "
      "multiple of it\n  hint: plan.global_batch could be 192");
  EXPECT_EQ(
      refusal([&](PlanRequest& r) { interleaved(r), r.batch = 24, r.micro_batches = 6; }),
      "plan: plan.schedule interleaved takes micro-batches in groups of plan.pipeline 4, and 6 is not a "
      "multiple of it\n  hint: plan.micro_batches could be 4 or 8");
  EXPECT_EQ(
      refusal([&](PlanRequest& r) { interleaved(r), r.batch = 20, r.micro_batches = 10; }),
      "plan: plan.schedule interleaved takes micro-batches in groups of plan.pipeline 4, and 10 is not a "
      "multiple of it\n  hint: plan.micro_batches could be 4 or 20");
  EXPECT_EQ(refusal([](PlanRequest& r) {
              r.pipeline = 2, r.batch = 2;
              r.plan.schedule = "dualpipe";
            }),
            "plan: plan.schedule dualpipe with plan.micro_batches 2 and plan.pipeline 2\n"
            "  hint: it needs an even number, at least 4: plan.batch could be 4");
}

// With nobody to share states with; replicas of experts alone are somebody.
TEST(ResolvePlan, ShardingAloneIsNone) {
  const auto zero = [](const Change& change) { return resolved(change).zero_stage; };
  EXPECT_EQ(zero([](PlanRequest& r) { r.ranks = r.tensor = 4, r.plan.zero_stage = 3; }), 0);
  EXPECT_EQ(zero([](PlanRequest& r) { r.ranks = 4, r.tensor = 2, r.plan.zero_stage = 3; }), 3);
  // FSDP does more than share out.
  const auto of_pytorch = [&](int stage) {
    return zero([&](PlanRequest& r) {
      r.ranks = r.tensor = 4, r.plan.zero_stage = stage, r.plan.framework = Framework::pytorch;
    });
  };
  EXPECT_EQ(of_pytorch(1), 0);
  EXPECT_EQ(of_pytorch(3), 3);
  EXPECT_EQ(zero([](PlanRequest& r) { r.ranks = 4, r.tensor = r.context = 2, r.plan.zero_stage = 3; }), 3);
  EXPECT_EQ(zero([](PlanRequest& r) {
              r.ranks = r.tensor = 4, r.plan.zero_stage = 3, r.plan.expert = 2, r.plan.expert_tensor = 1;
            }),
            3);
}

std::vector<std::int64_t> batches(const Change& change, bool described = true) {
  const Plan plan = resolved(change, described);
  return {plan.global_batch(), plan.batch, plan.micro_batch(), plan.micro_batches};
}

// By trying every number.
std::int64_t tried_micro_batches(Plan plan) {
  std::int64_t largest = 1, suiting = 0;
  for (std::int64_t count = 1; count <= std::min(plan.batch, 4 * plan.pipeline); ++count) {
    if (plan.batch % count != 0) continue;
    plan.micro_batches = largest = count;
    if (error_of([&] { check_schedule(plan, 1, "plan"); }) == "no error") suiting = count;
  }
  return suiting > 0 ? suiting : largest;
}

TEST(ResolvePlan, MicroBatchesAreTheMostThatSuitBatchAndSchedule) {
  std::int64_t legal = 0, refused = 0;
  for (const PipelineScheduleInfo& schedule : pipeline_schedules()) {
    for (const std::int64_t pipeline : {2, 3, 4, 6}) {
      for (std::int64_t batch = 1; batch <= 40; ++batch) {
        for (const std::int64_t chunks : {1, 2, 3}) {
          const auto change = [&](PlanRequest& r) {
            r.ranks = r.pipeline = pipeline;
            r.batch = batch;
            r.plan.schedule = schedule.name;
            r.plan.virtual_stages = chunks;
          };
          try {
            const Plan plan = resolved(change);
            ++legal;
            ASSERT_EQ(plan.micro_batches, tried_micro_batches(plan))
                << schedule.name << " " << pipeline << " " << chunks << " " << batch;
          } catch (const Error&) {
            // Then no number is legal.
            ++refused;
            for (std::int64_t count = 1; count <= std::min(batch, 4 * pipeline); ++count) {
              if (batch % count != 0) continue;
              ASSERT_NE(refusal([&](PlanRequest& r) { change(r), r.micro_batches = count; }), "no error")
                  << schedule.name << " " << pipeline << " " << chunks << " " << batch << " " << count;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(legal, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(ResolvePlan, AnyTwoOfTheBatchesGiveTheThird) {
  const auto with = [](const Change& change) {
    return batches([&](PlanRequest& r) {
      r.tensor = 8, r.pipeline = 4;  // two replicas
      change(r);
    });
  };
  using Batches = std::vector<std::int64_t>;
  EXPECT_EQ(with([](PlanRequest&) {}), (Batches{32, 16, 1, 16}));
  EXPECT_EQ(with([](PlanRequest& r) { r.global_batch = 48; }), (Batches{48, 24, 2, 12}));
  EXPECT_EQ(with([](PlanRequest& r) { r.global_batch = 48, r.micro_batch = 2; }), (Batches{48, 24, 2, 12}));
  EXPECT_EQ(with([](PlanRequest& r) { r.global_batch = 48, r.micro_batches = 8; }), (Batches{48, 24, 3, 8}));
  EXPECT_EQ(with([](PlanRequest& r) { r.batch = 24, r.micro_batches = 8; }), (Batches{48, 24, 3, 8}));
  EXPECT_EQ(with([](PlanRequest& r) { r.micro_batch = 2, r.micro_batches = 6; }), (Batches{24, 12, 2, 6}));
  EXPECT_EQ(with([](PlanRequest& r) { r.micro_batch = 2; }), (Batches{64, 32, 2, 16}));
  EXPECT_EQ(with([](PlanRequest& r) { r.micro_batches = 6; }), (Batches{12, 6, 1, 6}));
  // Models read from graphs: 32 per replica unless something else is said.
  EXPECT_EQ(batches([](PlanRequest&) {}, false), (Batches{2048, 32, 32, 1}));
  EXPECT_EQ(batches([](PlanRequest& r) { r.micro_batches = 4; }, false), (Batches{2048, 32, 8, 4}));
  EXPECT_EQ(batches([](PlanRequest& r) { r.micro_batches = 5; }, false), (Batches{2240, 35, 7, 5}));
  EXPECT_EQ(batches([](PlanRequest& r) { r.micro_batch = 8; }, false), (Batches{512, 8, 8, 1}));
  EXPECT_EQ(batches([](PlanRequest& r) { r.micro_batch = 5; }, false), (Batches{320, 5, 5, 1}));
  EXPECT_EQ(batches([](PlanRequest& r) { r.pipeline = 4; }, false), (Batches{512, 32, 2, 16}));
  EXPECT_EQ(batches([](PlanRequest& r) { r.pipeline = 4, r.batch = 9; }, false), (Batches{144, 9, 1, 9}));
}

// A batch means the same, whatever the model was read from.
TEST(ResolvePlan, ABatchIsCutAlikeForEveryModel) {
  using Batches = std::vector<std::int64_t>;
  for (const bool described : {true, false}) {
    EXPECT_EQ(batches([](PlanRequest& r) { r.batch = 8; }, described), (Batches{512, 8, 8, 1}));
    EXPECT_EQ(batches([](PlanRequest& r) { r.global_batch = 512; }, described), (Batches{512, 8, 8, 1}));
    EXPECT_EQ(batches([](PlanRequest& r) { r.micro_batch = 8; }, described), (Batches{512, 8, 8, 1}));
    EXPECT_EQ(batches([](PlanRequest& r) { r.pipeline = 4, r.batch = 64; }, described),
              (Batches{1024, 64, 4, 16}));
    EXPECT_EQ(batches([](PlanRequest& r) { r.pipeline = 4, r.batch = 7; }, described),
              (Batches{112, 7, 1, 7}));
    EXPECT_EQ(batches([](PlanRequest& r) { r.pipeline = 4, r.micro_batch = 2; }, described),
              (Batches{512, 32, 2, 16}));
    // Interleaving takes micro-batches in groups of 4: of 20, not 10 but 4.
    EXPECT_EQ(
        batches([](PlanRequest& r) { r.pipeline = 4, r.plan.virtual_stages = 2, r.batch = 20; }, described),
        (Batches{320, 20, 5, 4}));
  }
}

TEST(ResolvePlan, BatchesThatClashAreNamed) {
  const auto with = [](const Change& change) {
    return refusal([&](PlanRequest& r) {
      r.tensor = 8, r.pipeline = 2;  // four replicas
      change(r);
    });
  };
  EXPECT_EQ(with([](PlanRequest& r) { r.global_batch = 30; }),
            "plan: plan.global_batch 30 cannot be shared equally by plan.data 4\n"
            "  hint: plan.global_batch could be 28 or 32");
  EXPECT_EQ(refusal([](PlanRequest& r) { r.global_batch = 100; }),
            "plan: plan.global_batch 100 cannot be shared equally by 64 ranks\n"
            "  hint: plan.global_batch could be 64 or 128");
  EXPECT_EQ(with([](PlanRequest& r) { r.global_batch = 32, r.batch = 4; }),
            "plan: plan.global_batch 32 is 8 for each of 4 replicas, but plan.batch is 4\n"
            "  hint: give one: of all ranks, or of one");
  EXPECT_EQ(with([](PlanRequest& r) { r.batch = 32, r.micro_batch = 5; }),
            "plan: plan.micro_batch 5 does not divide the batch of 32 per replica\n"
            "  hint: plan.micro_batch could be 4 or 8");
  EXPECT_EQ(with([](PlanRequest& r) { r.batch = 32, r.micro_batches = 64; }),
            "plan: plan.micro_batches 64 does not divide the batch of 32 per replica\n"
            "  hint: plan.micro_batches could be 32");
  EXPECT_EQ(with([](PlanRequest& r) { r.batch = 32, r.micro_batch = 4, r.micro_batches = 4; }),
            "plan: plan.micro_batch 4 x plan.micro_batches 4 is not the batch of 32 per replica\n"
            "  hint: leave one out: plan.micro_batches 8 or plan.micro_batch 8");
  EXPECT_EQ(with([](PlanRequest& r) { r.micro_batch = 0; }),
            "plan: plan.micro_batch 0\n  hint: it must be at least 1");
  EXPECT_EQ(with([](PlanRequest& r) { r.global_batch = INT64_MAX; }),
            "plan: plan.global_batch 9223372036854775807\n  hint: it can be at most 1099511627776");
  EXPECT_EQ(with([](PlanRequest& r) { r.micro_batch = r.micro_batches = std::int64_t{1} << 39; }),
            "plan: sizes overflow 64 bits\n  hint: check the dimensions");
  EXPECT_EQ(
      with([](PlanRequest& r) { r.plan.virtual_stages = 2, r.batch = 7; }),
      "plan: plan.schedule interleaved takes micro-batches in groups of plan.pipeline 2, and 7 is not a "
      "multiple of it\n  hint: plan.batch could be 8");
}

TEST(ResolvePlan, SchedulesAndTypesFollow) {
  const Plan interleaved = resolved([](PlanRequest& r) { r.pipeline = 4, r.plan.virtual_stages = 2; });
  EXPECT_EQ(interleaved.schedule, "interleaved");
  const Plan v = resolved([](PlanRequest& r) { r.pipeline = 4, r.plan.schedule = "zb-v"; });
  EXPECT_EQ(v.virtual_stages, 2);
  const auto types = [](DType precision, bool described) {
    const Plan plan = resolved([&](PlanRequest& r) { r.precision = precision; }, described);
    return std::vector{plan.precision, plan.weight_dtype, plan.gradient_dtype, plan.parameter_dtype};
  };
  EXPECT_EQ(types(DType::unknown, true), (std::vector{DType::bf16, DType::bf16, DType::fp32, DType::bf16}));
  EXPECT_EQ(types(DType::unknown, false), std::vector(4, DType::fp32));
  EXPECT_EQ(types(DType::fp8, true), (std::vector{DType::fp8, DType::bf16, DType::fp32, DType::bf16}));
  EXPECT_EQ(types(DType::fp16, true), std::vector(4, DType::fp16));
  // Autocast, and a graph in several parts.
  EXPECT_EQ(types(DType::bf16, false), (std::vector{DType::bf16, DType::fp32, DType::fp32, DType::fp32}));
  EXPECT_EQ(types(DType::fp64, false), std::vector(4, DType::fp64));
  EXPECT_EQ(resolved([](PlanRequest& r) { r.precision = DType::bf16, r.tensor = 2; }, false).weight_dtype,
            DType::bf16);
  EXPECT_EQ(
      resolved([](PlanRequest& r) { r.precision = r.plan.weight_dtype = DType::bf16; }, false).gradient_dtype,
      DType::bf16);
  EXPECT_EQ(types(DType::tf32, false), (std::vector{DType::tf32, DType::fp32, DType::fp32, DType::fp32}));
  EXPECT_EQ(resolved([](PlanRequest&) {}).optimizer, Optimizer::adam);
  EXPECT_EQ(resolved([](PlanRequest&) {}, false).optimizer, Optimizer::momentum);
  EXPECT_EQ(resolved([](PlanRequest& r) { r.optimizer = Optimizer::sgd; }).optimizer, Optimizer::sgd);
}

TEST(ResolvePlan, UnevenLoadsHaveASkewUnlessItIsGiven) {
  const auto skew = [](ExpertLoad load, bool given) {
    return resolved([&](PlanRequest& r) {
             r.plan.expert_load = load;
             if (given) r.places = {{"expert_skew", "--expert-skew 0"}};
           })
        .expert_skew;
  };
  EXPECT_EQ(skew(ExpertLoad::uniform, false), 0);
  EXPECT_EQ(skew(ExpertLoad::zipf, false), 1);
  EXPECT_EQ(skew(ExpertLoad::random, false), 0.2);
  EXPECT_EQ(skew(ExpertLoad::zipf, true), 0);
}

// Llama-3-8B with 16 experts of which the model has none unless said.
Model llama() {
  Model model;
  model.facts = {"llama", 32, 4096, 32, 8, 14336, 128256, 8192, 0, 0};
  return model;
}

std::string model_refusal(const std::function<void(Plan&, Model&)>& change) {
  Plan plan;
  plan.ranks = 3840;
  Model model = llama();
  change(plan, model);
  return error_of([&] { check_plan_for_model(plan, model, "plan"); });
}

TEST(CheckPlanForModel, LegalPlansPass) {
  EXPECT_EQ(model_refusal([](Plan& p, Model&) {
              p.tensor = 16, p.context = 2, p.pipeline = 4, p.virtual_stages = 8, p.sequence_parallel = true;
            }),
            "no error");
  // A model without facts, read from a graph.
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) { m.facts = {}, p.tensor = 3, p.context = 5; }), "no error");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) { m.facts.experts = 16, p.expert = 8; }), "no error");
}

TEST(CheckPlanForModel, WhatTheModelForbidsIsNamed) {
  EXPECT_EQ(model_refusal([](Plan& p, Model&) { p.tensor = 3; }),
            "plan: plan.tensor 3 does not divide attention heads 32\n"
            "  hint: plan.tensor could be 2 or 4");
  EXPECT_EQ(model_refusal([](Plan& p, Model&) { p.tensor = 64; }),
            "plan: plan.tensor 64 does not divide attention heads 32\n"
            "  hint: plan.tensor could be 32");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) { m.facts.heads = 96, m.facts.kv_heads = 8, p.tensor = 12; }),
            "plan: plan.tensor 12 neither divides key-value heads 8 nor is a multiple of them\n"
            "  hint: plan.tensor could be 8 or 16");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) { m.facts.feed_forward = 1001, p.tensor = 2; }),
            "plan: plan.tensor 2 does not divide feed-forward size 1001\n"
            "  hint: plan.tensor could be 1, or on other numbers of ranks 7");
  // Models with experts have up to three widths, each divided by its own degree.
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) {
              m.facts.experts = 8, m.facts.feed_forward = 0, m.facts.expert_feed_forward = 1001, p.tensor = 2;
            }),
            "plan: plan.tensor 2 does not divide the experts' feed-forward size 1001\n"
            "  hint: plan.tensor could be 1, or on other numbers of ranks 7");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) {
              m.facts.experts = 8, m.facts.expert_feed_forward = 1001, p.tensor = 4, p.expert_tensor = 2;
            }),
            "plan: plan.expert_tensor 2 does not divide the experts' feed-forward size 1001\n"
            "  hint: plan.expert_tensor could be 1, or on other numbers of ranks 7");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) {
              m.facts.experts = 8, m.facts.shared_feed_forward = 1001, p.tensor = 2, p.expert_tensor = 1;
            }),
            "plan: plan.tensor 2 does not divide the shared experts' feed-forward size 1001\n"
            "  hint: plan.tensor could be 1, or on other numbers of ranks 7");
  EXPECT_EQ(
      model_refusal([](Plan& p, Model&) { p.context = 3; }),
      "plan: ring attention cuts a sequence into 2 x plan.context 3 = 6 pieces, and 8192 tokens are not a "
      "multiple of 6\n"
      "  hint: model.sequence could be 8190 or 8196");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) {
              m.facts.sequence = 8100, p.context = 3, p.context_method = ContextMethod::all_to_all;
            }),
            "plan: plan.tensor 1 x plan.context 3 (all-to-all) does not divide attention heads 32\n"
            "  hint: plan.context could be 2 or 4, or plan.context_method ring");
  EXPECT_EQ(model_refusal(
                [](Plan& p, Model& m) { m.facts.sequence = 8190, p.tensor = 4, p.sequence_parallel = true; }),
            "plan: plan.tensor 4 x plan.context 1 does not divide the sequence of 8190 tokens, as "
            "sequence parallelism needs\n  hint: model.sequence could be 8188 or 8192");
  EXPECT_EQ(model_refusal([](Plan& p, Model&) { p.expert = 8; }),
            "plan: plan.expert 8 for a model without experts\n  hint: leave it out");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) { m.facts.experts = 8, p.expert = 16; }),
            "plan: plan.expert 16 does not divide experts 8\n  hint: plan.expert could be 8");
  EXPECT_EQ(model_refusal([](Plan& p, Model&) { p.pipeline = 48; }),
            "plan: plan.pipeline 48 for a model of 32 blocks\n"
            "  hint: plan.pipeline can be at most 32");
  EXPECT_EQ(model_refusal([](Plan& p, Model&) { p.pipeline = 16, p.virtual_stages = 3; }),
            "plan: plan.pipeline 16 x plan.virtual_stages 3 = 48 stages for a model of 32 blocks\n"
            "  hint: plan.virtual_stages can be at most 2");
  EXPECT_EQ(model_refusal([](Plan& p, Model& m) { m.facts.layers = 1, p.pipeline = 2; }),
            "plan: plan.pipeline 2 for a model of 1 block\n  hint: plan.pipeline can be at most 1");
}

TEST(CheckPlanForModel, LayersThatStayWideAreThere) {
  const auto of_layers = [](std::int64_t first, std::int64_t last) {
    return model_refusal([&](Plan& p, Model& m) {
      m.blocks = {{"embedding", BlockKind::embedding},
                  {"layers.0", BlockKind::decoder},
                  {"layers.1", BlockKind::decoder},
                  {"head", BlockKind::head}};
      p.wide_first_layers = first;
      p.wide_last_layers = last;
    });
  };
  EXPECT_EQ(of_layers(2, 2), "no error");
  EXPECT_EQ(of_layers(3, 0),
            "plan: plan.wide_first_layers 3 for a model of 2 layers\n"
            "  hint: plan.wide_first_layers can be at most 2");
  EXPECT_EQ(of_layers(0, 3),
            "plan: plan.wide_last_layers 3 for a model of 2 layers\n"
            "  hint: plan.wide_last_layers can be at most 2");
}

// Nobody can wait within a graph.
TEST(CheckPlanForModel, ExpertsAreInAGraphWhereTheirRowsAreKnown) {
  const auto with_capacity = [](double capacity) {
    return model_refusal([&](Plan& p, Model& m) {
      m.facts.experts = 8;
      p.cuda_graph_scope = {Part::moe_layer};
      p.expert_capacity = capacity;
    });
  };
  EXPECT_EQ(with_capacity(1), "no error");
  EXPECT_EQ(with_capacity(0),
            "plan: plan.cuda_graph_scope moe, where the host waits for the number of every expert's rows\n"
            "  hint: plan.expert_capacity gives all the same, or plan.cuda_graph_scope could have moe_router "
            "and moe_preprocess instead");
}

TEST(ResolvePlan, SchedulesAreKnownByName) {
  EXPECT_EQ(refusal([](PlanRequest& r) {
              r.plan.schedule = "1f2b";
              r.places = {{"schedule", "--schedule 1f2b"}};
            }),
            "--schedule 1f2b: unknown schedule '1f2b'\n  hint: did you mean '1f1b'?");
  EXPECT_EQ(resolved([](PlanRequest& r) { r.pipeline = 4, r.plan.virtual_stages = 2; }).schedule,
            "interleaved");
  EXPECT_EQ(resolved([](PlanRequest& r) { r.pipeline = 4, r.plan.schedule = "zb-v"; }).virtual_stages, 2);
}

// An error about the whole plan is put to the key it is about, if the user gave that.
TEST(ResolvePlan, ErrorsNameThePlaceOfTheKeyToChange) {
  const auto place = [](const Change& change) {
    const std::string text = refusal([&](PlanRequest& request) {
      request.where = request.ranks_where = "--ranks 64";
      request.ranks = 64;
      request.places = {{"ranks", "--ranks 64"},
                        {"tensor", "--tp 8"},
                        {"context", "--cp 3"},
                        {"micro_batch", "--micro-batch 3"},
                        {"micro_batches", "--micro-batches 3"},
                        {"schedule", "--schedule zb-v"}};
      change(request);
    });
    return text.substr(0, text.find(':'));
  };
  // That of the hint ...
  EXPECT_EQ(place([](PlanRequest& r) { r.tensor = 8, r.context = 3; }), "--cp 3");
  // ... or the first of the message.
  EXPECT_EQ(place([](PlanRequest& r) {
              r.places.erase("context");
              r.tensor = 8, r.context = 3;
            }),
            "--tp 8");
  EXPECT_EQ(place([](PlanRequest& r) { r.tensor = 8, r.micro_batch = 3, r.global_batch = 64; }),
            "--micro-batch 3");
  EXPECT_EQ(place([](PlanRequest& r) { r.micro_batches = 3, r.batch = 8; }), "--micro-batches 3");
  EXPECT_EQ(place([](PlanRequest& r) {
              r.plan.schedule = "zb-v";
              r.plan.virtual_stages = 3;
              r.pipeline = 2;
            }),
            "--schedule zb-v");
  // Micro-batches that were not given come from the batch.
  EXPECT_EQ(place([](PlanRequest& r) {
              r.places = {{"batch", "--batch 6"}, {"pipeline", "--pp 4"}};
              r.plan.schedule = "dualpipe";
              r.batch = 6, r.pipeline = 4;
            }),
            "--batch 6");
  // The keys of an error stand beside its words: an expert's degree comes from --tp where it is not given.
  const PlanRequest words = [] {
    PlanRequest request;
    request.where = "study.yaml:3:1: plan";
    request.places = {{"tensor", "--tp 8"}};
    return request;
  }();
  EXPECT_EQ(place_of(words, {"plan.expert_tensor", "plan.tensor"}), "--tp 8");
  EXPECT_EQ(place_of(words, {"model.sequence"}), "study.yaml:3:1: plan");
  EXPECT_EQ(error_of([&] {
              with_places(words, [&] { throw Error(words.where, "too much", "less", {"plan.tensor"}); });
            }),
            "--tp 8: too much\n  hint: less");
  // Of what the error is about, nothing was given.
  EXPECT_EQ(place([](PlanRequest& r) { r.places = {}, r.tensor = 8, r.context = 3; }), "plan");
}

}  // namespace
}  // namespace armilla
