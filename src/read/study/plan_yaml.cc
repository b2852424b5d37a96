#include "read/study/plan_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/study/choice_yaml.h"

namespace armilla {
namespace {

// More stages than any model has blocks; keeps a list from growing with a typing mistake.
constexpr std::size_t kMostStages = 65536;

// What flags, papers and other tools call a key; keys of other sections come with theirs.
constexpr std::string_view kPlan = "plan.";
constexpr OtherName kOtherNames[] = {{"tp", "plan.tensor"},
                                     {"pp", "plan.pipeline"},
                                     {"dp", "plan.data"},
                                     {"cp", "plan.context"},
                                     {"ep", "plan.expert"},
                                     {"etp", "plan.expert_tensor"},
                                     {"vpp", "plan.virtual_stages"},
                                     {"tensor_parallel", "plan.tensor"},
                                     {"pipeline_parallel", "plan.pipeline"},
                                     {"data_parallel", "plan.data"},
                                     {"context_parallel", "plan.context"},
                                     {"expert_parallel", "plan.expert"},
                                     {"virtual_pipeline", "plan.virtual_stages"},
                                     {"gpus", "plan.ranks"},
                                     {"num_gpus", "plan.ranks"},
                                     {"devices", "plan.ranks"},
                                     {"world_size", "plan.ranks"},
                                     {"mbs", "plan.micro_batch"},
                                     {"gbs", "plan.global_batch"},
                                     {"global_batch_size", "plan.global_batch"},
                                     {"micro_batch_size", "plan.micro_batch"},
                                     {"batch_size", "plan.batch"},
                                     {"gradient_accumulation", "plan.micro_batches"},
                                     {"gradient_accumulation_steps", "plan.micro_batches"},
                                     {"dtype", "plan.precision"},
                                     {"zero_stage", "plan.zero"},
                                     {"rank_order", "plan.order"},
                                     {"activation_checkpointing", "plan.recompute"},
                                     {"recompute_granularity", "plan.recompute"},
                                     {"seq", "model.sequence"},
                                     {"sequence", "model.sequence"},
                                     {"seq_length", "model.sequence"},
                                     {"sequence_length", "model.sequence"},
                                     {"layers", "model.layers"},
                                     {"algorithm", "collectives.algorithms"},
                                     {"algorithms", "collectives.algorithms"},
                                     {"decomposition", "collectives.decomposition"},
                                     {"chunks", "collectives.chunks"},
                                     {"ranks", "plan.ranks"},
                                     {"tensor", "plan.tensor"},
                                     {"pipeline", "plan.pipeline"},
                                     {"data", "plan.data"},
                                     {"context", "plan.context"},
                                     {"expert", "plan.expert"},
                                     {"batch", "plan.batch"},
                                     {"global_batch", "plan.global_batch"},
                                     {"micro_batch", "plan.micro_batch"},
                                     {"micro_batches", "plan.micro_batches"},
                                     {"precision", "plan.precision"},
                                     {"optimizer", "plan.optimizer"},
                                     {"recompute", "plan.recompute"},
                                     {"schedule", "plan.schedule"},
                                     {"framework", "plan.framework"},
                                     {"zero", "plan.zero"}};

void set_given(const Config& config, std::string_view key, std::optional<std::int64_t>& value) {
  if (const auto given = config.find(key)) value = given->count(1, INT32_MAX);
}
void set_given(const Config& config, std::string_view key, std::int64_t& value, std::int64_t lowest = 1) {
  if (const auto given = config.find(key)) value = given->count(lowest, INT32_MAX);
}
void set_given(const Config& config, std::string_view key, bool& value) {
  if (const auto given = config.find(key)) value = given->boolean();
}
void set_bucket(const Config& config, std::string_view key, Bytes& value) {
  const auto given = config.find(key);
  if (!given) return;
  value = given->bytes();
  if (value.value < 1) throw Error(given->where(), "a gradient bucket must hold at least 1 byte");
}

// What other tools call a type.
constexpr std::pair<std::string_view, std::string_view> kSpelledOut[] = {
    {"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"},  {"float32", "fp32"},
    {"float", "fp32"},    {"float64", "fp64"}, {"float8", "fp8"}, {"tfloat32", "tf32"}};

DType read_floating(const Config& config) {
  for (const auto& [spelled, name] : kSpelledOut) {
    if (config.is_scalar() && config.text() == spelled) {
      throw Error(config.where(), fmt::format("unknown value '{}'", spelled),
                  fmt::format("did you mean '{}'?", name));
    }
  }
  std::vector<std::string_view> names;
  for (const std::string_view name : dtype_names()) {
    if (is_floating(*dtype_from_name(name))) names.push_back(name);
  }
  return *dtype_from_name(names[config.choice(names)]);
}
void set_given(const Config& config, std::string_view key, DType& value) {
  if (const auto given = config.find(key)) value = read_floating(*given);
}

void refuse_both(const Config& config, std::string_view key, std::string_view other, std::string_view hint) {
  const auto given = config.find(key);
  if (given && config.has(other))
    throw Error(given->where(), fmt::format("cannot be combined with plan.{}", other), std::string(hint));
}

void read_degrees(const Config& config, PlanRequest& request) {
  Plan& plan = request.plan;
  set_given(config, "ranks", request.ranks);
  if (const auto ranks = config.find("ranks")) request.ranks_where = ranks->where();
  set_given(config, "tensor", request.tensor);
  set_given(config, "pipeline", request.pipeline);
  set_given(config, "context", request.context);
  set_given(config, "data", request.data);
  set_given(config, "expert", plan.expert);
  set_given(config, "expert_tensor", plan.expert_tensor);
  set_given(config, "virtual_stages", plan.virtual_stages);
}

void read_batch(const Config& config, PlanRequest& request) {
  set_given(config, "batch", request.batch);
  // Of all ranks together, so it may pass what one of them can take.
  if (const auto global = config.find("global_batch")) request.global_batch = global->count(1);
  set_given(config, "micro_batch", request.micro_batch);
  set_given(config, "micro_batches", request.micro_batches);
  refuse_both(config, "global_batch", "batch", "give one: of all ranks, or of one");
}

void read_stage_blocks(const Config& config, PlanRequest& request) {
  const auto given = config.find("stage_blocks");
  if (!given) return;
  if (given->is_scalar() && (given->text() == "balanced" || given->text() == "even")) {
    request.balance_stages = given->text() == "balanced";
    return;
  }
  if (!given->is_list())
    throw Error(given->where(), "expected 'even', 'balanced' or a list with the blocks of every stage",
                "for example [11, 12, 12, 11]");
  const std::vector<Config> items = given->items();
  if (items.empty() || items.size() > kMostStages)
    throw Error(given->where(), fmt::format("a list of {} stages", items.size()),
                "give one number for every stage");
  for (const Config& item : items) request.plan.stage_blocks.push_back(item.count(0, INT32_MAX));
}

void read_pipeline(const Config& config, PlanRequest& request) {
  Plan& plan = request.plan;
  if (const auto schedule = config.find("schedule")) plan.schedule = schedule->text();
  read_stage_blocks(config, request);
  set_given(config, "overlap_pipeline", plan.overlap_pipeline);
  set_given(config, "scatter_gather", plan.scatter_gather);
}

void read_tensor_and_experts(const Config& config, Plan& plan) {
  set_given(config, "sequence_parallel", plan.sequence_parallel);
  if (const auto method = config.find("tensor_method")) {
    plan.tensor_method = read_choice(*method, {TensorMethod::automatic, TensorMethod::megatron,
                                               TensorMethod::dtensor, TensorMethod::modules});
  }
  set_given(config, "overlap_tensor", plan.overlap_tensor);
  set_given(config, "overlap_tensor_gradients", plan.overlap_tensor_gradients);
  if (const auto method = config.find("context_method"))
    plan.context_method = read_choice(*method, {ContextMethod::ring, ContextMethod::all_to_all});
  if (const auto load = config.find("expert_load"))
    plan.expert_load = read_choice(*load, {ExpertLoad::uniform, ExpertLoad::zipf, ExpertLoad::random});
  if (const auto skew = config.find("expert_skew")) {
    constexpr double kMost = 100;
    plan.expert_skew = parse_real(skew->text(), skew->where());
    if (!(plan.expert_skew >= 0 && plan.expert_skew <= kMost))
      throw Error(skew->where(), fmt::format("a skew of {}", plan.expert_skew),
                  fmt::format("expected 0 to {}", kMost));
  }
  if (const auto dispatch = config.find("expert_dispatch"))
    plan.expert_dispatch = read_choice(
        *dispatch, {ExpertDispatch::automatic, ExpertDispatch::per_expert, ExpertDispatch::deduplicated,
                    ExpertDispatch::one_hot, ExpertDispatch::sorted});
  if (const auto capacity = config.find("expert_capacity")) {
    constexpr double kMost = 1000;
    plan.expert_capacity = parse_real(capacity->text(), capacity->where());
    if (!(plan.expert_capacity >= 0 && plan.expert_capacity <= kMost))
      throw Error(capacity->where(), fmt::format("a capacity of {}", plan.expert_capacity),
                  fmt::format("expected rows relative to the mean, up to {}; 0: no limit", kMost));
  }
  set_given(config, "dispatch_type", plan.dispatch_dtype);
  if (const auto seed = config.find("seed")) plan.seed = static_cast<std::uint64_t>(seed->count(0));
}

void read_offload(const Config& config, Plan& plan) {
  const auto offload = config.find("offload");
  if (!offload) return;
  const std::vector<std::string_view> kinds = {"none", "optimizer", "activations"};
  const std::vector<Config> items = offload->is_list() ? offload->items() : std::vector{*offload};
  for (const Config& item : items) {
    const std::size_t kind = item.choice(kinds);
    if (kind == 0 && items.size() > 1) throw Error(item.where(), "'none' cannot be combined with others");
    plan.offload_optimizer |= kind == 1;
    plan.offload_activations |= kind == 2;
  }
}

void read_data(const Config& config, PlanRequest& request) {
  Plan& plan = request.plan;
  set_bucket(config, "bucket", plan.bucket);
  set_bucket(config, "first_bucket", plan.first_bucket);
  set_given(config, "overlap", plan.overlap);
  set_given(config, "overlap_parameters", plan.overlap_parameters);
  set_given(config, "no_sync", plan.no_sync);
  if (const auto zero = config.find("zero")) plan.zero_stage = static_cast<int>(zero->count(0, 3));
  if (const auto partition = config.find("zero_partition"))
    plan.zero_partition = read_choice(*partition, {ZeroPartition::elements, ZeroPartition::tensors});
  set_given(config, "reduce_scatter", plan.reduce_scatter);
  set_given(config, "prefetch", plan.prefetch);
  set_given(config, "reshard", plan.reshard);
  set_given(config, "hybrid_shard", plan.hybrid_shard, 0);
  if (const auto optimizer = config.find("optimizer"))
    request.optimizer = read_choice(*optimizer, {Optimizer::sgd, Optimizer::momentum, Optimizer::adam});
  read_offload(config, plan);
  set_given(config, "accumulation_fusion", plan.accumulation_fusion);
  set_given(config, "channels_last", plan.channels_last);
  set_given(config, "loss_parallel", plan.loss_parallel);
  set_given(config, "embedding_parallel", plan.embedding_parallel);
  set_given(config, "head_parallel", plan.head_parallel);
}

// One of `known`, a list of them, or none.
Parts read_parts(const Config& config, std::span<const Part> known) {
  std::vector<std::string_view> names;
  for (const Part part : known) names.push_back(name_of(part));
  names.emplace_back("none");
  Parts parts;
  const std::vector<Config> items = config.is_list() ? config.items() : std::vector{config};
  for (const Config& item : items) {
    const std::size_t choice = item.choice(names);
    if (choice == known.size()) {
      if (items.size() > 1) throw Error(item.where(), "'none' cannot be combined with other parts");
      break;
    }
    const Part part = known[choice];
    if (parts.has(part)) throw Error(item.where(), fmt::format("'{}' is named twice", name_of(part)));
    parts.add(part);
  }
  return parts;
}

void read_types(const Config& config, PlanRequest& request) {
  if (const auto precision = config.find("precision")) request.precision = read_floating(*precision);
  set_given(config, "weight_type", request.plan.weight_dtype);
  set_given(config, "gradient_type", request.plan.gradient_dtype);
  set_given(config, "parameter_type", request.plan.parameter_dtype);
  if (const auto scaling = config.find("scaling"))
    request.plan.scaling =
        read_choice(*scaling, {Scaling::delayed, Scaling::current, Scaling::block, Scaling::rows});
  set_given(config, "wide_first_layers", request.plan.wide_first_layers, 0);
  set_given(config, "wide_last_layers", request.plan.wide_last_layers, 0);
  if (const auto modules = config.find("wide_modules"))
    request.plan.wide_modules = read_parts(*modules, widenable_parts());
  set_given(config, "fp8_attention", request.plan.fp8_attention);
  // What optimizers keep their states in.
  const std::vector<std::string_view> states = {"fp32", "bf16", "fp16"};
  if (const auto state = config.find("state_type"))
    request.plan.state_dtype = *dtype_from_name(states[state->choice(states)]);
}

void read_host(const Config& config, Plan& plan) {
  if (const auto framework = config.find("framework"))
    plan.framework = read_choice(*framework, {Framework::megatron, Framework::pytorch});
  if (const auto host = config.find("host"))
    plan.host = read_choice(*host, {Host::automatic, Host::compiled, Host::eager});
  if (const auto loss = config.find("loss"))
    plan.loss = read_choice(*loss, {LossKernel::automatic, LossKernel::fused, LossKernel::wide,
                                    LossKernel::in_place, LossKernel::narrow});
  if (const auto fused = config.find("fused_elementwise"))
    plan.fused_elementwise = read_parts(*fused, fusable_parts());
  set_given(config, "fused_experts", plan.fused_experts);
  if (const auto issue = config.find("issue_time")) plan.issue_time = issue->time();
  if (const auto overhead = config.find("step_overhead")) plan.step_overhead = overhead->time();
  if (const auto scope = config.find("cuda_graph_scope"))
    plan.cuda_graph_scope = read_parts(*scope, graphable_parts());
  set_given(config, "check_collectives", plan.check_collectives);
}

// recompute_modules alone means recompute selective, and none recomputes nothing.
void read_recompute_modules(const Config& config, Plan& plan) {
  const auto modules = config.find("recompute_modules");
  if (!modules) return;
  if (modules->is_list() && modules->items().empty())
    throw Error(modules->where(), "an empty list", "plan.recompute none recomputes nothing");
  const Parts parts = read_parts(*modules, recomputable_parts());
  if (parts.empty() && plan.recompute == Recompute::none) return;
  if (parts.empty())
    throw Error(modules->where(),
                fmt::format("cannot be combined with recompute '{}'", name_of(plan.recompute)),
                "leave plan.recompute out: plan.recompute_modules alone says what is recomputed");
  if (config.has("recompute") && plan.recompute != Recompute::selective) {
    throw Error(modules->where(),
                fmt::format("cannot be combined with recompute '{}'", name_of(plan.recompute)),
                "leave plan.recompute out: plan.recompute_modules alone says what is recomputed");
  }
  if (config.has("recompute_blocks"))
    throw Error(modules->where(), "cannot be combined with plan.recompute_blocks",
                "blocks are recomputed whole, modules in every block");
  plan.recompute = Recompute::selective;
  plan.recompute_modules = parts;
}

// Whether the value is "block:8", which says all in one word: recompute block, and recompute_blocks 8.
bool read_counted_blocks(const Config& recompute, Plan& plan) {
  constexpr std::string_view kBlocks = "block:";
  if (!recompute.is_scalar() || !recompute.text().starts_with(kBlocks)) return false;
  plan.recompute = Recompute::block;
  plan.recompute_blocks = parse_count(recompute.text().substr(kBlocks.size()), recompute.where());
  if (plan.recompute_blocks < 0 || plan.recompute_blocks > INT32_MAX)
    throw Error(recompute.where(), fmt::format("{} is not a number of blocks", plan.recompute_blocks),
                "for example block:8");
  return true;
}

// recompute_blocks alone means recompute block.
void read_recompute(const Config& config, Plan& plan) {
  if (const auto early = config.find("recompute_early_stop")) plan.recompute_early_stop = early->boolean();
  bool counted = false;
  if (const auto recompute = config.find("recompute")) {
    counted = read_counted_blocks(*recompute, plan);
    if (!counted)
      plan.recompute = read_choice(*recompute, {Recompute::none, Recompute::selective, Recompute::operators,
                                                Recompute::full, Recompute::block});
  }
  read_recompute_modules(config, plan);
  const auto blocks = config.find("recompute_blocks");
  if (blocks && counted)
    throw Error(blocks->where(), "cannot be combined with recompute block:N, which says how many",
                "give one of them");
  if (!blocks && !counted && plan.recompute == Recompute::block)
    throw Error(config.at("recompute").where(), "which blocks to recompute is missing",
                "give plan.recompute_blocks, how many of every model chunk, or block:N");
  if (!blocks) return;
  plan.recompute_blocks = blocks->count(0, INT32_MAX);
  if (config.has("recompute") && plan.recompute != Recompute::block) {
    throw Error(blocks->where(),
                fmt::format("cannot be combined with recompute '{}'", name_of(plan.recompute)),
                "plan.recompute_blocks needs plan.recompute block");
  }
  plan.recompute = Recompute::block;
}

// "tensor-context-data-pipeline" or a list, innermost first.
void read_order(const Config& config, Plan& plan) {
  const auto order = config.find("order");
  if (!order) return;
  const std::vector<std::string_view> names = {"tensor", "context", "data", "pipeline"};
  std::vector<std::string> words;
  if (order->is_scalar()) {
    std::string text = order->text();
    for (std::size_t dash; (dash = text.find('-')) != std::string::npos; text.erase(0, dash + 1))
      words.push_back(text.substr(0, dash));
    words.push_back(text);
  } else {
    for (const Config& item : order->items()) words.push_back(item.text());
  }
  plan.order.clear();
  for (const std::string& word : words) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      throw Error(order->where(), fmt::format("unknown axis '{:.60}'", word),
                  suggest(word, std::span<const std::string_view>(names)));
    const Axis axis = static_cast<Axis>(found - names.begin());
    if (std::find(plan.order.begin(), plan.order.end(), axis) != plan.order.end())
      throw Error(order->where(), fmt::format("the axis '{}' is named twice", word));
    plan.order.push_back(axis);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::find(plan.order.begin(), plan.order.end(), static_cast<Axis>(i)) == plan.order.end())
      throw Error(order->where(), fmt::format("the axis '{}' is missing", names[i]),
                  "name all four, innermost first: tensor-context-data-pipeline");
  }
}

// As a plan says them: "tensor", but "model.sequence".
std::vector<OtherName> names_inside() {
  std::vector<OtherName> names(std::begin(kOtherNames), std::end(kOtherNames));
  for (OtherName& name : names) {
    if (name.key.starts_with(kPlan)) name.key.remove_prefix(kPlan.size());
  }
  return names;
}

}  // namespace

std::span<const OtherName> plan_keys_outside() {
  return kOtherNames;
}

PlanRequest read_plan(const Config& config) {
  PlanRequest request;
  request.where = config.where();
  read_degrees(config, request);
  read_batch(config, request);
  read_pipeline(config, request);
  read_tensor_and_experts(config, request.plan);
  read_data(config, request);
  read_types(config, request);
  read_recompute(config, request.plan);
  read_order(config, request.plan);
  read_host(config, request.plan);
  config.reject_unknown_keys(names_inside());
  // Places are kept by key: errors and notes of later steps name what the user wrote.
  for (const std::string& key : config.keys()) request.places.emplace(key, config.at(key).where());
  return request;
}

}  // namespace armilla
