// Settings of the recipes that a row's container was published with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "study/validate.h"
#include "study/validate/validate_testing.h"

namespace armilla {
namespace {

// Of experts, in Megatron-Bridge's summary; the rest is what `plan_of_release` says.
MeasuredPlan row_of_summary() {
  MeasuredPlan row = small_row();
  row.layers = row.hidden = row.heads = 0;
  row.devices = row.data = row.expert = row.global_batch = 64;
  row.tensor = row.pipeline = 1;
  row.recompute = "";
  row.source = "github NVIDIA-NeMo/Megatron-Bridge@067f987df:docs/performance-summary.md";
  return row;
}

Plan plan_of_release(MeasuredPlan& row, const char* model, const char* device, const char* precision,
                     const char* release) {
  row.model = model;
  row.device = device;
  row.precision = precision;
  row.notes = fmt::format("{} NeMo Container / Pre-Training Performance", release);
  return study_of(row, "x.csv:2").plan;
}

TEST(RowStudy, RecipesAreToldByTheReleaseOfTheContainer) {
  MeasuredPlan row = small_row();
  row.model = "Qwen3_30B_a3B";
  row.layers = row.hidden = row.heads = 0;
  row.device = "GB200";
  row.devices = row.devices_per_node = row.data = row.expert = 8;
  row.tensor = row.pipeline = 1;
  row.precision = "MXFP8";
  row.recompute = "";
  row.source = "github NVIDIA-NeMo/Megatron-Bridge@067f987df:docs/performance-summary.md";
  const auto plan = [&](const char* release) {
    row.notes = fmt::format("FSDP=0; {} NeMo Container / Pre-Training Performance", release);
    return study_of(row, "x.csv:2").plan;
  };
  EXPECT_EQ(plan("26.06.01").schedule, "combined-1f1b");
  EXPECT_EQ(plan("26.06").host, Host::compiled);
  EXPECT_EQ(plan("26.04").schedule, "1f1b");
  EXPECT_EQ(plan("26.04").host, Host::eager);
  EXPECT_EQ(plan("26.04").expert_dispatch, ExpertDispatch::deduplicated);
  EXPECT_EQ(plan("25.09").expert_dispatch, ExpertDispatch::automatic);
  row.precision = "BF16";
  EXPECT_EQ(plan("26.06").schedule, "1f1b");
  row.device = "B200";
  EXPECT_EQ(plan("26.02").expert_dispatch, ExpertDispatch::automatic) << "GB200 is another";
  EXPECT_EQ(plan("26.02.01").expert_dispatch, ExpertDispatch::deduplicated);
  row.source.clear();
  row.notes = "forced balance; HybridEP, A2A overlap";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.schedule, "combined-1f1b");
  EXPECT_EQ(study_of(row, "x.csv:2").plan.expert_dispatch, ExpertDispatch::deduplicated);
}

TEST(RowStudy, RecipesNameWhatIsComputedAgainAndWhatStaysWide) {
  MeasuredPlan row = row_of_summary();
  const auto plan = [&](const char* model, const char* device, const char* precision, const char* release) {
    return plan_of_release(row, model, device, precision, release);
  };
  const auto modules = [&](const char* model, const char* device, const char* precision,
                           const char* release) {
    const Plan made = plan(model, device, precision, release);
    return made.recompute == Recompute::selective ? made.recompute_modules : Parts{};
  };
  EXPECT_EQ(modules("GPT OSS 120B", "GB200", "BF16", "26.06"), (Parts{Part::layernorm, Part::moe_act}));
  EXPECT_EQ(modules("GPT OSS 120B", "GB200", "MXFP8", "26.06"), Parts{});
  EXPECT_EQ(modules("GPT OSS 120B", "GB300", "BF16", "26.06"), Parts{});
  EXPECT_EQ(modules("DeepSeekV3", "GB200", "MXFP8", "26.04"), Parts{Part::mlp});
  EXPECT_EQ(modules("DeepSeekV3", "GB200", "MXFP8", "26.06"), Parts{Part::mla_up_proj});
  EXPECT_EQ(modules("DeepSeekV3", "B300", "MXFP8", "26.06"), Parts{Part::mla_up_proj});
  EXPECT_EQ(modules("DeepSeekV3", "GB300", "FP8-CS", "25.11"), Parts{Part::moe_act});
  EXPECT_EQ(modules("DeepSeekV3", "H100", "FP8", "25.09"), (Parts{Part::mla_up_proj, Part::mlp}));
  EXPECT_EQ(modules("Nemotron_3_Super", "B200", "MXFP8", "26.04"), (Parts{Part::layernorm, Part::moe_act}));
  EXPECT_EQ(modules("Nemotron_3_Super", "B200", "NVFP4", "26.04"), Parts{});
  EXPECT_EQ(modules("Qwen3_30B_a3B", "H100", "FP8", "26.02"), Parts{});
  const Plan super = plan("Nemotron_3_Super", "GB200", "NVFP4", "26.08");
  EXPECT_EQ(super.wide_last_layers, 14);
  EXPECT_EQ(super.wide_modules, (Parts{Part::attention, Part::latent, Part::prediction}));
  const Plan in_eight = plan("Nemotron_3_Super", "GB200", "MXFP8", "26.08");
  EXPECT_EQ(in_eight.wide_last_layers, 0);
  EXPECT_EQ(in_eight.wide_modules, Parts{Part::prediction});
  EXPECT_EQ(plan("Qwen3_30B_a3B", "GB200", "MXFP8", "26.08").wide_modules, Parts{});
  EXPECT_EQ(plan("Qwen3_30B_a3B", "H100", "FP8", "26.02").scaling, Scaling::current);
  EXPECT_EQ(plan("Qwen3_30B_a3B", "B200", "FP8-CS (FP8-MX)", "25.11").scaling, Scaling::current);
  EXPECT_EQ(plan("Qwen3_30B_a3B", "B200", "FP8-MX", "25.11").scaling, Scaling::block);
  EXPECT_EQ(plan("DeepSeekV3", "H100", "FP8", "26.02").scaling, Scaling::block);
  // A row's own words go before.
  row.recompute = "selective(norm,act)";
  EXPECT_EQ(modules("DeepSeekV3", "H100", "BF16", "25.09"), (Parts{Part::layernorm, Part::moe_act}));
}

TEST(RowStudy, GraphsAreOfTheStepOrOfPartsOfLayers) {
  MeasuredPlan row = row_of_summary();
  const auto scope = [&](const char* model, const char* device, const char* precision, const char* release) {
    return plan_of_release(row, model, device, precision, release).cuda_graph_scope;
  };
  constexpr Parts kRouting = {Part::moe_router, Part::moe_preprocess};
  constexpr Parts kAll = {Part::attn, Part::mamba, Part::moe_router, Part::moe_preprocess};
  EXPECT_EQ(scope("Nemotron_3_Nano", "H100", "FP8", "26.04"), Parts{Part::mamba});
  EXPECT_EQ(scope("Nemotron_3_Nano", "GB200", "MXFP8", "26.04"), kAll);
  EXPECT_EQ(scope("Nemotron_3_Super", "B200", "MXFP8", "26.04"), Parts{});
  EXPECT_EQ(scope("Nemotron_3_Super", "B200", "NVFP4", "26.04"), kAll);
  EXPECT_EQ(scope("Qwen3_30B_a3B", "B200", "MXFP8", "26.02"), kRouting);
  EXPECT_EQ(scope("Qwen3_30B_a3B", "B200", "MXFP8", "26.02.01"), kAll);
  EXPECT_EQ(scope("Qwen3_30B_a3B", "H100", "FP8", "26.04"), Parts{});
  EXPECT_EQ(scope("Qwen3_30B_a3B", "GB200", "MXFP8", "26.06"), Parts{}) << "the whole step is one";
  EXPECT_EQ(scope("Qwen3_30B_a3B (tokendrop)", "GB200", "FP8", "25.09"),
            (Parts{Part::attn, Part::moe_layer}));
  EXPECT_EQ(scope("DeepSeekV3", "GB200", "BF16", "25.09"), Parts{});
  const auto told = [&](const char* notes) {
    row.source = "github someone/megatron";
    row.notes = notes;
    return study_of(row, "x.csv:2").plan;
  };
  row.model = "Qwen3_30B_a3B";
  EXPECT_TRUE(told("CUDA graphs").cuda_graph_scope.has(Part::moe_preprocess)) << "the host waits for counts";
  EXPECT_NE(told("CUDA graphs").host, Host::compiled);
  EXPECT_EQ(told("CUDA graphs, capacity factor 1.0").host, Host::compiled);
  EXPECT_TRUE(told("CUDA graph per layer, capacity factor 1.0").cuda_graph_scope.has(Part::mlp_layer));
  EXPECT_TRUE(told("cuda-graph-impl=transformer_engine").cuda_graph_scope.has(Part::attn));
}

}  // namespace
}  // namespace armilla
