#include "study/validate/row_model.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "ir/model.h"
#include "read/read.h"
#include "study/validate.h"
#include "study/validate/validate_testing.h"

namespace armilla {
namespace {

TEST(RowModel, AttentionIsThatOfTheFramework) {
  MeasuredPlan row = small_row();
  EXPECT_EQ(model_of(row, "x").text.find("attention:"), std::string::npos);
  row.notes = "PyTorch FSDP";
  EXPECT_NE(model_of(row, "x").text.find("attention: flash-2\n"), std::string::npos);
  row.notes = "KempnerForge; PyTorch FSDP";
  EXPECT_EQ(model_of(row, "x").text.find("attention:"), std::string::npos);
  row.notes = "llm-foundry; PyTorch FSDP";
  EXPECT_NE(model_of(row, "x").text.find("attention: flash-triton\n"), std::string::npos);
  EXPECT_NE(model_of(row, "x").text.find("dropout: false\n"), std::string::npos);
  row.notes = "InternEvo";
  EXPECT_NE(model_of(row, "x").text.find("attention: flash-triton\n"), std::string::npos);
  EXPECT_EQ(model_of(row, "x").text.find("dropout:"), std::string::npos);
}

TEST(RowModel, MegatronsOwnLayersHaveUnfusedAttention) {
  MeasuredPlan row = small_row();
  constexpr const char* kUnfused = "attention: unfused\n";
  row.notes = "Megatron-LM functional test; transformer-impl=local; deterministic-mode=True";
  EXPECT_NE(model_of(row, "x").text.find(kUnfused), std::string::npos);
  row.notes = "Megatron-LM functional test; transformer-impl=local; attention-backend=flash; x";
  EXPECT_EQ(model_of(row, "x").text.find(kUnfused), std::string::npos);
  row.notes = "Megatron-LM functional test; transformer-impl=transformer_engine; x";
  EXPECT_EQ(model_of(row, "x").text.find(kUnfused), std::string::npos);
}

TEST(RowModel, HeadsHaveTheSizeOfTheNotes) {
  MeasuredPlan row = small_row();
  row.layers = 32;
  row.hidden = 10240;
  row.heads = row.kv_heads = 32;
  row.feed_forward = row.vocabulary = 32768;
  row.parameters = 32.5e9;
  row.notes = "head_dim 256, tied logits";
  const ModelSource source = model_of(row, "x");
  EXPECT_NE(source.text.find("head_dim: 256"), std::string::npos);
  row.notes = "head_dim 18446744073709551680";  // of no model
  EXPECT_EQ(model_of(row, "x").text.find("head_dim"), std::string::npos);
  EXPECT_NEAR(static_cast<double>(totals(read_model(source, 1)).parameters) / row.parameters, 1, 0.01);
}

// Llama 3 8B and GPT-3 175B by their numbers alone.
TEST(RowModel, ParametersTellTheKindOfMlp) {
  MeasuredPlan row = small_row();
  row.layers = 32;
  row.hidden = 4096;
  row.heads = 32;
  row.kv_heads = 8;
  row.feed_forward = 14336;
  row.vocabulary = 128256;
  row.parameters = 8.03e9;
  EXPECT_NE(model_of(row, "x").text.find("family: llama"), std::string::npos);
  row = small_row();
  row.layers = 96;
  row.hidden = 12288;
  row.heads = row.kv_heads = 96;
  row.feed_forward = 49152;
  row.vocabulary = 51200;
  row.parameters = 175e9;
  const std::string text = model_of(row, "x").text;
  EXPECT_NE(text.find("family: gpt"), std::string::npos);
  EXPECT_NE(text.find("tied_embeddings: true"), std::string::npos);
}

TEST(RowModel, NamesOfTheZoo) {
  MeasuredPlan row = small_row();
  row.layers = row.hidden = row.heads = row.feed_forward = 0;
  for (const auto& [given, name] : {std::pair("Llama-3.1-70B", "llama3-70b"),
                                    {"Llama 3.3 70B", "llama3-70b"},
                                    {"Llama-3.2-3B", "llama3.2-3b"},
                                    {"Mixtral-8x7B-v0.1", "mixtral-8x7b"}}) {
    row.model = given;
    EXPECT_EQ(model_of(row, "x").name, name);
  }
  row.model = "ResNet50";
  EXPECT_EQ(error_of([&] { model_of(row, "x"); }),
            "x: model 'ResNet50' of the zoo is a graph of operators\n"
            "  hint: rows are of models by description: armilla run predicts this one");
}

TEST(RowModel, ExpertsComeFromTheZoo) {
  MeasuredPlan row = small_row();
  row.model = "Qwen3_235B_a22B (tokendrop)";
  row.hidden = row.heads = 0;
  row.layers = 8;
  const ModelSource source = model_of(row, "x");
  EXPECT_EQ(source.name, "qwen3-235b-a22b");
  EXPECT_EQ(source.layers, 8);
  EXPECT_TRUE(source.text.empty());
  row.model = "nobody's";
  row.hidden = 0;
  EXPECT_EQ(
      error_of([&] { model_of(row, "x.csv:7"); }),
      "x.csv:7: model 'nobody's' is neither described nor known\n  hint: give layers, hidden, heads and "
      "seq_len, or a name of the zoo (armilla list models)");
}

TEST(RowModel, AdaptersAreToldByTheTable) {
  const auto rank_of = [](const std::string& table) {
    const MeasurementFile file = parse_measurements(
        "model,layers,hidden,heads,gpu,gpus,tp,pp,micro_batch,global_batch,seq_len,precision,step_time_s,"
        "table_or_figure\nm,4,1024,16,A100,1,1,1,1,4,512,bf16,1," +
            table + "\n",
        "t.csv");
    return model_of(std::get<MeasuredStep>(file.rows.front().what).plan, "t.csv:2").lora_rank;
  };
  EXPECT_EQ(rank_of("LoRA Performance"), 16);
  EXPECT_EQ(rank_of("Pre-Training Performance"), 0);
  EXPECT_EQ(rank_of(""), 0);
}

TEST(RowModel, WhatNotesDenyIsNotNamed) {
  const auto named = [](const std::string& notes, std::string_view setting) {
    MeasuredPlan row;
    row.notes = notes;
    return says(row, setting);
  };
  for (const auto& [notes, setting] : {std::pair{"without CUDA graphs", "cuda graph"},
                                       {"eager, no torch.compile", "compile"},
                                       {"torch.compile off; fused AdamW", "compile"},
                                       {"CUDA graphs disabled", "cuda graph"},
                                       {"DeepSpeed not used", "deepspeed"},
                                       {"full fine-tuning (no LoRA)", "lora"}})
    EXPECT_EQ(named(notes, setting), false) << notes;
  for (const auto& [notes, setting] : {std::pair{"CUDA graphs", "cuda graph"},
                                       {"no dropout, torch.compile", "compile"},
                                       {"compiled with Triton", "compile"},
                                       {"LoRA of rank 16", "lora"}})
    EXPECT_EQ(named(notes, setting), true) << notes;
  EXPECT_EQ(named("uncompiled", "compile"), std::nullopt);
}

TEST(RowModel, NamesAreReadWithTheirDots) {
  for (const auto& [name, known] : {std::pair{"OPT-13B", "opt-13b"},
                                    {"opt13b", "opt-13b"},
                                    {"Qwen2_5-7B", "qwen2.5-7b"},
                                    {"qwen2.5 7b chat", "qwen2.5-7b"},
                                    {"LLAMA38B", "llama3-8b"}})
    EXPECT_TRUE(begins_with_name(name, known)) << name;
  for (const auto& [name, known] :
       {std::pair{"OPT-1.3B", "opt-13b"}, {"Megatron 75B", "megatron-7.5b"}, {"opt", "opt-13b"}})
    EXPECT_FALSE(begins_with_name(name, known)) << name;
}

TEST(RowModel, ColumnsMakeAsManyParametersAsTheySay) {
  MeasuredPlan row = small_row();
  row.parameters = 1.1e8;
  EXPECT_EQ(error_of([&] { model_of(row, "x.csv:7"); }), "no error");
  row.parameters = 1.7e9;
  EXPECT_EQ(
      error_of([&] { model_of(row, "x.csv:7"); }),
      "x.csv:7: layers, hidden and the like make 0.17 billion parameters, params_B is 1.7\n  hint: models "
      "with experts must be in the zoo (armilla list models)");
}

// What they do not list has the defaults of MLATransformerConfig.
TEST(RowModel, MegatronsArgumentsDescribeLatentAttentionAndExperts) {
  MeasuredPlan row = small_row();
  row.notes =
      "Megatron-LM functional test; multi-latent-attention=True; kv-lora-rank=64; mtp-num-layers=1; "
      "position-embedding-type=rope; num-experts=8; moe-router-topk=2; moe-ffn-hidden-size=256; "
      "moe-shared-expert-intermediate-size=512; moe-layer-freq=([0]*3+[1]*5); "
      "make-vocab-size-divisible-by=64";
  row.vocabulary = 1000;
  row.tensor = 2;
  const ModelSource source = model_of(row, "x");
  EXPECT_EQ(source.lora_rank, 0) << "latent attention's ranks are no adapters";
  for (const char* line :
       {"latent_attention: {query_rank: 512, key_value_rank: 64, nope_head_dim: 128, rope_head_dim: 64, "
        "value_head_dim: 128}\n",
        "dropout: false\n", "positions: rotary\n", "multi_token_prediction: 1\n",
        "experts: {count: 8, active: 2, feed_forward: 256, shared_feed_forward: 512, dense_first: 3}\n",
        "padded_vocabulary: 1024\n"})
    EXPECT_NE(source.text.find(line), std::string::npos) << source.text;
  EXPECT_EQ(source.text.find("kv_heads"), std::string::npos);
  row.parameters = 17.69e9;
  row.notes = "16 experts top-2 on all layers, FSDP=8";
  EXPECT_NE(model_of(row, "x").text.find("experts: {count: 16, active: 2, feed_forward: 4096,"),
            std::string::npos);
  row.parameters = 0;
  row.notes = "Megatron-LM functional test; kv-channels=128";
  EXPECT_NE(model_of(row, "x").text.find("head_dim: 128\n"), std::string::npos);
}

TEST(RowModel, MegatronsTestsNameModelsBehindAColon) {
  MeasuredPlan row = small_row();
  row.layers = 52;
  row.hidden = row.heads = 0;
  row.model = "nemotron:nemotron3_5_lightning_nightly_tp1_pp1_cp1_ep8";
  row.notes = "Megatron-LM functional test; num-experts=128";
  EXPECT_EQ(model_of(row, "x").name, "nemotron-3.5-lightning");
}

}  // namespace
}  // namespace armilla
