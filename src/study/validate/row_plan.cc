#include "study/validate/row_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "lower/pipeline_schedule.h"
#include "study/validate/row_model.h"

namespace armilla {
namespace {

DType precision_of(const std::string& text, const std::string& where) {
  if (const auto dtype = precision_named(text)) return *dtype;
  throw Error(where, fmt::format("unknown precision '{:.60}'", text), "for example bf16, fp16 or FP8");
}

// Replicas that share what FSDP divides, where the program that was run says so; 0: all. NVIDIA's benchmarks
// divide over 16 nodes, MaxText's from 64 nodes on, Paxml's 5 billion parameters over one (dgxc-benchmarking,
// maxtext/configure.sh and paxml/configure.sh: dcn_fsdp_parallelism and DCN_MESH_SHAPE).
std::int64_t fsdp_subgroup(const MeasuredPlan& row) {
  constexpr std::int64_t kNodes = 16, kFromNodes = 64;
  if (!names(row, "dgxc-benchmarking") || row.devices_per_node <= 0) return 0;
  const std::int64_t nodes = row.devices / row.devices_per_node;
  if (names(row, "paxml")) return row.devices_per_node * (names(row, "readme_5b") ? 1 : kNodes);
  return names(row, "maxtext") && nodes >= kFromNodes ? row.devices_per_node * kNodes : 0;
}

// In lower case, "fsdp2" for "FSDP 2" and "fsdp_v2".
std::string spelled_zero(const MeasuredPlan& row) {
  static const std::regex kSecond(R"(\bfsdp[ _-]*v?2\b)");
  return std::regex_replace(lower_case(row.zero), kSecond, "fsdp2");
}

void shard(const MeasuredPlan& row, PlanRequest& request, const std::string& where) {
  Plan& plan = request.plan;
  const std::string zero = spelled_zero(row);
  constexpr std::array<std::string_view, 9> kNone = {"",   "-",   "n/a",   "na", "none",
                                                     "no", "off", "false", "ddp"};
  if (std::ranges::find(kNone, zero) != kNone.end()) return;
  const std::int64_t replicas = request.data.value_or(1);
  static const std::regex kStage(R"((?:zero)?[ _-]*(?:stage)?[ _-]*([0-3])(?:$|[^\w+.].*)|fsdp2?\b.*)");
  std::smatch stage;
  if (!std::regex_match(zero, stage, kStage))
    throw Error(where, fmt::format("unknown ZeRO stage '{:.60}'", row.zero), "expected 0 to 3 or fsdp");
  plan.zero_stage = stage[1].matched ? stage[1].str().front() - '0' : 3;
  std::int64_t subgroup = number_after(zero, "within ");
  if (subgroup == 0 && !stage[1].matched) subgroup = fsdp_subgroup(row);
  if (zero.find("within slice") != std::string::npos) subgroup = row.devices_per_node;
  if (subgroup == 0 || subgroup >= replicas) return;
  plan.hybrid_shard = subgroup;
}

// Stages by the cost of the matrices in their blocks, each up to the block that reaches its part of the
// whole, as nanotron cuts (its models' get_block_compute_costs; runs print the parameters of the first stage,
// which ends where the part is met exactly: 10 of 16 layers of two stages). Blocks are the embedding, the
// layers and the head.
std::vector<std::int64_t> stages_by_cost(const MeasuredPlan& row, std::int64_t layers) {
  const std::int64_t layer = 4 * row.hidden * row.hidden + 3 * row.feed_forward * row.hidden;
  const std::int64_t head = row.vocabulary * row.hidden;
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(row.pipeline));
  std::int64_t passed = 0;
  std::size_t stage = 0;
  for (std::int64_t block = 0; block < layers + 2; ++block) {
    passed += block == 0 ? 0 : block <= layers ? layer : head;
    ++blocks[stage];
    const std::int64_t part = static_cast<std::int64_t>(stage) + 1;
    const bool is_full = passed * row.pipeline >= part * (layers * layer + head);
    if (is_full && stage + 1 < blocks.size()) ++stage;
  }
  // It leaves the last stages without layers where the head is dear; here each has a block at least.
  for (std::size_t late = blocks.size(); --late > 0;) {
    for (std::size_t early = late; blocks[late] == 0 && early-- > 0;) {
      if (blocks[early] <= (early == 0 ? 2 : 1)) continue;
      --blocks[early];
      ++blocks[late];
    }
  }
  return blocks;
}

// Megatron cuts evenly or not at all. Where the layers alone do not divide, its recipes count the embedding
// and the loss as layers, too (account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split;
// Qwen3's 94 layers on 32, 24 or 48 stages). Its tests of uneven pipelines, which say so by name, have two
// layers on the first and on the last stage (decoder_first_pipeline_num_layers and its like).
std::vector<std::int64_t> stages_with_ends(const MeasuredPlan& row, std::int64_t chunks,
                                           std::int64_t layers) {
  const std::int64_t stages = row.pipeline * chunks;
  if (names(row, "uneven_pipeline") && stages > 2 && (layers - 4) % (stages - 2) == 0) {
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(stages), (layers - 4) / (stages - 2));
    blocks.front() = blocks.back() = 3;
    return blocks;
  }
  if (!is_megatron(row) || stages <= 1 || layers % stages == 0 || (layers + 2) % stages != 0) return {};
  return std::vector<std::int64_t>(static_cast<std::size_t>(stages), (layers + 2) / stages);
}

// MaxText's custom remat, and its policies that offload, keep some named tensors of a block and make the rest
// again.
bool keeps_by_name(const MeasuredPlan& row) {
  const bool is_named = names(row, "remat custom") || (names(row, "remat policy") && names(row, "offload"));
  return is_named && lower_case(row.recompute).starts_with("selective");
}

// What is made again where queries, keys and values are kept: the core of attention, unless its result is,
// too (`context`, which the recipes for TPU7x keep on the device), and the MLP. The projection of the result,
// which some keep and some do not, is taken as kept.
Parts recomputed_by_name(const MeasuredPlan& row) {
  if (!keeps_by_name(row)) return {};
  if (names(row, "kept on device")) return {Part::mlp, Part::moe, Part::layernorm};
  if (names(row, "q, k, v")) return {Part::core_attn, Part::mlp, Part::moe, Part::layernorm};
  return {};
}

// Of a block of whose tensors hardly any but its input is kept, all is made again.
Recompute recompute_of(const MeasuredPlan& row, const std::string& where) {
  const std::string text = lower_case(row.recompute);
  if (keeps_by_name(row)) return recomputed_by_name(row).empty() ? Recompute::full : Recompute::selective;
  if (text.starts_with("full")) return Recompute::full;
  // torchtitan's is by operator in the configurations that its benchmarks ran.
  if (text.starts_with("selective") && names(row, "torchtitan")) return Recompute::operators;
  if (text.starts_with("selective")) return Recompute::selective;
  // As others call it, and as Megatron-LM's methods of full recomputation are called.
  constexpr std::array<std::string_view, 6> kFull = {"yes", "true", "1", "on", "uniform", "checkpointing"};
  if (std::ranges::find(kFull, text) != kFull.end()) return Recompute::full;
  if (text == "operators") return Recompute::operators;
  constexpr std::array<std::string_view, 6> kNone = {"", "none", "no", "false", "0", "off"};
  if (std::ranges::find(kNone, text) != kNone.end()) return Recompute::none;
  throw Error(where, fmt::format("unknown recompute '{:.60}'", row.recompute),
              "expected none, selective, operators or full");
}

bool is_sequence_parallel(const MeasuredPlan& row, const std::string& where) {
  const std::string text = lower_case(row.sequence_parallel);
  constexpr std::array<std::string_view, 4> kOn = {"1", "true", "yes", "on"};
  constexpr std::array<std::string_view, 6> kOff = {"", "0", "false", "no", "off", "none"};
  const bool on = std::ranges::find(kOn, text) != kOn.end();
  if (!on && std::ranges::find(kOff, text) == kOff.end())
    throw Error(where, fmt::format("unknown sequence_parallel '{:.60}'", row.sequence_parallel),
                "expected 0 or 1");
  return on && row.tensor > 1;
}

// The column is a text that may name more than a schedule ("1f1b (DeepSpeed)", "fsdp+tp"). Interleaving is
// told by chunks, and 1F1B is what others than these run.
std::string schedule_of_row(const MeasuredPlan& row, const std::string& where) {
  const std::string text = lower_case(row.schedule);
  if (row.pipeline == 1 || text.empty()) return {};
  const PipelineScheduleInfo& usual = schedule_of(Plan());
  // The longest: a name may begin like another.
  std::string_view named;
  for (const PipelineScheduleInfo& info : pipeline_schedules()) {
    if (info.name == usual.name || info.name == usual.over_chunks) continue;
    if (info.name.size() > named.size() && text.find(info.name) != std::string::npos) named = info.name;
  }
  if (!named.empty()) return std::string(named);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSynonyms = {
      {{"afab", "gpipe"}, {"all-forward-all-backward", "gpipe"}, {"zbh1", "zb-h1"}, {"zbv", "zb-v"}}};
  for (const auto& [name, schedule] : kSynonyms) {
    if (text.find(name) != std::string::npos) return std::string(schedule);
  }
  const std::array<std::string_view, 4> usual_words = {usual.name, "interleav", "none", "fsdp"};
  const bool is_usual = std::ranges::any_of(
      usual_words, [&](std::string_view name) { return text.find(name) != std::string::npos; });
  if (!is_usual)
    throw Error(where, fmt::format("schedule '{:.60}' is not known", row.schedule),
                "for example 1f1b, 1f1b-interleaved, gpipe or none");
  return {};
}

// "selective(norm,act)": the parts in brackets, by the words of Megatron-MoE-ModelZoo's tables or by
// Megatron's own (recompute_modules), which it also has as an argument.
Parts modules_of(const MeasuredPlan& row, const std::string& where) {
  constexpr std::array<std::pair<std::string_view, Part>, 12> kWords = {
      {{"norm", Part::layernorm},
       {"layernorm", Part::layernorm},
       {"act", Part::moe_act},
       {"moe_act", Part::moe_act},
       {"up_proj", Part::mla_up_proj},
       {"mla_up_proj", Part::mla_up_proj},
       {"mlp", Part::mlp},
       {"attn", Part::core_attn},
       {"core_attn", Part::core_attn},
       {"core attention", Part::core_attn},
       {"moe", Part::moe},
       {"shared_experts", Part::shared_experts}}};
  Parts parts;
  static const std::regex kParts(R"((?:selective *\(|\[)(.*)[\])])");
  // As an argument, by blanks: "[layernorm mla_up_proj]".
  std::string argued = argument(row, "recompute-modules");
  std::ranges::replace(argued, ' ', ',');
  const std::string& column = argued.empty() ? row.recompute : argued;
  const std::string text = lower_case(column);
  std::smatch listed;
  if (!std::regex_match(text, listed, kParts)) return parts;
  for (std::string_view rest = std::string_view(text).substr(static_cast<std::size_t>(listed.position(1)),
                                                             static_cast<std::size_t>(listed.length(1)));
       !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(",;+"), rest.size());
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const auto known = std::ranges::find(kWords, word, &std::pair<std::string_view, Part>::first);
    if (known == kWords.end())
      throw Error(where, fmt::format("unknown part '{:.60}' of recompute '{:.60}'", word, column),
                  "for example selective(core_attn,mlp)");
    parts.add(known->second);
  }
  return parts;
}

// MaxText sorts tokens (its sparse_matmul, with megablox or ragged products) unless it is told not to.
void set_sorted(const MeasuredPlan& row, Plan& plan) {
  const bool has_experts = names(row, "moe") || names(row, "sparse matmul");
  if (names(row, "maxtext") && has_experts && !names(row, "dense einsum"))
    plan.expert_dispatch = ExpertDispatch::sorted;
}

// MaxText without megablox: tokens go to experts of a fixed size by products with masks (its
// capacity_factor; "dense einsum"). Megatron-Bridge's token drop is a capacity of 1, padded
// (training/utils/moe_token_drop.py of v0.1.0).
void set_capacity(const MeasuredPlan& row, Plan& plan) {
  if (names(row, "megatron-bridge") && lower_case(row.model).find("tokendrop") != std::string::npos)
    plan.expert_capacity = 1;
  constexpr std::string_view kFactor = "capacity factor ";
  const std::string notes = lower_case(row.notes);
  const std::size_t at = notes.find(kFactor);
  if (at == std::string::npos) return;
  const std::string_view text = std::string_view(notes).substr(at + kFactor.size());
  const std::string number(text.substr(0, text.find_first_not_of("0123456789.")));
  plan.expert_capacity = number.empty() ? 0 : std::strtod(number.c_str(), nullptr);
  if (plan.expert_capacity > 0 && names(row, "dense einsum")) plan.expert_dispatch = ExpertDispatch::one_hot;
}

// Recipes set it to 1; Megatron-LM's own tests, which list their arguments, leave it where it is: at the
// degree of tensor parallelism (megatron/core/parallel_state.py), if they do not say. So do
// dgxc-benchmarking's, but for DeepSeek-V3's and, from v25.05 on, Grok's on H100 (column ETP of their README
// files; NeMo before had no such argument).
std::int64_t expert_tensor_of(const MeasuredPlan& row) {
  if (names(row, "dgxc-benchmarking")) {
    const bool is_first_grok = names(row, "@v24.") || (names(row, "@v25.0") && !names(row, "@v25.05"));
    const std::string model = lower_case(row.model), device = lower_case(row.device);
    const bool is_one = model.find("deepseek") != std::string::npos ||
                        (model.find("grok") != std::string::npos && !is_first_grok &&
                         device.find("h100") != std::string::npos);
    return is_one ? 1 : row.tensor;
  }
  if (argument(row, "num-experts").empty()) return 1;
  const std::int64_t told =
      number_from<std::int64_t>(argument(row, "expert-tensor-parallel-size")).value_or(0);
  return told > 0 ? told : row.tensor;
}

// What the frameworks' own code does. KempnerForge leaves the embedding whole, and in a pipeline the head,
// gathers the logits and compiles the model, not its loss, which stays in bf16 (tensor_parallel.py, loss.py,
// parallel.py);
// torchtitan compiled it from 2025 on (its train.py of 2024 has that commented out). Our own measurements
// with FSDP2 compile the blocks alone (tools/measure_device.py).
void set_loss(const MeasuredPlan& row, Plan& plan) {
  // Megatron's cross_entropy_loss_fusion has two (cross_entropy_fusion_impl): its own, compiled, and
  // Transformer Engine's. NeMo's models and Megatron-LM's example for Llama have the first, as have
  // Megatron-MoE-ModelZoo's but Qwen3, which has the second, as have Megatron-Bridge's benchmarks.
  const bool is_zoo = names(row, "moe-modelzoo");
  const bool fuses = lower_case(argument(row, "cross-entropy-loss-fusion")) == "true" || is_zoo ||
                     (is_megatron(row) && says(row, "nemo").value_or(false)) || names(row, "nemo/") ||
                     names(row, "examples/llama");
  const bool is_engines = names(row, "te fused ce") || names(row, "megatron-bridge") ||
                          argument(row, "cross-entropy-fusion-impl") == "te" ||
                          (is_zoo && lower_case(row.model).starts_with("qwen"));
  if (fuses) plan.loss = LossKernel::wide;
  if (is_engines) plan.loss = LossKernel::fused;
  if (names(row, "kempnerforge")) {
    plan.loss = LossKernel::narrow;
    plan.loss_parallel = false;
    plan.embedding_parallel = false;
    plan.head_parallel = row.pipeline == 1;
  }
  // FlashAttention's, one kernel each way (`fused_crossentropy` in modeling_mpt.py).
  if (names(row, "llm-foundry")) plan.loss = LossKernel::fused;
  // Its own cross entropy, also where one rank has all logits (_ShardedCrossEntropy).
  if (names(row, "nanotron")) plan.loss = LossKernel::in_place;
  const bool compiles_blocks_alone = names(row, "measure_device") && names(row, "fsdp2");
  if (compiles_blocks_alone || (names(row, "torchtitan") && names(row, "_2024")))
    plan.loss = LossKernel::wide;
}

// dgxc-benchmarking's tables of MaxText tell it in the text above them: 2 samples per device.
std::int64_t global_batch_of(const MeasuredPlan& row) {
  const bool is_told = row.global_batch > 0 || !names(row, "dgxc-benchmarking") || !names(row, "maxtext");
  return is_told ? row.global_batch : 2 * row.devices;
}

// MaxText counts samples per device; those that share a replica compute all of theirs together.
double micro_batch_of(const MeasuredPlan& row) {
  const double together = row.micro_batch * static_cast<double>(row.tensor * row.context);
  const bool fills = together * static_cast<double>(row.data) == static_cast<double>(row.global_batch);
  return names(row, "maxtext") && fills ? together : row.micro_batch;
}

}  // namespace

PlanRequest request_of(const MeasuredPlan& given, std::int64_t layers, const std::string& where) {
  MeasuredPlan row = given;
  row.global_batch = global_batch_of(row);
  row.micro_batch = micro_batch_of(row);
  if (row.global_batch == 0) throw Error(where, "the global batch is not known", "give global_batch");
  if (row.devices == 0) throw Error(where, "the number of GPUs is not known", "give gpus");
  PlanRequest request;
  request.where = request.ranks_where = where;
  request.ranks = row.devices;
  request.tensor = row.tensor;
  request.pipeline = row.pipeline;
  request.context = row.context;
  const std::int64_t model = row.tensor * row.pipeline * row.context;
  request.data =
      row.data > 0 ? row.data : std::max<std::int64_t>(1, row.devices / std::max<std::int64_t>(1, model));
  request.precision = precision_of(row.precision, where);
  request.global_batch = row.global_batch;
  // Not told: without a pipeline there is no reason to cut the batch.
  const double whole = row.pipeline == 1 ? static_cast<double>(row.global_batch / *request.data) : 1;
  request.micro_batch =
      std::max<std::int64_t>(1, std::llround(row.micro_batch > 0 ? row.micro_batch : whole));
  if (row.micro_batch > 0 && static_cast<double>(*request.micro_batch) != row.micro_batch)
    throw Error(where, fmt::format("a micro-batch of {} samples", row.micro_batch), "expected whole samples");
  Plan& plan = request.plan;
  plan.expert = row.expert;
  if (row.expert > 1) plan.expert_tensor = expert_tensor_of(row);
  plan.sequence_parallel = is_sequence_parallel(row, where);
  const std::string schedule = lower_case(row.schedule);
  plan.overlap_tensor = schedule.find("async") != std::string::npos && row.tensor > 1;
  plan.virtual_stages = std::max<std::int64_t>(1, row.virtual_stages);
  if (row.virtual_stages == 0 && names(row, "interleav") && row.pipeline > 1) {
    constexpr std::int64_t kMostChunks = 8;  // 92 layers on 4 stages are hardly in 23
    const std::int64_t of_stage = layers / row.pipeline;
    for (std::int64_t chunks = 2; chunks <= std::min(of_stage, kMostChunks); ++chunks) {
      if (of_stage % chunks != 0) continue;
      plan.virtual_stages = chunks;
      break;
    }
  }
  if (row.pipeline == 1) plan.virtual_stages = 1;
  plan.stage_blocks = stages_with_ends(row, plan.virtual_stages, layers);
  plan.recompute = recompute_of(row, where);
  if (const std::string named = schedule_of_row(row, where); !named.empty()) plan.schedule = named;
  // Its tables in PURE precision are those of PyTorch 1.13, before 2.1 (sweep.sh in their history).
  if (names(row, "llm-foundry") && names(row, "mp_mode=pure")) plan.recompute_early_stop = false;
  // XLA drops what is made again and not read.
  if (names(row, "maxtext") || names(row, "paxml")) plan.recompute_early_stop = true;
  if (const Parts modules = modules_of(row, where); !modules.empty()) plan.recompute_modules = modules;
  if (const Parts modules = recomputed_by_name(row); !modules.empty()) plan.recompute_modules = modules;
  // Of all modules that keep much of what they read (offload_modules), so that little stays.
  plan.offload_activations = lower_case(argument(row, "fine-grained-activation-offloading")) == "true";
  set_sorted(row, plan);
  set_capacity(row, plan);
  if (is_plain_pytorch(row)) plan.framework = Framework::pytorch;
  // Our own are of a release with a kernel for RMSNorm (_fused_rms_norm).
  if (names(row, "measure_device") && !names(row, "compile")) plan.fused_elementwise = {Part::norm};
  // Its TritonRMSNorm and FlashRotaryEmbedding (models/llama.py); its tensor parallelism is Megatron's.
  if (names(row, "nanotron")) {
    plan.fused_elementwise = {Part::norm, Part::rotary};
    plan.tensor_method = TensorMethod::megatron;
    // Its script for several nodes has PyTorch check collectives (examples/mamba/run_multinode.sh); of the
    // measured steps only those with a pipeline show it (docs/validation.md).
    plan.check_collectives = row.pipeline > 1 && row.devices > row.devices_per_node;
  }
  // It wraps every linear layer for itself (tensor_parallel.py).
  if (names(row, "kempnerforge")) plan.tensor_method = TensorMethod::modules;
  // torchao's recipes have a scale of a tensor, or of rows.
  if (names(row, "torchtitan") && names(row, "rowwise")) plan.scaling = Scaling::rows;
  // FSDP2's way to accumulate: set_requires_gradient_sync is on for the last micro-batch alone.
  plan.no_sync = names(row, "fsdp2") || spelled_zero(row).starts_with("fsdp2");
  // torchtitan's fsdp_reshard_after_forward is "default": not with a pipeline (distributed/fsdp.py).
  if (names(row, "torchtitan") && row.pipeline > 1) plan.reshard = false;
  // A wider reduction is one of gradients, which are whole in its type until they are reduced.
  if (names(row, "bf16 params")) plan.state_dtype = DType::bf16;
  if (names(row, "fp32 reduce")) plan.gradient_dtype = DType::fp32;
  set_loss(row, plan);
  if (names(row, "nanotron") && row.pipeline > 1) plan.stage_blocks = stages_by_cost(row, layers);
  shard(row, request, where);
  return request;
}

}  // namespace armilla
