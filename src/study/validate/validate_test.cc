#include "study/validate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error_testing.h"
#include "ir/model.h"
#include "read/measurements.h"
#include "read/read.h"
#include "read/study.h"
#include "study/run.h"
#include "study/validate/row_model.h"
#include "study/validate/validate_testing.h"

namespace armilla {
namespace {

TEST(RowStudy, DegreesAndSizesAreThoseOfTheRow) {
  MeasuredPlan row = small_row();
  row.zero = "1";
  row.sequence_parallel = "1";
  const Study study = study_of(row, "x.csv:2");
  EXPECT_EQ(study.plan.ranks, 16);
  EXPECT_EQ(study.plan.tensor, 2);
  EXPECT_EQ(study.plan.pipeline, 2);
  EXPECT_EQ(study.plan.data(), 4);
  EXPECT_EQ(study.plan.micro_batches, 8);
  EXPECT_EQ(study.plan.zero_stage, 1);
  EXPECT_TRUE(study.plan.sequence_parallel);
  EXPECT_EQ(study.machine.device.name, "a100-80gb-sxm");
  ASSERT_EQ(study.machine.dimensions.size(), 2u);
  EXPECT_EQ(study.machine.dimensions[0].size, 8);
  EXPECT_EQ(study.machine.dimensions[1].size, 2);
}

TEST(RowStudy, VocabulariesThatAreNotToldAreTheUsualOneOrThatOfMockData) {
  MeasuredPlan row = small_row();
  row.vocabulary = 0;
  const auto vocabulary = [&] { return read_model(study_of(row, "x.csv:2").model, 1).facts.vocabulary; };
  EXPECT_EQ(vocabulary(), 50432) << "50,257, padded";
  row.source =
      "github NVIDIA/Megatron-LM: tests/functional_tests/test_cases/gpt/gpt3_7b_tp4_pp1/model_config.yaml";
  EXPECT_EQ(vocabulary(), 131072);
  row.vocabulary = 32000;
  EXPECT_EQ(vocabulary(), 32000);
}

TEST(RowStudy, ChunksThatAreNotToldAreTheFewest) {
  MeasuredPlan row = small_row();
  row.layers = 12;
  row.schedule = "1f1b-interleaved";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.virtual_stages, 2);
  row.virtual_stages = 3;
  EXPECT_EQ(study_of(row, "x.csv:2").plan.virtual_stages, 3);
}

TEST(RowStudy, ShardingInGroups) {
  MeasuredPlan row = small_row();
  row.tensor = row.pipeline = 1;
  row.data = 16;
  row.zero = "fsdp2";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.zero_stage, 3);
  row.zero = "3 (within 8)";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.hybrid_shard, 8);
  row.zero = "1 (sharded within 8)";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.zero_stage, 1);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.hybrid_shard, 8);
}

// Without flushes between iterations several are played: one of them counts, which waits for less
// than 1F1B's.
TEST(Validate, OfIterationsWithoutFlushOneIsPredicted) {
  const auto seconds = [](const std::string& schedule) {
    const std::string text =
        "model,layers,hidden,heads,ffn_hidden,vocab,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,"
        "precision,"
        "schedule,step_time_s\n"
        "m,8,1024,16,4096,32000,H100,8,1,4,1,16,1024,bf16," +
        schedule + ",1\n";
    return validate({parse_measurements(text, "s.csv")}).rows.front().predicted.value_or(0);
  };
  const double flushed = seconds("1f1b"), asynchronous = seconds("pipedream-2bw");
  EXPECT_GT(asynchronous, 0.5 * flushed);
  EXPECT_LE(asynchronous, flushed);
}

TEST(RowStudy, PartsThatAreMadeAgainAreReadByAnyName) {
  MeasuredPlan row = small_row();
  const auto modules = [&](const std::string& recompute) {
    row.recompute = recompute;
    return study_of(row, "x.csv:2").plan.recompute_modules;
  };
  EXPECT_EQ(modules("selective"), Parts({Part::core_attn}));
  EXPECT_EQ(modules("selective (core_attn, norm)"), Parts({Part::core_attn, Part::layernorm}));
  EXPECT_EQ(modules("selective(norm,act)"), Parts({Part::layernorm, Part::moe_act}));
  EXPECT_EQ(modules("selective(MLP)"), Parts({Part::mlp}));
  EXPECT_THROW(modules("selective(foo)"), Error);
}

TEST(RowStudy, StagesOfZeroAreSpelledInManyWays) {
  MeasuredPlan row = small_row();
  row.tensor = row.pipeline = 1;
  row.data = 16;
  const auto plan = [&](const std::string& zero) {
    row.zero = zero;
    return study_of(row, "x.csv:2").plan;
  };
  for (const std::string none : {"", "-", "n/a", "NA", "none", "0"})
    EXPECT_EQ(plan(none).zero_stage, 0) << none;
  EXPECT_EQ(plan("ZeRO-1").zero_stage, 1);
  EXPECT_EQ(plan("2 (all DP)").zero_stage, 2);
  EXPECT_EQ(plan("fsdp (within 8)").hybrid_shard, 8);
  EXPECT_EQ(plan("FSDP2 within 8").hybrid_shard, 8);
  EXPECT_TRUE(plan("FSDP2").no_sync);
  for (const std::string unknown : {"10", "1+offload", "4", "yes"})
    EXPECT_THROW(plan(unknown), Error) << unknown;
}

TEST(RowStudy, KernelsAreSpelledInManyWays) {
  MeasuredKernel row;
  row.dtype = "bf16";
  row.heads = 32;
  row.head_dim = 128;
  row.queries = row.keys = 4096;
  const auto flops = [&](const std::string& operation) {
    row.operation = operation;
    return work_of(row, "x.csv:2").flops;
  };
  const Flops full = flops("attention_fwd(full)"), causal = flops("attention_fwd(causal)");
  EXPECT_LT(causal, full);
  for (const std::string name :
       {"attention_fwd(non-causal)", "Attention_forward", "attention_fwd(is_causal=False)"})
    EXPECT_EQ(flops(name), full) << name;
  EXPECT_EQ(flops("attention_fwd(Causal)"), causal);
  EXPECT_EQ(flops("attention_backward(causal)"), flops("attention_bwd(causal)"));
  // The last of 128 queries sees all keys, the first almost all.
  row.queries = 128;
  row.keys = 65536;
  EXPECT_GT(flops("attention_fwd(causal)").value, flops("attention_fwd(full)").value / 1000 * 998);
  row = {};
  row.dtype = "BF16";
  row.m = row.n = 4096;
  for (const auto& [name, kernel] : {std::pair{"rmsnorm_backward", Kernel::norm_backward},
                                     {"layer_norm_bwd", Kernel::norm_backward},
                                     {"rmsnorm", Kernel::norm},
                                     {"residual_add", Kernel::any}}) {
    row.operation = name;
    EXPECT_EQ(work_of(row, "x.csv:2").kernel, kernel) << name;
  }
  for (const std::string name : {"address", "paddle"}) EXPECT_THROW(flops(name), Error) << name;
}

// What NVIDIA's benchmarks of JAX programs say of themselves.
TEST(RowStudy, ProgramsOfXlaDropWhatIsNotReadAndShardOverSomeNodes) {
  MeasuredPlan row = small_row();
  row.tensor = row.pipeline = 1;
  row.devices = row.data = 1024;
  row.devices_per_node = 8;
  row.global_batch = 2048;
  row.recompute = "full";
  row.zero = "fsdp";
  const auto plan = [&](const std::string& source) {
    row.source = source;
    return study_of(row, "x.csv:2").plan;
  };
  EXPECT_EQ(plan("github someone/else").hybrid_shard, 0);
  EXPECT_FALSE(stops_early(plan("github someone/else")));
  EXPECT_EQ(plan("github NVIDIA/dgxc-benchmarking@v25.02:maxtext/README_70b.md").hybrid_shard, 128);
  EXPECT_TRUE(stops_early(plan("github NVIDIA/dgxc-benchmarking@v25.02:maxtext/README_70b.md")));
  EXPECT_EQ(plan("github NVIDIA/dgxc-benchmarking@v24.11.1:paxml/README_5b.md").hybrid_shard, 8);
  EXPECT_EQ(plan("github NVIDIA/dgxc-benchmarking@v24.11.1:paxml/README_175b.md").hybrid_shard, 128);
  row.devices = row.data = 256;
  EXPECT_EQ(plan("github NVIDIA/dgxc-benchmarking@v25.02:maxtext/README_70b.md").hybrid_shard, 0);
}

TEST(RowStudy, LayersThatBelieTheModelsNameAreItsOwn) {
  MeasuredPlan row = small_row();
  row.model = "LLAMA4 Maverick 400b BF16";
  row.hidden = row.heads = 0;
  row.parameters = 0;
  row.tensor = row.pipeline = row.data = row.devices = 1;
  for (const std::int64_t layers : {48, 32}) {
    row.layers = layers;
    const ModelSource source = study_of(row, "x.csv:2").model;
    EXPECT_EQ(source.name, "llama4-maverick");
    EXPECT_EQ(source.layers, layers == 48 ? 48 : 0) << "0: its own";
  }
  row.parameters = 267e9;
  EXPECT_EQ(study_of(row, "x.csv:2").model.layers, 32) << "the parameters say so, too";
}

// Qwen3's 94 layers do not divide by 32 chunks, but with embedding and loss they do.
TEST(RowStudy, EmbeddingAndLossCountAsLayersWhereTheseDoNotDivide) {
  MeasuredPlan row = small_row();
  row.layers = 14;
  row.notes = "Megatron-Core";
  row.virtual_stages = 4;
  EXPECT_EQ(study_of(row, "x.csv:2").plan.stage_blocks, std::vector<std::int64_t>(8, 2));
  row.layers = 16;
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.stage_blocks.empty());
  row.layers = 15;
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.stage_blocks.empty()) << "with or without them";
  row.layers = 14;
  row.notes = "another framework";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.stage_blocks.empty());
}

TEST(RowStudy, UnevenPipelinesOfMegatronsTestsHaveTwoLayersAtTheirEnds) {
  MeasuredPlan row = small_row();
  row.layers = 12;
  row.pipeline = 4;
  row.data = row.devices / 4;
  row.tensor = 1;
  row.source = "tests/functional_tests/test_cases/gpt/gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.stage_blocks, (std::vector<std::int64_t>{3, 4, 4, 3}));
  row.layers = 13;
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.stage_blocks.empty());
}

TEST(RowStudy, TensorParallelismOverlapsWhereMegatronWasToldSo) {
  MeasuredPlan row = small_row();
  row.source = "github NVIDIA/Megatron-LM";
  row.sequence_parallel = "1";
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_tensor);
  row.notes = "--overlap-grad-reduce --tp-comm-overlap";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap_tensor);
  row.sequence_parallel = "0";
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_tensor) << "needs sequence parallelism";
}

TEST(RowStudy, KorthikantisStepsOverlapTheProductsOfGradients) {
  MeasuredPlan row = small_row();
  row.notes = "Megatron-LM";
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_tensor_gradients);
  row.notes = "arXiv 2205.05198 Table 5";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap_tensor_gradients);
  row.tensor = 1;
  row.data *= 2;
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_tensor_gradients);
}

TEST(RowStudy, CapacitiesOfExpertsAreToldByTheNotes) {
  MeasuredPlan row = small_row();
  row.model = "mixtral-8x7b";
  row.layers = row.hidden = row.heads = 0;
  row.tensor = row.pipeline = 1;
  row.data = 16;
  row.notes = "MoE 8 experts top-2, dropping, capacity factor 1.25 (dense einsum, megablox off)";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.expert_capacity, 1.25);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.expert_dispatch, ExpertDispatch::one_hot);
  row.notes = "dropless";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.expert_capacity, 0);
}

// Nor does it matter how words are written.
TEST(RowStudy, RecipesAreWhatTheNotesSayNotWhatTheyDeny) {
  MeasuredPlan row = small_row();
  row.model = "qwen3-30b-a3b";
  row.layers = row.hidden = row.heads = 0;
  row.device = "gb200";
  row.devices = row.devices_per_node = row.data = row.expert = 8;
  row.tensor = row.pipeline = 1;
  row.precision = "mxfp8";
  const auto plan = [&](const char* notes) {
    row.notes = notes;
    return study_of(row, "x.csv:2").plan;
  };
  const auto overlaps = [&](const char* notes) { return plan(notes).schedule == "combined-1f1b"; };
  const auto deduplicates = [&](const char* notes) {
    return plan(notes).expert_dispatch == ExpertDispatch::deduplicated;
  };
  row.source = "github NVIDIA-NeMo/Megatron-Bridge@067f987df:docs/performance-summary.md";
  EXPECT_TRUE(overlaps("26.06 nemo container"));
  EXPECT_EQ(plan("26.06 nemo container").host, Host::compiled);
  EXPECT_TRUE(deduplicates("26.06 NEMO CONTAINER"));
  EXPECT_FALSE(overlaps("26.06 NeMo Container; no a2a overlap"));
  EXPECT_FALSE(deduplicates("26.06 NeMo Container; without HybridEP"));
  row.device = "b200";
  EXPECT_FALSE(overlaps("26.06 nemo container"));
  row.source.clear();
  EXPECT_FALSE(overlaps("without hybridep; no a2a overlap"));
  EXPECT_FALSE(deduplicates("without hybridep; no a2a overlap"));
  EXPECT_FALSE(deduplicates("Without DeepEP or HybridEP"));
  EXPECT_FALSE(overlaps("not MoE all-to-all overlap"));
  EXPECT_TRUE(deduplicates("no cuda graph; hybridep"));
  EXPECT_TRUE(overlaps("no cuda graph, A2A overlap"));
  EXPECT_TRUE(deduplicates("no recompute but DeepEP"));
  EXPECT_TRUE(deduplicates("not HybridEP, DeepEP"));
}

TEST(RowStudy, FrameworksAreToldByName) {
  MeasuredPlan row = small_row();
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.accumulation_fusion);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.issue_time, Time(80'000'000));
  row.notes = "Megatron-LM";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.accumulation_fusion);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.issue_time, Time(65'000'000));
  row.device = "GB200";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.issue_time, Time(81'250'000)) << "Grace";
  row.device = small_row().device;
  for (const char* name : {"nanotron", "InternEvo", "Megatron-DeepSpeed"}) {
    row.notes = name;
    EXPECT_FALSE(study_of(row, "x.csv:2").plan.accumulation_fusion) << name;
  }
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.scatter_gather);
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_pipeline);
  row.notes = "Megatron-LM";
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.scatter_gather);
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap_pipeline);
  row.notes = "NeMo/Megatron-Core";
  row.sequence_parallel = "1";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap_tensor);
  row.model = "Nemotron-H 56b FP8";
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_tensor);
  row = small_row();
  row.notes = "MaxText; remat custom: decoder input kept, rest recomputed";
  row.recompute = "selective";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute, Recompute::full);
  row.notes = "MaxText; remat custom: decoder input, q, k, v kept by host offload, rest recomputed";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute, Recompute::selective);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute_modules,
            (Parts{Part::core_attn, Part::mlp, Part::moe, Part::layernorm}));
  EXPECT_TRUE(stops_early(study_of(row, "x.csv:2").plan)) << "the last product";
  row.notes = "MaxText; remat custom with parts kept on device (see run_recipe.sh)";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute_modules, (Parts{Part::mlp, Part::moe, Part::layernorm}));
  row.notes = "MaxText; MoE, dense einsum";
  EXPECT_NE(study_of(row, "x.csv:2").plan.expert_dispatch, ExpertDispatch::sorted);
  row.notes = "MaxText; MoE, sparse matmul (megablox)";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.expert_dispatch, ExpertDispatch::sorted);
  row.notes = "MaxText; remat policy qkv_proj_offloaded";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute, Recompute::full);
  row.notes = "MaxText";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute, Recompute::selective);
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap_tensor);
  row.notes = "torchtitan";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.recompute, Recompute::operators);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.loss, LossKernel::automatic);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.scaling, Scaling::delayed);
  row.notes = "torchtitan; float8 rowwise";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.scaling, Scaling::rows);
  row.notes = "torchtitan";
  row.source = "torchtitan: llama3_h100_202412.md";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.loss, LossKernel::wide);
  row.source = "KempnerForge";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.loss, LossKernel::narrow);
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.loss_parallel);
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.embedding_parallel);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.head_parallel, row.pipeline == 1);
  EXPECT_EQ(study_of(row, "x.csv:2").plan.tensor_method, TensorMethod::modules);
  row.source.clear();
  row.notes = "MaxText";
  row.tensor = 1;
  row.data *= 2;
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_tensor) << "nothing to overlap";
}

TEST(RowStudy, InternEvoReducesWideBucketsInItsOwnTypeAndSendsParametersBeforeTheNextStep) {
  MeasuredPlan row = small_row();
  row.zero = "1 (all DP)";
  EXPECT_EQ(study_of(row, "x.csv:2").plan.gradient_dtype, DType::fp32);
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap_parameters);
  row.source = "github InternLM/InternEvo";
  const Plan plan = study_of(row, "x.csv:2").plan;
  EXPECT_EQ(plan.gradient_dtype, DType::bf16);
  EXPECT_EQ(plan.bucket, Bytes(1 << 30));
  EXPECT_EQ(plan.zero_partition, ZeroPartition::tensors);
  EXPECT_FALSE(plan.overlap_parameters);
}

TEST(RowStudy, NanotronExchangesAllGradientsBehindTheBackwardPassUnderZeRO1) {
  MeasuredPlan row = small_row();
  row.source = "nanotron";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.overlap) << "DistributedDataParallel";
  row.zero = "1";
  const Plan plan = study_of(row, "x.csv:2").plan;
  EXPECT_FALSE(plan.overlap);
  EXPECT_FALSE(plan.overlap_parameters);
  EXPECT_FALSE(plan.reduce_scatter);
}

TEST(RowStudy, DeepSpeedAllReducesGradientsAndGathersParametersBeforeTheStepIsOver) {
  MeasuredPlan row = small_row();
  row.source = "DeepSpeed";
  row.zero = "1";
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.overlap_parameters);
  EXPECT_FALSE(study_of(row, "x.csv:2").plan.reduce_scatter);
  row.zero = "2";
  EXPECT_TRUE(study_of(row, "x.csv:2").plan.reduce_scatter);
}

TEST(RowStudy, A100sOfSeptember2020Have40GB) {
  MeasuredPlan row = small_row();
  row.device = "A100(DGX-A100)";
  EXPECT_EQ(study_of(row, "x").machine.device.name, "a100-80gb-sxm");
  row.source = "github NVIDIA/Megatron-LM images/tables.tex @ parent of 50a4b5fa02";
  EXPECT_EQ(study_of(row, "x").machine.device.name, "a100-40gb-sxm");
  row.device = "V100-32GB(DGX-2)";
  EXPECT_EQ(study_of(row, "x").machine.device.name, "v100-32gb-sxm2");
}

TEST(RowStudy, MptsLossIsOneKernel) {
  MeasuredPlan row = small_row();
  row.notes = "llm-foundry; PyTorch FSDP";
  EXPECT_EQ(study_of(row, "x").plan.loss, LossKernel::fused);
}

TEST(RowStudy, BlocksOfPyTorchBefore21AreDoneAgainWhole) {
  MeasuredPlan row = small_row();
  row.recompute = "full";
  row.notes = "actckpt=True mp_mode=PURE; llm-foundry, PyTorch FSDP";
  EXPECT_FALSE(stops_early(study_of(row, "x").plan));
  row.notes = "actckpt=True mp_mode=DEFAULT; llm-foundry, PyTorch FSDP";
  EXPECT_TRUE(stops_early(study_of(row, "x").plan));
  row.notes = "mp_mode=PURE; PyTorch FSDP";
  EXPECT_TRUE(stops_early(study_of(row, "x").plan)) << "of llm-foundry alone";
  row.notes = "";
  EXPECT_FALSE(stops_early(study_of(row, "x").plan)) << "Megatron's";
}

// Recipes leave experts whole, Megatron-LM's tests divide them like the rest unless they say otherwise.
TEST(RowStudy, ExpertsAreDividedAsArgumentsSay) {
  MeasuredPlan row = small_row();
  row.expert = 2;
  MeasuredPlan known = row;
  known.model = "qwen3-235b-a22b";
  EXPECT_THAT(error_of([&] { study_of(known, "x"); }),
              testing::HasSubstr("hidden 1024 of 'qwen3-235b-a22b': qwen3-235b-a22b has 4096"));
  known.layers = known.hidden = known.heads = 0;
  EXPECT_EQ(study_of(known, "x").plan.experts_tensor(), 1);
  known.model = "Grok 1 314b BF16";
  known.source = "github NVIDIA/dgxc-benchmarking@v25.02:grok1/README_314b.md";
  EXPECT_EQ(study_of(known, "x").plan.experts_tensor(), known.tensor);
  known.device = "H100";
  known.source = "github NVIDIA/dgxc-benchmarking@v25.05.01:grok1/README.md";
  EXPECT_EQ(study_of(known, "x").plan.experts_tensor(), 1);
  row.model = "some-model";
  row.notes = "Megatron-LM functional test; num-experts=4; moe-router-topk=1";
  row.sequence_parallel = "1";
  EXPECT_EQ(study_of(row, "x").plan.experts_tensor(), 2);
  row.notes = "Megatron-LM functional test; expert-tensor-parallel-size=1; num-experts=4; x";
  EXPECT_EQ(study_of(row, "x").plan.experts_tensor(), 1);
}

TEST(RowStudy, HostsAreToldByWhatCompiles) {
  MeasuredPlan row = small_row();
  row.notes = "plain PyTorch, torch.compile, bf16 params";
  const Plan fused = study_of(row, "x.csv:2").plan;
  EXPECT_EQ(fused.host, Host::compiled);
  EXPECT_EQ(issue_time_of(fused), microseconds(60));
  EXPECT_EQ(fused.framework, Framework::pytorch);
  EXPECT_EQ(fused.gradient_dtype, DType::bf16) << "as its parameters";
  row.notes = "plain PyTorch, torch.compile with CUDA graphs, bf16 params with fp32 reduce";
  const Plan graphs = study_of(row, "x.csv:2").plan;
  EXPECT_EQ(graphs.host, Host::compiled);
  EXPECT_EQ(issue_time_of(graphs), Time(0));
  EXPECT_EQ(graphs.state_dtype, DType::bf16);
  EXPECT_EQ(graphs.gradient_dtype, DType::fp32);
}

TEST(RowStudy, NanotronHasKernelsAndTensorParallelismOfItsOwn) {
  MeasuredPlan row = small_row();
  row.notes = "torchtitan";
  const Plan titan = study_of(row, "x.csv:2").plan;
  EXPECT_EQ(tensor_method_of(titan), TensorMethod::dtensor);
  EXPECT_EQ(fused_elementwise_of(titan), Parts());
  row.notes = "plain PyTorch, tools/measure_device.py";
  EXPECT_EQ(fused_elementwise_of(study_of(row, "x.csv:2").plan), Parts{Part::norm});
  row.notes = "nanotron";
  const Plan nanotron = study_of(row, "x.csv:2").plan;
  EXPECT_EQ(nanotron.framework, Framework::pytorch);
  EXPECT_EQ(tensor_method_of(nanotron), TensorMethod::megatron);
  EXPECT_EQ(fused_elementwise_of(nanotron), (Parts{Part::norm, Part::rotary}));
}

TEST(RowStudy, TrainersTakeTimeBetweenSteps) {
  MeasuredPlan row = small_row();
  const auto overhead = [&](const char* notes) {
    row.notes = notes;
    return study_of(row, "x.csv:2").plan.step_overhead;
  };
  EXPECT_EQ(overhead(""), Time(0));
  EXPECT_EQ(overhead("MaxText; arch: NeMo llama.py"), Time(0));
  EXPECT_EQ(overhead("Paxml; arch: Calculon models/megatron-5B.json"), Time(0));
  for (const char* notes : {"Megatron-LM", "NeMo 24.07"}) EXPECT_EQ(overhead(notes), microseconds(15'000));
  for (const char* notes : {"torchtitan", "llm-foundry", "InternEvo"})
    EXPECT_EQ(overhead(notes), microseconds(45'000)) << notes;
  EXPECT_EQ(overhead("plain PyTorch, tools/measure_device.py"), Time(0)) << "a bare loop";
}

TEST(RowStudy, BloomWaitsForEveryKernel) {
  MeasuredPlan row = small_row();
  const Time launch = study_of(row, "x.csv:2").machine.device.kernels->launch;
  row.source = "github bigscience-workshop/bigscience";
  const Study study = study_of(row, "x.csv:2");
  EXPECT_EQ(study.machine.device.kernels->launch, launch + Time(65'000'000));
  EXPECT_GT(study.machine.device.kernels->memory.launch, Time(65'000'000));
  EXPECT_EQ(study.plan.host, Host::compiled);
  EXPECT_FALSE(study.plan.issue_time);
}

TEST(RowStudy, MessagesOfTwoDevicesSetUpNoRings) {
  MeasuredCollective row{"DGX-A100 NVLink3", "send_recv", 2, 1, 1 << 26};
  const std::vector<CollectiveProtocol> protocols = study_of(row, "x.csv:2").machine.dimensions[0].protocols;
  ASSERT_EQ(protocols.size(), 1u);
  EXPECT_EQ(protocols[0].share, 1);
  row.kind = "all_reduce";
  EXPECT_GT(study_of(row, "x.csv:2").machine.dimensions[0].protocols.size(), 1u);
}

// 10 GB/s until buffers of 18 MiB are full, then the 2.2 GB/s that arrive; 5 us to start.
TEST(RowStudy, SendersAreDoneWhenBuffersHoldTheirBytes) {
  const MeasuredCollective row{"4xA100 pairwise NVLink", "send_recv", 2, 2, 1 << 20};
  const Study study = study_of(row, "x.csv:2");
  constexpr double kLine = 10e9, kAttained = 2.2e9, kStart = 5e-6;
  const auto sender = [&](std::int64_t bytes) {
    return sender_seconds(study, bytes, kStart + static_cast<double>(bytes) / kAttained);
  };
  EXPECT_NEAR(sender(1'000'000), kStart + 1e6 / kLine, 1e-9);  // eleven of 1 MB fit
  EXPECT_NEAR(sender(100'000'000), 100e6 / kAttained, 1e-9);   // not one of 100 MB does
  EXPECT_NEAR(sender(10'000'000), 10e6 / kAttained, 1e-9);     // two of 10 MB do, which the median leaves out
  for (std::int64_t bytes = 1 << 10; bytes < 1 << 26; bytes *= 2) EXPECT_LT(sender(bytes), sender(2 * bytes));
}

// Which kernels are timed is the source's affair.
TEST(Validate, OnlyVidursMessagesAreTheSenders) {
  const std::string head =
      "system,gpus,nodes,collective,bytes,time_us,source\n4xA100 pairwise NVLink,2,2,send_recv,1048576,100,";
  const auto predicted = [&](const char* source) {
    return *validate({parse_measurements(head + source + "\n", "c.csv")}).rows.front().predicted;
  };
  EXPECT_GT(predicted("somebody else"), 3 * predicted("github microsoft/vidur@7d47513:data"));
}

constexpr const char* kSteps =
    "id,model,layers,hidden,heads,ffn_hidden,vocab,gpu,gpus,gpus_per_node,tp,pp,dp,micro_batch,global_batch,"
    "seq_len,precision,recompute,step_time_s\n"
    "a-1,m,4,1024,16,4096,50257,A100,8,8,1,1,8,1,32,512,bf16,none,0.05\n"
    "a-2,m,4,1024,16,4096,50257,A100,8,8,2,1,4,1,32,512,bf16,none,0.05\n"
    "a-3,m,4,1024,16,4096,50257,A100,8,8,4,1,2,1,32,512,bf16,none,0.08\n"
    "a-4,m,4,1024,16,4096,50257,A100,8,8,8,1,1,1,32,512,bf16,none,0.16\n"
    "a-5,m,4,1024,16,4096,50257,Z80,8,8,8,1,1,1,32,512,bf16,none,0.16\n";

TEST(Validate, EveryRowIsPredictedOrCounted) {
  const Validation validation = validate({parse_measurements(kSteps, "s.csv")});
  ASSERT_EQ(validation.rows.size(), 5u);
  ASSERT_EQ(validation.totals.size(), 1u);
  EXPECT_EQ(validation.totals[0].rows, 5);
  EXPECT_EQ(validation.totals[0].errors.count, 4);
  ASSERT_EQ(validation.unpredicted.size(), 1u);
  EXPECT_EQ(validation.unpredicted.begin()->first, "device 'Z80' is not known");
  EXPECT_EQ(validation.rows[4].unpredicted_detail, "device 'Z80' is not known");
  const ValidatedSet& set = validation.sets[0];
  EXPECT_EQ(set.name, "a A100 bf16");
  EXPECT_EQ(set.ranking.groups, 1);
  EXPECT_EQ(set.ranking.plans, 4);
  EXPECT_EQ(set.constant.count, 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_GT(*validation.rows[i].predicted, 0);
}

// The same study through the front door.
TEST(Validate, PredictsWithTheOrdinaryEngine) {
  const MeasurementFile file = parse_measurements(kSteps, "s.csv");
  const Validation validation = validate({file});
  const armilla::Run run = run_study(study_of(std::get<MeasuredStep>(file.rows[1].what).plan, "s.csv:3"));
  EXPECT_EQ(*validation.rows[1].predicted, in_seconds(run.result.iteration));
}

TEST(Validate, WhereNothingCanBePredictedItSaysWhy) {
  std::string text = kSteps;
  for (std::size_t at; (at = text.find("A100")) != std::string::npos;) text.replace(at, 4, "A1oo");
  const MeasurementFile file = parse_measurements(text, "s.csv");
  EXPECT_EQ(
      error_of([&] { validate({file}); }),
      "s.csv:2: no row can be predicted: device 'A1oo' is not known (4 rows); device 'Z80' is not known "
      "(1 row)\n  hint: armilla list devices names those that are");
  MeasurementFile first = file;
  first.rows.resize(1);
  EXPECT_EQ(error_of([&] { validate({first}); }),
            "s.csv:2: device 'A1oo' is not known\n  hint: armilla list devices names those that are");
  // Beside a file that can be, it is counted.
  const Validation both = validate({file, parse_measurements(kSteps, "t.csv")});
  EXPECT_EQ(both.unpredicted.at("device 'A1oo' is not known").size(), 4u);
}

TEST(Validate, KernelsAreOfTypesAndHeadsThatThereAre) {
  MeasuredKernel kernel;
  kernel.operation = "attention_fwd";
  kernel.dtype = "bf16";
  kernel.heads = 128;
  kernel.kv_heads = 7;
  kernel.head_dim = 128;
  kernel.queries = kernel.keys = 256;
  EXPECT_EQ(error_of([&] { work_of(kernel, "k.csv:2"); }),
            "k.csv:2: 128 heads over 7 of keys and values\n  hint: as many share each of these");
  kernel.kv_heads = 8;
  EXPECT_GT(work_of(kernel, "k.csv:2").flops, Flops(0));
  kernel.operation = "gemm";
  kernel.m = kernel.n = kernel.k = 64;
  kernel.dtype = "fp32";
  EXPECT_EQ(work_of(kernel, "k.csv:2").dtype, DType::fp32) << "as PyTorch computes it";
  kernel.dtype = "f32xf32->f32";
  EXPECT_EQ(work_of(kernel, "k.csv:2").dtype, DType::tf32) << "as XLA does";
  kernel.dtype = "torch.bfloat16";
  EXPECT_EQ(work_of(kernel, "k.csv:2").dtype, DType::bf16);
  kernel.dtype = "fp64";
  EXPECT_EQ(work_of(kernel, "k.csv:2").dtype, DType::fp64);
}

TEST(Validate, CastsOf8BitsAreTimedWithAProductOnlyWhereItsTableDoes) {
  const Validation validation = validate({parse_measurements(
      "op,gpu,dtype,m,n,k,time_us,notes\n"
      "gemm,H100,fp8xfp8->bf16,8192,4096,4096,400,kernel\n"
      "gemm,H100,fp8xfp8->bf16,8192,4096,4096,400,sglang_sgl_kernel_fp8_scaled_mm; per-token scale\n",
      "k.csv")});
  Work product;
  product.kind = WorkKind::matrix;
  product.dtype = DType::fp8;
  product.scaling = Scaling::done;
  product.gemms = {{8192, 4096, 4096}};
  product.flops = Flops(2 * product.gemms.front().macs());
  const auto cost = make_cost_model({"kernels", {{"sustained", {"false", "test"}}}, "test"},
                                    load_device("h100-sxm", "test"));
  const Time alone = cost->time(product);
  EXPECT_EQ(*validation.rows[0].predicted, in_seconds(alone));
  // Read in 2 bytes and written in 1, at 0.9 of 3.35 TB/s, by a kernel that takes 2 us to begin.
  EXPECT_NEAR(*validation.rows[1].predicted - in_seconds(alone), 2e-6 + 3.0 * 8192 * 4096 / (0.9 * 3.35e12),
              1e-11);
}

TEST(Validate, ACellThatCannotBeReadCostsItsRow) {
  const Validation validation = validate({parse_measurements(
      "system,gpus,collective,bytes,time_us\nA100,8,AllReduce,1048576,90\nA100,8,all_reduce,1048576,90\n"
      "A100,eight,alltoall,1048576,90\n",
      "c.csv")});
  EXPECT_EQ(*validation.rows[0].predicted, *validation.rows[1].predicted) << "names as NCCL writes them";
  EXPECT_EQ(validation.rows[2].unpredicted_detail, "gpus: 'eight' is not a count");
}

TEST(Validate, AKernelThatCannotBeCountedIsRefused) {
  MeasuredKernel kernel;
  kernel.operation = "gemm";
  kernel.dtype = "bf16";
  kernel.m = 1'000'000'000'000'000;
  kernel.n = kernel.k = 4096;
  EXPECT_EQ(error_of([&] { work_of(kernel, "k.csv:2"); }),
            "k.csv:2: a kernel of 1.68e+22 multiplications\n  hint: expected at most 1e+17");
  kernel.m = 4096;
  EXPECT_EQ(work_of(kernel, "k.csv:2").flops, Flops(2LL * 4096 * 4096 * 4096));
}

TEST(RowStudy, LayersOfServingEnginesAreTheirKernels) {
  constexpr std::int64_t kElements = 64 * 4096, kBytes = 2;
  MeasuredKernel kernel;
  kernel.dtype = "fp16";
  kernel.m = 64;
  kernel.n = 4096;
  kernel.operation = "input_layernorm";
  EXPECT_EQ(work_of(kernel, "k.csv:2").bytes, Bytes(3 * kElements * kBytes)) << "read twice, written";
  kernel.operation = "rms_norm_fwd";
  EXPECT_EQ(work_of(kernel, "k.csv:2").bytes, Bytes(2 * kElements * kBytes));
  kernel.operation = "emb";
  EXPECT_EQ(work_of(kernel, "k.csv:2").kernel, Kernel::any);
  kernel.notes = "emb of a run of its own";
  EXPECT_EQ(work_of(kernel, "k.csv:2").kernel, Kernel::any);
  kernel.notes = "emb of meta-llama/Meta-Llama-3-8B tp=1";
  EXPECT_EQ(work_of(kernel, "k.csv:2").kernel, Kernel::gather);
  kernel.operation = "attn_rope";
  EXPECT_EQ(work_of(kernel, "k.csv:2").bytes, Bytes(2 * kElements * kBytes * 5 / 4)) << "a key per 4 queries";
  kernel.notes = "attn_rope of Qwen/Qwen-72B tp=2";
  EXPECT_EQ(work_of(kernel, "k.csv:2").bytes, Bytes(2 * kElements * kBytes)) << "half of queries and of keys";
}

// A100's memory moves 0.8 of its bandwidth, its cache 1.5 times that bandwidth; 216 rows of norms fill it.
TEST(RowStudy, LayersOfServingEnginesFindInTheCacheWhatWasJustWritten) {
  const Device device = load_device("a100-80gb-sxm", "test");
  ASSERT_TRUE(device.kernels);
  EXPECT_EQ(device.kernels->processors, 108);
  MeasuredKernel kernel;
  kernel.dtype = "fp16";
  kernel.n = 4096;
  kernel.operation = "add";
  const auto moved = [&](std::int64_t rows) {
    kernel.m = rows;
    return static_cast<double>(within_layer(work_of(kernel, "k.csv:2"), kernel, device).bytes.value);
  };
  constexpr double kRow = 3 * 4096 * 2, kCache = 20e6, kSaved = 1 - 0.8 / 1.5;
  EXPECT_EQ(moved(100), 100 * kRow) << "of no engine";
  kernel.notes = "median of 20 runs";
  EXPECT_EQ(moved(100), 100 * kRow) << "likewise";
  const auto of_engine = [&](const std::string& operation) {
    kernel.operation = operation;
    kernel.notes = operation + " of meta-llama/Llama-2-7b-hf tp=1";
  };
  of_engine("add");
  EXPECT_NEAR(moved(100), 100 * kRow * (1 - kSaved), 1);
  EXPECT_NEAR(moved(4096), 4096 * kRow - kCache * kSaved, 1);
  of_engine("input_layernorm");
  EXPECT_EQ(moved(1), moved(216));
  EXPECT_GT(moved(217), 1.5 * moved(216));
  EXPECT_NEAR(moved(2160), 2160 * kRow - kCache * (0.52 / 0.8 - 0.52 / 1.5), 1);
  of_engine("mlp_act");
  EXPECT_EQ(moved(100), 100 * kRow) << "bound by instructions";
}

TEST(RowStudy, BackwardKernelsOfEightBitsDoNotSkipWhatAWindowHides) {
  MeasuredKernel kernel;
  kernel.heads = 8;
  kernel.head_dim = 64;
  kernel.queries = kernel.keys = 4096;
  kernel.notes = "window=128";
  const auto flops = [&](const char* operation, const char* dtype) {
    kernel.operation = operation;
    kernel.dtype = dtype;
    return work_of(kernel, "k.csv:2").flops;
  };
  EXPECT_EQ(flops("attention_fwd(causal)", "fp8"), flops("attention_fwd(causal)", "bf16"));
  EXPECT_EQ(flops("attention_bwd(causal)", "fp8").value, 16 * flops("attention_bwd(causal)", "bf16").value);
}

TEST(Validate, CallsThatFollowEachOtherAreSustained) {
  const auto predicted = [](const std::string& notes) {
    const Validation validation = validate({parse_measurements(
        "gpu,op,dtype,m,n,k,time_us,notes\nB200,gemm,bf16xbf16->bf16,8192,8192,8192,900," + notes + "\n",
        "k.csv")});
    return *validation.rows.front().predicted;
  };
  EXPECT_GT(predicted("75 back-to-back calls"), 1.2 * predicted("one call"));
}

// Also where the error is of what was made of the row.
TEST(Validate, ReasonsSayWhatCannotBe) {
  const std::string row = ",1024,16,4096,50257,A100,8,8,8,1,1,1,32,512,bf16,none,0.05\n";
  std::string steps(kSteps);
  steps += "a-6,m,99999999" + row + "a-7,m,88888888" + row;
  const Validation validation = validate({parse_measurements(steps, "s.csv")});
  ASSERT_EQ(validation.unpredicted.size(), 2u);
  EXPECT_EQ(validation.unpredicted.at("layers: N is too large"), (std::vector<std::size_t>{5, 6}));
  EXPECT_EQ(validation.rows[6].unpredicted_detail, "layers: 88888888 is too large");
}

TEST(Validate, CollectivesAndKernelsAndPeaks) {
  const Validation validation =
      validate({parse_measurements(
                    "system,gpus,nodes,collective,bytes,time_us\nA100 one node,8,1,all_reduce,1048576,90\n"
                    "A100 one node,8,1,all_twist,1048576,90\n",
                    "c.csv"),
                parse_measurements("gpu,op,dtype,batch,m,n,k,heads,kv_heads,head_dim,seq_q,seq_kv,time_us\n"
                                   "A100,gemm,bf16xbf16->bf16,1,4096,4096,4096,,,,,,500\n"
                                   "A100,attention_bwd(causal),bf16,1,,,,32,8,128,4096,4096,900\n"
                                   "A100,gemm,fp8xfp8->bf16,1,4096,4096,4096,,,,,,500\n",
                                   "k.csv"),
                parse_measurements(
                    "model,layers,hidden,heads,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,"
                    "recompute,peak_GiB\nm,4,1024,16,A100,1,1,1,1,4,512,bf16,none,2\n",
                    "m.csv")});
  ASSERT_EQ(validation.totals.size(), 3u);
  EXPECT_EQ(validation.totals[0].kind, "collectives");
  EXPECT_EQ(validation.totals[0].errors.count, 1);
  EXPECT_EQ(validation.totals[1].errors.count, 2);
  EXPECT_EQ(validation.totals[2].errors.count, 1);
  EXPECT_EQ(validation.unpredicted.size(), 2u);
}

// What is reserved has fragments; so has all that nanotron wrote.
TEST(Validate, ReservedPeaksHaveFragments) {
  const std::string row = "m,4,1024,16,A100,1,1,1,1,4,512,bf16,none,2,";
  const Validation validation = validate({parse_measurements(
      "model,layers,hidden,heads,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,recompute,"
      "peak_GiB,measure,notes\n" +
          row + "allocated,plain pytorch\n" + row + "reserved,plain pytorch\n" + row + "plot,nanotron\n" +
          row + "reserved,nanotron\n",
      "m.csv")});
  const auto predicted = [&](std::size_t i) { return *validation.rows[i].predicted; };
  EXPECT_NEAR(predicted(1) / predicted(0), 1.04, 1e-6);
  EXPECT_EQ(predicted(2), predicted(3));
}

// The first stage has the embedding and more micro-batches in flight, the last one the head.
TEST(Validate, PeaksAreOfTheRankThatWroteThem) {
  const std::string row = "m,4,1024,16,131072,A100,2,1,2,1,4,2048,bf16,none,2,";
  const Validation validation = validate({parse_measurements(
      "model,layers,hidden,heads,vocab,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,recompute,"
      "peak_GiB,rank_scope,notes\n" +
          row + "one number per run,nanotron\n" + row + "last rank,PyTorch FSDP\n" + row +
          "one number per run,PyTorch FSDP\n",
      "m.csv")});
  const double first = *validation.rows[0].predicted, last = *validation.rows[1].predicted;
  EXPECT_LT(first, last);
  EXPECT_EQ(*validation.rows[2].predicted, last);
}

}  // namespace
}  // namespace armilla
