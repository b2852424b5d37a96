#include "study/validate/row_recipe.h"

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

#include "base/text.h"
#include "study/validate/row_model.h"

namespace armilla {
namespace {

// Of a NeMo container, 260600 for "26.06" and 260201 for "26.02.01"; 0: the row names none.
int release_of(const MeasuredPlan& row) {
  constexpr int kOfMonth = 100;
  static const std::regex kContainer(R"((\d\d)\.(\d\d)(?:\.(\d\d))?\S* nemo container)");
  const std::string notes = lower_case(row.notes);
  std::smatch release;
  if (!std::regex_search(notes, release, kContainer)) return 0;
  const int patch = release[3].matched ? std::stoi(release[3]) : 0;
  return (std::stoi(release[1]) * kOfMonth + std::stoi(release[2])) * kOfMonth + patch;
}

constexpr int kLast = 999999, kAfterFirst = 251100;

// What the recipes of a model on a device turn on, in these releases. Names are in lower case; what is left
// empty is any. Several rows may be of one measurement.
struct Recipe {
  std::string_view model = {};   // that the row's begins with
  std::string_view device = {};  // that the row's name of it has
  int first = 0, last = kLast;
  std::string_view precision = {};  // as of Named
  std::int64_t stages = 0;          // of the pipeline; 0: any
  bool over_chunks = false;         // with several model chunks per rank alone
  bool overlaps = false;            // moe_a2a_overlap
  bool is_graph = false;            // cuda_graph_impl full_iteration, with fused experts
  bool fp8_attention = false;       // fp8_dot_product_attention
  // moe_flex_dispatcher_backend, DeepEP or HybridEP, which send a token once to every rank with
  // experts of it.
  bool once_per_rank = false;
};
constexpr int kWholeGraphs = 260600;
constexpr std::array kRecipes = {
    Recipe{.model = "qwen3",
           .device = "gb",
           .first = kWholeGraphs,
           .precision = "mx",
           .overlaps = true,
           .is_graph = true},
    Recipe{.model = "deepseekv3",
           .device = "gb",
           .first = kWholeGraphs,
           .precision = "mx",
           .overlaps = true,
           .is_graph = true},
    Recipe{.model = "gpt oss",
           .device = "gb",
           .first = kWholeGraphs,
           .precision = "mx",
           .overlaps = true,
           .is_graph = true},
    Recipe{.model = "gpt oss", .device = "gb200", .first = 260400, .precision = "bf16", .overlaps = true},
    Recipe{.model = "qwen3 30b",
           .device = "b300",
           .first = kWholeGraphs,
           .precision = "mx",
           .overlaps = true,
           .is_graph = true},
    Recipe{.model = "qwen3", .first = kWholeGraphs, .precision = "mx", .fp8_attention = true},
    Recipe{.model = "deepseekv3",
           .device = "gb300",
           .first = kWholeGraphs,
           .precision = "mx",
           .fp8_attention = true},
    Recipe{
        .model = "gpt oss", .device = "gb", .first = kWholeGraphs, .precision = "mx", .fp8_attention = true},
    Recipe{.model = "qwen3", .device = "h100", .first = 251100, .over_chunks = true, .overlaps = true},
    Recipe{.model = "qwen3",
           .device = "b200",
           .first = 251100,
           .last = 251199,
           .over_chunks = true,
           .overlaps = true},
    Recipe{.model = "deepseekv3",
           .device = "b200",
           .first = 260401,
           .stages = 8,
           .overlaps = true,
           .once_per_rank = true},
    Recipe{.model = "deepseekv3", .device = "h100", .last = 251199, .overlaps = true},
    Recipe{.model = "qwen3", .device = "gb", .first = 251100, .once_per_rank = true},
    Recipe{.model = "qwen3 30b", .device = "b300", .first = 260200, .once_per_rank = true},
    // The container of 26.02 had no DeepEP (docs/releases/known-issues.md).
    Recipe{.model = "qwen3 30b", .device = "h100", .first = 260201, .once_per_rank = true},
    Recipe{.model = "qwen3 30b", .device = "b200", .first = 260201, .once_per_rank = true},
    Recipe{.model = "qwen3 235b", .device = "b300", .first = 260401, .once_per_rank = true},
    Recipe{.model = "kimi k2", .device = "gb300", .first = 260201, .once_per_rank = true},
    Recipe{.model = "gpt oss", .device = "gb200", .first = 260400, .once_per_rank = true},
    Recipe{.model = "gpt oss",
           .device = "gb300",
           .first = kWholeGraphs,
           .precision = "mx",
           .once_per_rank = true},
    Recipe{.model = "gpt oss", .device = "b200", .first = 260400, .once_per_rank = true},
    Recipe{.model = "gpt oss", .device = "b300", .first = 260400, .once_per_rank = true},
    Recipe{.model = "nemotron 3", .first = 260200, .once_per_rank = true},
};

// Parts of layers that recipes name (workload_base_configs.py in the tags v0.1.0 for 25.09, v0.2.0 for 25.11,
// v0.3.0 for 26.02, v0.3.1 for 26.02.01, v0.4.0 for 26.04, v0.4.2 for 26.04.01, v0.5.0 for 26.06, v0.5.1 for
// 26.06.01, and perf_recipes in v0.6.0 for 26.08): of a table the first row that fits counts. `variant` is a
// word of the row's model. Precisions: bf16; cs, by current scaling ("FP8"); mx; nvfp4.
struct Named {
  std::string_view model = {}, device = {};
  int first = 0, last = kLast;
  std::string_view precision = {}, variant = {};
  std::int64_t stages = 0;  // of the pipeline; 0: any
  Parts modules = {};
};
// What they compute again in the backward pass (recompute_modules).
constexpr std::array kRecomputed = {
    Named{.model = "deepseekv3", .device = "h100", .modules = {Part::mla_up_proj, Part::mlp}},
    Named{.model = "deepseekv3",
          .device = "gb200",
          .last = 250999,
          .variant = "tokendrop",
          .modules = {Part::mla_up_proj}},
    Named{
        .model = "deepseekv3", .device = "gb200", .last = 250999, .modules = {Part::mla_up_proj, Part::mlp}},
    Named{.model = "deepseekv3", .device = "gb200", .last = 260299, .modules = {Part::mla_up_proj}},
    Named{.model = "deepseekv3", .device = "gb200", .precision = "bf16", .modules = {Part::mla_up_proj}},
    Named{.model = "deepseekv3",
          .device = "gb200",
          .first = kWholeGraphs,
          .precision = "mx",
          .modules = {Part::mla_up_proj}},
    Named{.model = "deepseekv3", .device = "gb200", .modules = {Part::mlp}},
    Named{.model = "deepseekv3", .device = "gb300", .last = 251199, .modules = {Part::moe_act}},
    Named{.model = "deepseekv3", .device = "gb300", .precision = "bf16", .modules = {Part::moe_act}},
    Named{.model = "deepseekv3", .device = "gb300", .first = kWholeGraphs, .precision = "mx"},
    Named{.model = "deepseekv3", .device = "gb300", .modules = {Part::mla_up_proj}},
    Named{.model = "deepseekv3",
          .device = "b300",
          .first = 260200,
          .last = 260299,
          .precision = "bf16",
          .modules = {Part::mla_up_proj, Part::moe_act, Part::layernorm}},
    Named{.model = "deepseekv3",
          .device = "b200",
          .first = 260401,
          .stages = 8,
          .modules = {Part::mla_up_proj, Part::mlp}},
    Named{.model = "deepseekv3",
          .device = "b200",
          .first = kWholeGraphs,
          .precision = "mx",
          .modules = {Part::mla_up_proj, Part::mlp}},
    Named{.model = "kimi k2", .device = "gb300", .first = 260201, .modules = {Part::mla_up_proj}},
    Named{.model = "deepseekv3",
          .device = "b200",
          .first = kWholeGraphs,
          .precision = "nvfp4",
          .modules = {Part::mla_up_proj, Part::layernorm, Part::moe_act}},
    Named{.model = "deepseekv3", .device = "b", .modules = {Part::mla_up_proj}},
    Named{.model = "gpt oss", .device = "gb300"},
    Named{.model = "gpt oss", .device = "b300"},
    Named{.model = "gpt oss", .device = "gb200", .first = kWholeGraphs, .precision = "mx"},
    Named{.model = "gpt oss", .modules = {Part::layernorm, Part::moe_act}},
    Named{.model = "qwen3"},
    Named{.model = "nemotron 3 nano",
          .device = "h100",
          .precision = "bf16",
          .modules = {Part::moe, Part::layernorm}},
    Named{.model = "nemotron 3 nano",
          .device = "h100",
          .last = 260699,
          .modules = {Part::moe, Part::layernorm, Part::core_attn, Part::moe_act}},
    Named{.model = "nemotron 3 nano", .device = "h100", .modules = {Part::layernorm}},
    Named{.model = "nemotron 3 nano"},
    Named{.model = "nemotron 3 super",
          .device = "b200",
          .precision = "bf16",
          .modules = {Part::moe_act, Part::moe, Part::layernorm, Part::core_attn}},
    Named{.model = "nemotron 3 super",
          .device = "b200",
          .precision = "mx",
          .modules = {Part::moe_act, Part::layernorm}},
    Named{.model = "nemotron 3 super", .device = "b300", .precision = "mx"},
    Named{.model = "nemotron 3 super", .device = "b300", .modules = {Part::moe_act, Part::layernorm}},
    Named{.model = "nemotron 3 super", .device = "b"},
    Named{.model = "nemotron 3 ultra", .modules = {Part::moe_act}},
    Named{.model = "nemotron 3 5 lightning",
          .device = "h100",
          .precision = "bf16",
          .modules = {Part::moe_act, Part::layernorm}},
    Named{.model = "nemotron 3 5 lightning"},
    Named{.model = "llama3", .device = "b"},
};

// What of a layer is a CUDA graph (cuda_graph_scope under cuda_graph_impl transformer_engine).
constexpr Parts kUpToDispatch = {Part::attn, Part::mamba, Part::moe_router, Part::moe_preprocess};
constexpr Parts kRouting = {Part::moe_router, Part::moe_preprocess};
constexpr std::array kGraphed = {
    // Layers of v0.1.0 (enable_cuda_graph, of experts where tokens are dropped alone).
    Named{.model = "qwen3",
          .device = "gb200",
          .last = 250999,
          .variant = "tokendrop",
          .modules = {Part::attn, Part::moe_layer}},
    Named{.model = "qwen3 30b",
          .device = "b200",
          .last = 250999,
          .variant = "tokendrop",
          .modules = {Part::attn, Part::moe_layer}},
    Named{.last = 250999},
    Named{.model = "deepseekv3", .device = "gb300", .last = 251199, .modules = kUpToDispatch},
    Named{.model = "deepseekv3", .device = "gb300", .precision = "bf16", .modules = kUpToDispatch},
    Named{.model = "deepseekv3", .device = "gb200", .last = 251199, .modules = kRouting},
    Named{.model = "deepseekv3", .device = "gb200", .modules = kUpToDispatch},
    Named{.model = "deepseekv3", .device = "b300", .first = 260401, .modules = kUpToDispatch},
    Named{.model = "deepseekv3",
          .device = "b200",
          .first = 260401,
          .precision = "mx",
          .modules = kUpToDispatch},
    Named{.model = "gpt oss 120b", .device = "gb300", .modules = kUpToDispatch},
    Named{.model = "gpt oss 120b", .device = "b300", .modules = kUpToDispatch},
    Named{.model = "kimi k2", .device = "gb200", .modules = kRouting},
    Named{.model = "qwen3 30b", .device = "h100", .precision = "bf16", .modules = kRouting},
    Named{.model = "qwen3 30b", .device = "gb300", .modules = kRouting},
    Named{.model = "qwen3 30b", .device = "gb200", .precision = "mx", .modules = kRouting},
    Named{.model = "qwen3 30b", .device = "gb200", .modules = kUpToDispatch},
    Named{.model = "qwen3 30b", .device = "b300", .modules = kRouting},
    Named{.model = "qwen3 30b", .device = "b200", .last = 260200, .modules = kRouting},
    Named{.model = "qwen3 30b", .device = "b200", .modules = kUpToDispatch},
    Named{.model = "qwen3 235b", .device = "gb300", .last = 251199, .modules = kRouting},
    Named{.model = "qwen3 235b", .device = "gb300", .last = 260200, .precision = "bf16", .modules = kRouting},
    Named{.model = "qwen3 235b", .device = "gb", .modules = kUpToDispatch},
    Named{.model = "nemotron 3 nano",
          .device = "h100",
          .precision = "bf16",
          .modules = {Part::attn, Part::mamba}},
    Named{.model = "nemotron 3 nano", .device = "h100", .modules = {Part::mamba}},
    Named{.model = "nemotron 3 nano", .modules = kUpToDispatch},
    Named{.model = "nemotron 3 super", .device = "b200", .precision = "mx"},
    Named{.model = "nemotron 3 super", .device = "b200", .last = 260600, .precision = "bf16"},
    Named{.model = "nemotron 3 super", .device = "b", .modules = kUpToDispatch},
    Named{.model = "nemotron 3 5 lightning", .device = "gb200", .modules = kUpToDispatch},
};

bool is_scaled_so(const MeasuredPlan& row, std::string_view precision) {
  const std::string text = lower_case(row.precision);
  const std::optional<DType> dtype = precision_named(text);
  if (precision == "bf16") return dtype == DType::bf16;
  if (precision == "nvfp4") return dtype == DType::fp4;
  // "FP8-CS (FP8-MX)": the first of two.
  const bool in_blocks = text.find("mx") != std::string::npos && text.find("cs") == std::string::npos;
  return dtype == DType::fp8 && in_blocks == (precision == "mx");
}

// "gb200" is no b200; "b" is a Blackwell of either kind.
bool is_device(const MeasuredPlan& row, std::string_view device) {
  const std::string text = lower_case(row.device);
  const std::size_t at = text.find(device);
  return at != std::string::npos && (device.size() <= 1 || at == 0 || text[at - 1] != 'g');
}

bool is_recipe(const MeasuredPlan& row) {
  return names(row, "megatron-bridge") && release_of(row) > 0;
}

// "FP8" is current scaling ("FP8-CS"; of "FP8-CS (FP8-MX)" the first counts), for DeepSeek-V3 on H100 blocks
// of 128 (fp8_sc of workload_base_configs.py), but not of 25.09, where these did not work
// (docs/releases/known-issues.md).
Scaling scaling_of(const MeasuredPlan& row) {
  const std::string text = lower_case(row.precision);
  const bool in_blocks = text.find("mx") != std::string::npos && text.find("cs") == std::string::npos;
  const bool is_subchannel =
      begins_with_name(row.model, "deepseekv3") && is_device(row, "h100") && release_of(row) >= kAfterFirst;
  return in_blocks || is_subchannel ? Scaling::block : Scaling::current;
}

bool is_of(const MeasuredPlan& row, const Recipe& recipe) {
  const int release = release_of(row);
  return is_device(row, recipe.device) && begins_with_name(row.model, recipe.model) &&
         release >= recipe.first && release <= recipe.last &&
         (recipe.precision.empty() || is_scaled_so(row, recipe.precision)) &&
         (recipe.stages == 0 || recipe.stages == row.pipeline) &&
         (!recipe.over_chunks || row.virtual_stages > 1);
}

// None: nobody knows.
template <std::size_t N>
const Named* named_by_recipe(const MeasuredPlan& row, const std::array<Named, N>& table) {
  if (!is_recipe(row)) return nullptr;
  const int release = release_of(row);
  const auto found = std::ranges::find_if(table, [&](const Named& recipe) {
    return begins_with_name(row.model, recipe.model) && is_device(row, recipe.device) &&
           release >= recipe.first && release <= recipe.last &&
           (recipe.precision.empty() || is_scaled_so(row, recipe.precision)) &&
           (recipe.stages == 0 || recipe.stages == row.pipeline) &&
           lower_case(row.model).find(recipe.variant) != std::string::npos;
  });
  return found == table.end() ? nullptr : &*found;
}
const Named* recomputed_by_recipe(const MeasuredPlan& row) {
  return row.recompute.empty() ? named_by_recipe(row, kRecomputed) : nullptr;
}

// Paxml's policies in dgxc-benchmarking (paxml_mod_configs.py) keep the results of products, of 5 billion
// parameters, or of some of them, of 175 billion. Transformer Engine's layers hide theirs from them: in bf16
// and in fp8 steps take as long as where all is computed again, which is 20 % longer than by the policy.
bool recomputes_for_paxml(const MeasuredPlan& row) {
  return names(row, "dgxc-benchmarking") && names(row, "paxml") && row.recompute.empty();
}

// What keeps bf16 under a narrower precision. Prediction layers: in four bits always (Megatron-Core,
// multi_token_prediction.py: "currently ignoring FP4 in MTP layers"), of Nemotron 3 in eight, too
// (keep_mtp_spec_in_bf16). Nemotron 3 Super in NVFP4: the last 14 layers, projections of attention and into
// the latent space (nemotron_3_llm_pretrain.py and te_quant.cfg of 26.04 to 26.08); gpt-oss 20B in NVFP4: the
// last four (get_gpt_oss_20b_precision_config).
void keep_wide(const MeasuredPlan& row, DType precision, Plan& plan) {
  if (!is_megatron(row)) return;
  const bool is_super = begins_with_name(row.model, "nemotron 3 super");
  if (precision == DType::fp4 || begins_with_name(row.model, "nemotron 3"))
    plan.wide_modules.add(Part::prediction);
  if (precision != DType::fp4 || !is_recipe(row)) return;
  constexpr std::int64_t kOfSuper = 14, kOfGptOss = 4;
  if (is_super) {
    plan.wide_last_layers = kOfSuper;
    plan.wide_modules.add(Part::attention);
    plan.wide_modules.add(Part::latent);
  } else if (begins_with_name(row.model, "gpt oss 20b")) {
    plan.wide_last_layers = kOfGptOss;
  }
}

// Whether a recipe of the row turns it on.
bool is_on(bool Recipe::*setting, const MeasuredPlan& row) {
  return is_recipe(row) && std::ranges::any_of(kRecipes, [&](const Recipe& recipe) {
           return recipe.*setting && is_of(row, recipe);
         });
}

}  // namespace

void follow_recipe(const MeasuredPlan& row, PlanRequest& request) {
  Plan& plan = request.plan;
  if (const Named* recomputed = recomputed_by_recipe(row)) {
    plan.recompute = recomputed->modules.empty() ? Recompute::none : Recompute::selective;
    if (!recomputed->modules.empty()) plan.recompute_modules = recomputed->modules;
    // cpu_offloading_num_layers: of 5 to 40 of 80 layers, here of all.
    plan.offload_activations = plan.zero_stage == 3 && begins_with_name(row.model, "llama3");
  }
  if (recomputes_for_paxml(row)) plan.recompute = Recompute::full;
  if (plan.expert <= 1) return;
  keep_wide(row, *request.precision, plan);
  if (is_recipe(row) && *request.precision == DType::fp8) plan.scaling = scaling_of(row);
  // Others say it in words.
  const auto either = [&](std::string_view one, std::string_view other) {
    const std::optional<bool> first = says(row, one), second = says(row, other);
    return first && second ? *first || *second : first ? first : second;
  };
  const std::optional<bool> says_overlap = either("a2a overlap", "all-to-all overlap");
  const std::optional<bool> says_backend = either("deepep", "hybridep");
  if (says_overlap.value_or(is_on(&Recipe::overlaps, row))) plan.schedule = "combined-1f1b";
  if (says_backend.value_or(is_on(&Recipe::once_per_rank, row))) {
    plan.expert_dispatch = ExpertDispatch::deduplicated;
  } else if (says_backend) {
    plan.expert_dispatch = ExpertDispatch::per_expert;
  }
  plan.fp8_attention = is_on(&Recipe::fp8_attention, row);
  if (is_on(&Recipe::is_graph, row)) {
    plan.host = Host::compiled;
    plan.issue_time.reset();
    plan.fused_experts = true;
  } else if (const Named* graphed = named_by_recipe(row, kGraphed)) {
    plan.cuda_graph_scope = graphed->modules;
  }
}

bool knows_recompute(const MeasuredPlan& row) {
  return !row.recompute.empty() || recomputed_by_recipe(row) != nullptr || recomputes_for_paxml(row);
}

}  // namespace armilla
