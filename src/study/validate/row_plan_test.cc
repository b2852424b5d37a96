// What the columns of a row say of its plan and machine, through whole predictions.
#include <gtest/gtest.h>

#include <string>

#include "base/error_testing.h"
#include "read/measurements.h"
#include "study/validate.h"
#include "study/validate/validate_testing.h"

namespace armilla {
namespace {

TEST(Validate, NothingIsSaidOfCardsOnPcieAlone) {
  const auto collective = [](const std::string& system) {
    return parse_measurements(
        "system,gpus,nodes,collective,bytes,time_us\n" + system + ",8,1,all_reduce,1048576,90\n", "c.csv");
  };
  EXPECT_EQ(error_of([&] { validate({collective("A100-PCIe-80GB")}); }),
            "c.csv:2: 'A100-PCIe-80GB' has devices on PCIe alone, which no machine of the zoo has");
}

TEST(Validate, ColumnsOfThePlanCountInWhatTheySay) {
  const auto seconds = [](const std::string& recompute, const std::string& schedule) {
    return *validate({parse_measurements("id,model,layers,hidden,heads,ffn_hidden,vocab,gpu,gpus,gpus_per_"
                                         "node,tp,pp,dp,micro_batch,"
                                         "global_batch,seq_len,precision,recompute,schedule,step_time_s\n"
                                         "a,m,8,1024,16,4096,50257,A100,8,8,1,4,2,1,32,512,bf16," +
                                             recompute + "," + schedule + ",0.05\n",
                                         "s.csv")})
                .rows[0]
                .predicted;
  };
  EXPECT_EQ(seconds("Full", ""), seconds("full", "1f1b"));
  EXPECT_EQ(seconds("yes", ""), seconds("full", ""));
  EXPECT_EQ(seconds("n/a", ""), seconds("", ""));
  EXPECT_GT(seconds("full", ""), seconds("No", ""));
  EXPECT_LT(seconds("none", "zb-h1"), seconds("none", "1f1b"));
  EXPECT_EQ(seconds("none", "n/a"), seconds("none", "1f1b"));
  EXPECT_EQ(error_of([&] { seconds("none", "roundrobin"); }),
            "s.csv:2: schedule 'roundrobin' is not known\n  hint: for example 1f1b, 1f1b-interleaved, gpipe "
            "or none");
  EXPECT_EQ(error_of([&] { seconds("some", ""); }),
            "s.csv:2: unknown recompute 'some'\n  hint: expected none, selective, operators or full");
}

TEST(RowPlan, OverlapThatIsDeniedIsOff) {
  MeasuredPlan row = small_row();
  row.precision = "bf16";
  EXPECT_TRUE(study_of(row, "x").plan.overlap);
  row.notes = "Megatron-LM; no overlap of DP, TP or p2p communication (launcher turns all off)";
  const Plan plan = study_of(row, "x").plan;
  EXPECT_FALSE(plan.overlap || plan.overlap_parameters || plan.overlap_pipeline);
}

TEST(RowPlan, MegatronsArgumentsSayWhatIsKept) {
  MeasuredPlan row = small_row();
  row.recompute = "selective";
  row.notes =
      "Megatron-LM functional test; recompute-modules=[layernorm moe_act]; "
      "fine-grained-activation-offloading=True; cross-entropy-loss-fusion=True; deterministic-mode=True";
  Study study = study_of(row, "x");
  EXPECT_TRUE(study.plan.recompute_modules == Parts({Part::layernorm, Part::moe_act}));
  EXPECT_TRUE(study.plan.offload_activations);
  EXPECT_EQ(study.plan.loss, LossKernel::wide);
  EXPECT_EQ(study.machine.device.product_workspace, Bytes(32 << 20));
  row.notes = "Megatron-LM; TE fused CE";
  study = study_of(row, "x");
  EXPECT_EQ(study.plan.loss, LossKernel::fused);
  EXPECT_FALSE(study.plan.offload_activations);
}

TEST(RowPlan, CrossEntropiesAreThoseOfTheRecipes) {
  MeasuredPlan row = small_row();
  row.model = "x";
  const auto loss = [&](const std::string& source) {
    row.source = source;
    return study_of(row, "x").plan.loss;
  };
  EXPECT_EQ(loss("Megatron-LM"), LossKernel::automatic);
  EXPECT_EQ(loss("Megatron-LM:examples/llama/README.md"), LossKernel::wide);
  EXPECT_EQ(loss("NVIDIA/NeMo@1"), LossKernel::automatic) << "not told whose";
  row.notes = "nemo; Megatron";
  EXPECT_EQ(loss("dgxc-benchmarking"), LossKernel::wide);
  row.notes = "NeMo/Megatron-Core";
  EXPECT_EQ(loss("dgxc-benchmarking"), LossKernel::wide);
  row.notes.clear();
  EXPECT_EQ(loss("results/ngc25.04_nemo/"), LossKernel::wide);
  EXPECT_EQ(loss("NVIDIA-NeMo/Megatron-Bridge@1:docs/performance-summary.md"), LossKernel::fused);
  EXPECT_EQ(loss("Megatron-MoE-ModelZoo"), LossKernel::wide);
  row.model = "Qwen of mine";
  EXPECT_EQ(loss("Megatron-MoE-ModelZoo"), LossKernel::fused);
}

TEST(RowPlan, PaxmlComputesAllAgain) {
  MeasuredPlan row = small_row();
  row.zero = "fsdp";
  const auto recompute = [&](const std::string& source, const std::string& precision,
                             const std::string& column) {
    row.source = source;
    row.precision = precision;
    row.recompute = column;
    return study_of(row, "x").plan.recompute;
  };
  const std::string small = "github NVIDIA/dgxc-benchmarking@v24.11.1:paxml/README_5b.md";
  EXPECT_EQ(recompute(small, "BF16", ""), Recompute::full);
  EXPECT_EQ(recompute(small, "FP8", ""), Recompute::full);
  EXPECT_EQ(recompute(small, "FP8", "none"), Recompute::none);
  EXPECT_EQ(recompute("github NVIDIA/dgxc-benchmarking@v24.11.1:paxml/README_175b.md", "FP8", ""),
            Recompute::full);
  EXPECT_EQ(recompute("github google/paxml README_5b", "FP8", ""), Recompute::none);
}

TEST(RowPlan, ChunksThatAreNotToldAreFew) {
  MeasuredPlan row = small_row();
  row.schedule = "1f1b-interleaved";
  row.virtual_stages = 0;
  row.layers = 12;
  EXPECT_EQ(study_of(row, "x").plan.virtual_stages, 2);
  row.schedule = "1f1b (non-interleaved)";
  EXPECT_EQ(study_of(row, "x").plan.virtual_stages, 1);
  row.schedule = "1f1b-interleaved";
  row.layers = 46;  // 23 on a stage
  EXPECT_EQ(study_of(row, "x").plan.virtual_stages, 1);
}

TEST(RowPlan, BatchesOfMaxTextAreThoseOfItsDevices) {
  MeasuredPlan row = small_row();
  row.tensor = row.pipeline = 1;
  row.context = 4;
  row.data = 4;
  row.global_batch = 4;
  row.micro_batch = 0.25;
  EXPECT_EQ(error_of([&] { study_of(row, "x"); }),
            "x: a micro-batch of 0.25 samples\n  hint: expected whole samples");
  row.notes = "MaxText, synthetic data";
  EXPECT_EQ(study_of(row, "x").plan.micro_batch(), 1);
  row.tensor = 2;
  row.data = 2;
  row.micro_batch = 2;
  row.global_batch = 2 * 2 * 4 * 2;
  EXPECT_EQ(study_of(row, "x").plan.micro_batch(), 16) << "those of eight devices";
  EXPECT_EQ(study_of(row, "x").plan.micro_batches, 1);
  row = small_row();
  row.tensor = row.pipeline = 1;
  row.data = 16;
  row.global_batch = 0;
  row.micro_batch = 0;
  row.notes = "MaxText(JAX FSDP)";
  EXPECT_NE(error_of([&] { study_of(row, "x"); }).find("the global batch is not known"), std::string::npos);
  row.source = "github NVIDIA/dgxc-benchmarking@v25.04:maxtext/README_70b.md";
  EXPECT_EQ(study_of(row, "x").plan.batch * study_of(row, "x").plan.data(), 32);
}

}  // namespace
}  // namespace armilla
