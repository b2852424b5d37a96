// Rows that say the same in other words are predicted alike.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/config.h"
#include "base/error_testing.h"
#include "lower/pipeline_schedule.h"
#include "read/measurements.h"
#include "read/study.h"
#include "study/run.h"
#include "study/validate.h"
#include "study/validate/row_model.h"
#include "study/validate/row_plan.h"
#include "study/validate/validate_testing.h"
#include "write/study.h"
#include "write/validation.h"

namespace armilla {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RowWords, PrecisionsAreKnownByWhateverStandsBeside) {
  for (const char* text : {"fp16", "FP16 ", "float16", "half", "mixed fp16", "fp16 (amp)", "amp_fp16",
                           "torch.float16", "16-mixed", "f16", "16"})
    EXPECT_EQ(precision_named(text), DType::fp16) << text;
  for (const char* text : {"bf16", "BF16", "amp_bf16", "bfloat16", "bf16 mixed", "bf16-mixed", "mixed bf16"})
    EXPECT_EQ(precision_named(text), DType::bf16) << text;
  EXPECT_EQ(precision_named("MXFP8"), DType::fp8);
  EXPECT_EQ(precision_named("amp_fp8"), DType::fp8);
  EXPECT_EQ(precision_named("NVFP4"), DType::fp4);
  EXPECT_EQ(precision_named("32-true"), DType::fp32);
  EXPECT_FALSE(precision_named("quick"));
  EXPECT_FALSE(precision_named("160"));
}

// Steps in fp16 are those of early Megatron, however it is spelled.
TEST(RowWords, EarlyMegatronIsToldByThePrecisionItself) {
  MeasuredPlan row = small_row();
  row.precision = "fp16";
  const Study usual = study_of(row, "x.csv:2");
  EXPECT_FALSE(usual.plan.overlap);
  for (const char* text : {"fp16 ", "mixed fp16", "fp16 (amp)", "amp_fp16", "Half", "16-mixed"}) {
    row.precision = text;
    const Study study = study_of(row, "x.csv:2");
    EXPECT_EQ(study.plan, usual.plan) << text;
    EXPECT_EQ(study.model.text, usual.model.text) << text;
  }
}

TEST(RowWords, PapersAreKnownByTheirAuthorsToo) {
  MeasuredPlan row = small_row();
  for (const char* source : {"arXiv 2205.05198, table 5", "Korthikanti et al. 2022, table 5",
                             "V. Korthikanti, J. Casper and others, MLSys 2023"}) {
    row.source = source;
    EXPECT_TRUE(study_of(row, "x").plan.overlap_tensor_gradients) << source;
  }
  // Others may have what they describe.
  row.source = "my own cluster";
  row.notes = "selective recomputation as of Korthikanti et al.";
  EXPECT_FALSE(study_of(row, "x").plan.overlap_tensor_gradients);
}

TEST(RowWords, NamesOfSeveralWordsHaveAnythingBetweenThem) {
  MeasuredPlan row = small_row();
  for (const char* source : {"mosaicml/llm-foundry", "LLM Foundry", "llm_foundry benchmarks"}) {
    row.source = source;
    EXPECT_TRUE(is_plain_pytorch(row)) << source;
  }
  row.source = "";
  row.notes = "with DeepEP; no a2a-overlap";
  EXPECT_EQ(says(row, "a2a overlap"), false);
  row.notes = "num-experts=8;expert-tensor-parallel-size=2; --swiglu=True";
  EXPECT_EQ(argument(row, "num-experts"), "8");
  EXPECT_EQ(argument(row, "expert-tensor-parallel-size"), "2");
  EXPECT_EQ(argument(row, "swiglu"), "True");
  EXPECT_EQ(argument(row, "experts"), "");
}

TEST(RowWords, ShardingAndSchedulesAreSpelledInSeveralWays) {
  MeasuredPlan row = small_row();
  row.tensor = row.pipeline = 1;
  row.data = 16;
  for (const char* text : {"3", "ZeRO-3", "zero3", "ZeRO stage 3", "stage 3", "fsdp"}) {
    row.zero = text;
    EXPECT_EQ(study_of(row, "x").plan.zero_stage, 3) << text;
  }
  for (const char* text : {"FSDP2", "FSDP 2", "fsdp_v2", "fsdp-2"}) {
    row.zero = text;
    EXPECT_TRUE(study_of(row, "x").plan.no_sync) << text;
  }
  row = small_row();
  for (const char* text : {"1F1B-interleaved", "1f1b interleave", "interleaving"}) {
    row.schedule = text;
    EXPECT_EQ(study_of(row, "x").plan.virtual_stages, 2) << text;
  }
}

TEST(RowWords, SchedulesHaveTheirNamesAndOthers) {
  MeasuredPlan row = small_row();
  const auto schedule = [&](const std::string& text) {
    row.schedule = text;
    return request_of(row, row.layers, "x").plan.schedule;
  };
  for (const PipelineScheduleInfo& info : pipeline_schedules()) {
    const bool is_told_by_chunks = info.name == "1f1b" || info.name == "interleaved";
    EXPECT_EQ(schedule(fmt::format("{} (ours)", info.name)), is_told_by_chunks ? "1f1b" : info.name);
  }
  EXPECT_EQ(schedule("AFAB"), "gpipe");
  EXPECT_EQ(schedule("ZBH1"), "zb-h1");
  EXPECT_EQ(schedule("ZBV"), "zb-v");
  EXPECT_EQ(schedule("fsdp+tp"), "1f1b");
}

TEST(RowWords, CellsThatAreMissingAreNamed) {
  MeasuredPlan row = small_row();
  row.sequence = 0;
  EXPECT_EQ(error_of([&] { study_of(row, "x.csv:2"); }),
            "x.csv:2: the sequence length is not known\n  hint: give seq_len");
  row.heads = 0;
  EXPECT_EQ(
      error_of([&] { study_of(row, "x.csv:2"); }),
      "x.csv:2: the number of heads and the sequence length are not known\n  hint: give heads and seq_len");
}

TEST(RowWords, MoreDevicesThanNodesCanHaveAreRefused) {
  MeasuredCollective row{"A100-SXM NVLink 1 node", "all_reduce", 16, 1, 1 << 20};
  EXPECT_EQ(error_of([&] { study_of(row, "x.csv:2"); }),
            "x.csv:2: 16 GPUs are more than 1 node of dgx-a100 can have\n"
            "  hint: a node of dgx-a100 has 8 GPUs: correct gpus or nodes");
  row.nodes = 2;
  EXPECT_EQ(study_of(row, "x.csv:2").request.ranks, 16);
  row = {"V100-SXM2 (DGX-2)", "all_reduce", 16, 1, 1 << 20};
  EXPECT_EQ(study_of(row, "x.csv:2").request.ranks, 16);
  row = {"GB200 NVL72", "all_reduce", 72, 1, 1 << 20};
  EXPECT_EQ(study_of(row, "x.csv:2").request.ranks, 72);
  row.devices = 144;
  EXPECT_THAT(error_of([&] { study_of(row, "x.csv:2"); }), HasSubstr("are more than 1 node of"));
  row.devices = 1;
  EXPECT_THAT(error_of([&] { study_of(row, "x.csv:2"); }), HasSubstr("one GPU alone exchanges nothing"));
}

constexpr const char* kBothColumns =
    "id,model,layers,hidden,heads,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,peak_GiB,"
    "step_time_s\n";

TEST(RowWords, WhatTheTableDoesNotHaveIsNotExplained) {
  const std::string row = "a-1,m,2,512,8,A100,2,2,1,1,8,128,bf16,2,";
  TextStyle style;
  const std::string both =
      write_validation_text(validate({parse_measurements(kBothColumns + row + "0.1\n", "t.csv")}), 0, style);
  EXPECT_THAT(both, HasSubstr("const.: MAPE"));
  EXPECT_THAT(both, HasSubstr("memory"));
  EXPECT_THAT(both, Not(HasSubstr("Spearman")));
  const std::string peaks =
      write_validation_text(validate({parse_measurements(kBothColumns + row + "\n", "t.csv")}), 0, style);
  EXPECT_THAT(peaks, Not(HasSubstr("const.")));
}

TEST(RowWords, ALineThatWasCutOffIsCountedByItsReason) {
  const Validation validation = validate({parse_measurements(
      std::string(kBothColumns) + "a-1,m,2,512,8,A100,2,2,1,1,8,128,bf16,,0.1\na-2,m,2\n", "t.csv")});
  EXPECT_TRUE(validation.rows[0].predicted);
  ASSERT_EQ(validation.unpredicted.size(), 1u);
  EXPECT_EQ(validation.unpredicted.begin()->first, "3 fields, the header has 15");
}

// `armilla run` plays the written study as validation does.
TEST(RowWords, AWrittenStudyIsTheRows) {
  MeasuredPlan fp16 = small_row(), moe = small_row(), slow = small_row(), torch = small_row();
  fp16.precision = "fp16";
  fp16.source = "Megatron-LM";
  fp16.device = "V100-32GB(DGX-2)";
  fp16.recompute = "";
  moe.model = "Qwen3_30B_a3B";
  moe.hidden = moe.heads = moe.layers = 0;
  moe.expert = 4;
  moe.sequence_parallel = "1";
  moe.device = "H100";
  slow.source = "bigscience";
  slow.devices_per_node = 4;
  slow.inter_bandwidth = 12.3e9;
  torch.source = "pytorch fsdp2";
  torch.device = "TPU-v5e";
  torch.tensor = torch.pipeline = 1;
  torch.data = 16;
  torch.zero = "3";
  for (const MeasuredPlan& plan : {fp16, moe, slow, torch}) {
    Measurement row;
    row.where = "x.csv:2";
    row.what = MeasuredStep{plan};
    row.value = 1;
    const std::optional<Study> study = study_of_row(row);
    ASSERT_TRUE(study);
    const std::string text = write_study_yaml(*study, "a row");
    const Study read = prepare_study(read_study(Config::parse(text, "row.yaml", {})));
    EXPECT_EQ(read.plan, study->plan) << text;
    EXPECT_EQ(dump_machine(read.machine), dump_machine(study->machine)) << text;
    EXPECT_EQ(run_study(read).result.iteration, run_study(*study).result.iteration) << text;
  }
  Measurement kernel;
  kernel.what = MeasuredKernel{};
  EXPECT_FALSE(study_of_row(kernel));
}

// What the known issues of its releases say of Megatron-Bridge's tables; degrees are the row's.
TEST(RowStudy, KnownIssuesOfReleasesCount) {
  MeasuredPlan row = small_row();
  row.layers = row.hidden = row.heads = 0;
  row.devices = 64;
  row.global_batch = 512;
  row.tensor = 1;
  row.micro_batch = 2;
  row.recompute = "";
  row.precision = "FP8";
  row.source = "github NVIDIA-NeMo/Megatron-Bridge@067f987df:docs/performance-summary.md";
  const auto plan = [&](const char* model, const char* device, const char* release, int stages = 2) {
    row.model = model;
    row.device = device;
    row.pipeline = stages;
    row.data = 64 / stages;
    row.expert = 8;
    row.virtual_stages = 24;
    row.notes = fmt::format("{} NeMo Container / Pre-Training Performance", release);
    return study_of(row, "x.csv:2").plan;
  };
  for (const char* const release : {"25.11", "26.02.01"}) {
    const Plan as_told = plan("Qwen3_30B_a3B", "H100", release);
    EXPECT_EQ(as_told.pipeline, 2);
    EXPECT_EQ(as_told.virtual_stages, 24);
    EXPECT_EQ(as_told.expert, 8);
    EXPECT_EQ(as_told.micro_batch(), 2);
  }
  // No blocks of DeepSeek-V3 in 25.09, no DeepEP in the container of 26.02.
  EXPECT_EQ(plan("DeepSeekV3", "H100", "25.09", 1).scaling, Scaling::current);
  EXPECT_EQ(plan("Qwen3_30B_a3B", "H100", "26.02").expert_dispatch, ExpertDispatch::automatic);
  EXPECT_EQ(plan("Qwen3_30B_a3B", "H100", "26.04").expert_dispatch, ExpertDispatch::deduplicated);
  row.micro_batch = 1;
  const Plan dropping = plan("Qwen3_30B_a3B (tokendrop)", "H100", "25.09");
  EXPECT_EQ(dropping.expert_capacity, 1);
  EXPECT_EQ(dropping.virtual_stages, 24);
}

}  // namespace
}  // namespace armilla
