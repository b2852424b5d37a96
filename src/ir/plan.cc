#include "ir/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/nearest_divisor.h"
#include "base/units_text.h"

namespace armilla {

std::string_view name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "sgd";
    case Optimizer::momentum:
      return "momentum";
    case Optimizer::adam:
      return "adam";
  }
  return "?";
}

std::string_view name_of(Axis axis) {
  switch (axis) {
    case Axis::tensor:
      return "tensor";
    case Axis::context:
      return "context";
    case Axis::data:
      return "data";
    case Axis::pipeline:
      return "pipeline";
  }
  return "?";
}

// The enumerators are the numbers of states per weight: none, momentum, two moments.
int state_words(Optimizer optimizer) {
  return static_cast<int>(optimizer);
}

std::string_view name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::operators:
      return "operators";
    case Recompute::full:
      return "full";
    case Recompute::block:
      return "block";
  }
  return "?";
}

std::string_view name_of(Part part) {
  switch (part) {
    case Part::core_attn:
      return "core_attn";
    case Part::layernorm:
      return "layernorm";
    case Part::mla_up_proj:
      return "mla_up_proj";
    case Part::mlp:
      return "mlp";
    case Part::moe:
      return "moe";
    case Part::moe_act:
      return "moe_act";
    case Part::shared_experts:
      return "shared_experts";
    case Part::attention:
      return "attention";
    case Part::latent:
      return "latent";
    case Part::prediction:
      return "prediction";
    case Part::logits:
      return "logits";
    case Part::norm:
      return "norm";
    case Part::rotary:
      return "rotary";
    case Part::activation:
      return "activation";
    case Part::attn:
      return "attn";
    case Part::mamba:
      return "mamba";
    case Part::mlp_layer:
      return "mlp";
    case Part::moe_layer:
      return "moe";
    case Part::moe_router:
      return "moe_router";
    case Part::moe_preprocess:
      return "moe_preprocess";
  }
  return "?";
}

std::vector<std::string_view> names_of(Parts parts) {
  std::vector<std::string_view> names;
  for (unsigned i = 0; i <= static_cast<unsigned>(Part::moe_preprocess); ++i) {
    if (parts.has(static_cast<Part>(i))) names.push_back(name_of(static_cast<Part>(i)));
  }
  return names;
}

std::span<const Part> recomputable_parts() {
  static constexpr std::array kParts = {Part::core_attn, Part::layernorm, Part::mla_up_proj,   Part::mlp,
                                        Part::moe,       Part::moe_act,   Part::shared_experts};
  return kParts;
}

std::span<const Part> widenable_parts() {
  static constexpr std::array kParts = {Part::attention,      Part::mlp,    Part::moe,
                                        Part::shared_experts, Part::latent, Part::prediction};
  return kParts;
}

std::span<const Part> fusable_parts() {
  static constexpr std::array kParts = {Part::norm, Part::rotary, Part::activation};
  return kParts;
}

std::span<const Part> graphable_parts() {
  static constexpr std::array kParts = {Part::attn,      Part::mamba,      Part::mlp_layer,
                                        Part::moe_layer, Part::moe_router, Part::moe_preprocess};
  return kParts;
}

std::string_view name_of(LossKernel loss) {
  switch (loss) {
    case LossKernel::automatic:
      return "automatic";
    case LossKernel::fused:
      return "fused";
    case LossKernel::wide:
      return "wide";
    case LossKernel::in_place:
      return "in-place";
    case LossKernel::narrow:
      return "narrow";
  }
  return "?";
}

LossKernel loss_kernel_of(const Plan& plan) {
  if (plan.loss != LossKernel::automatic) return plan.loss;
  return plan.host == Host::compiled ? LossKernel::fused : LossKernel::wide;
}

TensorMethod tensor_method_of(const Plan& plan) {
  if (plan.tensor_method != TensorMethod::automatic) return plan.tensor_method;
  return plan.framework == Framework::pytorch ? TensorMethod::dtensor : TensorMethod::megatron;
}

Parts fused_elementwise_of(const Plan& plan) {
  if (plan.fused_elementwise) return *plan.fused_elementwise;
  const bool is_by_operator = plan.framework == Framework::pytorch && plan.host != Host::compiled;
  return is_by_operator ? Parts{} : Parts{Part::norm, Part::rotary, Part::activation};
}

std::string_view name_of(TensorMethod method) {
  switch (method) {
    case TensorMethod::automatic:
      return "automatic";
    case TensorMethod::megatron:
      return "megatron";
    case TensorMethod::dtensor:
      return "dtensor";
    case TensorMethod::modules:
      return "modules";
  }
  return "?";
}

bool shares_out_tensors(const Plan& plan) {
  return plan.zero_stage == 1 && plan.zero_partition == ZeroPartition::tensors;
}

std::string_view name_of(ZeroPartition partition) {
  switch (partition) {
    case ZeroPartition::elements:
      return "elements";
    case ZeroPartition::tensors:
      return "tensors";
  }
  return "?";
}

std::string_view name_of(ContextMethod method) {
  switch (method) {
    case ContextMethod::ring:
      return "ring";
    case ContextMethod::all_to_all:
      return "all-to-all";
  }
  return "?";
}

std::string_view name_of(ExpertDispatch dispatch) {
  switch (dispatch) {
    case ExpertDispatch::automatic:
      return "automatic";
    case ExpertDispatch::per_expert:
      return "per-expert";
    case ExpertDispatch::deduplicated:
      return "deduplicated";
    case ExpertDispatch::one_hot:
      return "one-hot";
    case ExpertDispatch::sorted:
      return "sorted";
  }
  return "?";
}

std::string_view name_of(Framework framework) {
  switch (framework) {
    case Framework::megatron:
      return "megatron";
    case Framework::pytorch:
      return "pytorch";
  }
  return "?";
}

std::string_view name_of(Host host) {
  switch (host) {
    case Host::automatic:
      return "automatic";
    case Host::compiled:
      return "compiled";
    case Host::eager:
      return "eager";
  }
  return "?";
}

Time issue_time_of(const Plan& plan) {
  return plan.issue_time.value_or(plan.host == Host::eager ? kEagerIssue : Time(0));
}

std::int64_t innermost_block(const Plan& plan) {
  std::int64_t block = 1;
  for (const Axis axis : plan.order) {
    if (axis != Axis::tensor && axis != Axis::context) break;
    block *= axis == Axis::tensor ? plan.tensor : plan.context;
  }
  return block;
}

bool stops_early(const Plan& plan) {
  if (plan.recompute == Recompute::selective) return plan.recompute_early_stop.value_or(false);
  if (plan.recompute != Recompute::full && plan.recompute != Recompute::block) return false;
  return plan.recompute_early_stop.value_or(plan.framework == Framework::pytorch);
}

std::string_view name_of(ExpertLoad load) {
  switch (load) {
    case ExpertLoad::uniform:
      return "uniform";
    case ExpertLoad::zipf:
      return "zipf";
    case ExpertLoad::random:
      return "random";
  }
  return "?";
}

namespace {

// Their product divides the ranks; so it cannot overflow where this returns.
void validate_degrees(const Plan& plan, const std::string& where) {
  const auto at_least_one = [&](std::string_view name, std::int64_t degree) {
    if (degree < 1)
      throw Error(where, fmt::format("{} {}", name, degree), "a degree is at least 1", {std::string(name)});
    if (degree > plan.ranks)
      throw Error(where, fmt::format("{} {} is more than all {} ranks", name, degree, plan.ranks),
                  fmt::format("the most is {}", plan.ranks), {std::string(name)});
  };
  at_least_one("plan.tensor", plan.tensor);
  at_least_one("plan.context", plan.context);
  at_least_one("plan.pipeline", plan.pipeline);
  at_least_one("plan.expert", plan.expert);
  if (plan.expert_tensor != 0) at_least_one("plan.expert_tensor", plan.expert_tensor);
  // Both factors are at most 2^24.
  const std::int64_t inner = plan.tensor * plan.context;
  if (inner > plan.ranks || plan.ranks % (inner * plan.pipeline) != 0) {
    throw Error(where,
                fmt::format("plan.tensor {} x plan.context {} x plan.pipeline {} does not divide "
                            "{}",
                            plan.tensor, plan.context, plan.pipeline, typed_count(plan.ranks, "rank")),
                inner > plan.ranks ? std::string()
                                   : fmt::format("plan.ranks could be {}",
                                                 nearest_multiples(inner * plan.pipeline, plan.ranks)),
                {"plan.tensor", "plan.context", "plan.pipeline"});
  }
  // A stage's ranks are divided twice, for dense weights and for experts; both divisions have to come out.
  const std::int64_t stage_ranks = inner * plan.data();
  const std::int64_t experts = plan.expert * plan.experts_tensor();
  if (stage_ranks % experts != 0) {
    std::string hint =
        fmt::format("tensor x context x data could be {}", nearest_multiples(experts, stage_ranks));
    if (stage_ranks % plan.experts_tensor() == 0) {
      const std::int64_t room = stage_ranks / plan.experts_tensor();
      // What divides the degree that was asked for divides the model's experts, too, if that does.
      const std::int64_t common = std::gcd(room, plan.expert);
      hint = fmt::format("plan.expert could be {}, or {}",
                         nearest_divisors(common > 1 ? common : room, plan.expert), hint);
    }
    throw Error(where,
                fmt::format("plan.expert {} x plan.expert_tensor {} does not divide the {} of a "
                            "pipeline stage (tensor {} x context {} x data {})",
                            plan.expert, plan.experts_tensor(), counted(stage_ranks, "rank"), plan.tensor,
                            plan.context, plan.data()),
                hint, {"plan.expert", "plan.expert_tensor"});
  }
}

void validate_sharding(const Plan& plan, const std::string& where) {
  if (plan.zero_stage < 0 || plan.zero_stage > 3)
    throw Error(where, fmt::format("plan.zero {}", plan.zero_stage), "ZeRO stages are 0 to 3", {"plan.zero"});
  if (plan.zero_partition == ZeroPartition::tensors && plan.zero_stage > 1) {
    throw Error(where, fmt::format("plan.zero_partition tensors with plan.zero {}", plan.zero_stage),
                "whole tensors are given to replicas by ZeRO-1 alone: gradients and weights stay whole",
                {"plan.zero_partition", "plan.zero"});
  }
  if (!plan.reduce_scatter && plan.zero_stage == 3) {
    throw Error(where, "plan.reduce_scatter false with plan.zero 3",
                "ZeRO-3 keeps its part of the gradients alone: only ZeRO-1 and 2 may all-reduce them",
                {"plan.reduce_scatter", "plan.zero"});
  }
  if (plan.hybrid_shard < 0)
    throw Error(where, fmt::format("plan.hybrid_shard {}", plan.hybrid_shard), "0 shards over all of them",
                {"plan.hybrid_shard"});
  if (plan.hybrid_shard == 0) return;
  if (plan.zero_stage == 0) {
    throw Error(where, fmt::format("plan.hybrid_shard {} with plan.zero 0", plan.hybrid_shard),
                "nothing is sharded; plan.zero could be 1, 2 or 3", {"plan.zero", "plan.hybrid_shard"});
  }
  // Context ranks hold the same weights, as replicas do.
  const std::int64_t replicas = plan.context * plan.data();
  if (replicas % plan.hybrid_shard != 0) {
    throw Error(where,
                fmt::format("plan.hybrid_shard {} does not divide data {} x context {} = {}",
                            plan.hybrid_shard, plan.data(), plan.context, replicas),
                fmt::format("plan.hybrid_shard could be {}", nearest_divisors(replicas, plan.hybrid_shard)),
                {"plan.hybrid_shard"});
  }
}

void validate_stages(const Plan& plan, const std::string& where) {
  // So that their product with the degree, which is at most 2^24, cannot overflow.
  constexpr std::int64_t kMostVirtual = 65536;
  if (plan.virtual_stages < 1 || plan.virtual_stages > kMostVirtual) {
    throw Error(where, fmt::format("plan.virtual_stages {}", plan.virtual_stages),
                fmt::format("model chunks per pipeline rank are 1 to {}", kMostVirtual),
                {"plan.virtual_stages"});
  }
  const std::int64_t stages = plan.pipeline * plan.virtual_stages;
  if (!plan.stage_blocks.empty()) {
    if (static_cast<std::int64_t>(plan.stage_blocks.size()) != stages) {
      throw Error(where,
                  fmt::format("plan.stage_blocks has {} for plan.pipeline {} x plan.virtual_stages {} = {}",
                              counted(std::ssize(plan.stage_blocks), "number"), plan.pipeline,
                              plan.virtual_stages, counted(stages, "stage")),
                  fmt::format("give {}, in model order", counted(stages, "number")),
                  {"plan.stage_blocks", "plan.pipeline", "plan.virtual_stages"});
    }
    const auto least = std::min_element(plan.stage_blocks.begin(), plan.stage_blocks.end());
    // 0 is no mistake yet: a list may count layers alone, and a stage may have the embedding or the head.
    // What is empty then the model tells (lower/plan/stage_cut.cc).
    if (*least < 0)
      throw Error(where, fmt::format("plan.stage_blocks has a stage of {} blocks", *least), "the least is 0",
                  {"plan.stage_blocks"});
  }
  if (plan.recompute_blocks < 0)
    throw Error(where, fmt::format("plan.recompute_blocks {}", plan.recompute_blocks), "0 recomputes none",
                {"plan.recompute_blocks"});
}

void validate_choices(const Plan& plan, const std::string& where) {
  std::vector<Axis> axes = plan.order;
  std::sort(axes.begin(), axes.end());
  if (axes != std::vector{Axis::tensor, Axis::context, Axis::data, Axis::pipeline})
    throw Error(where, "plan.order must name tensor, context, data and pipeline, each once", "",
                {"plan.order"});
  // Comparisons alone would let NaN pass.
  if (!std::isfinite(plan.expert_skew) || plan.expert_skew < 0) {
    throw Error(where, fmt::format("plan.expert_skew {}", plan.expert_skew),
                "a finite number, 0 (all alike) or more", {"plan.expert_skew"});
  }
  constexpr double kMostCapacity = 1000;
  if (!(plan.expert_capacity >= 0 && plan.expert_capacity <= kMostCapacity)) {
    throw Error(where, fmt::format("plan.expert_capacity {}", plan.expert_capacity),
                fmt::format("rows relative to the mean, up to {}; 0: no limit", kMostCapacity),
                {"plan.expert_capacity"});
  }
  if (plan.expert_dispatch == ExpertDispatch::one_hot && plan.expert_capacity == 0) {
    throw Error(where, "plan.expert_dispatch one-hot without plan.expert_capacity",
                "masks have as many rows as experts have room for: MaxText's default is 1.25",
                {"plan.expert_dispatch", "plan.expert_capacity"});
  }
  if (plan.expert_capacity > 0 && plan.expert_load != ExpertLoad::uniform) {
    throw Error(where,
                fmt::format("plan.expert_capacity {} cannot be combined with plan.expert_load {}",
                            plan.expert_capacity, name_of(plan.expert_load)),
                "with a capacity all experts work on as many rows",
                {"plan.expert_capacity", "plan.expert_load"});
  }
  if (plan.wide_first_layers < 0 || plan.wide_last_layers < 0) {
    const bool first = plan.wide_first_layers < 0;
    const std::string key = first ? "plan.wide_first_layers" : "plan.wide_last_layers";
    throw Error(where, fmt::format("{} {}", key, first ? plan.wide_first_layers : plan.wide_last_layers),
                "0 keeps none wide", {key});
  }
  if (!is_floating(plan.precision))
    throw Error(where, fmt::format("plan.precision {}", name_of(plan.precision)),
                "training needs a floating type", {"plan.precision"});
  // Types that are left open follow from precision and framework when the plan is resolved.
  const std::pair<std::string_view, DType> types[] = {{"plan.weight_type", plan.weight_dtype},
                                                      {"plan.gradient_type", plan.gradient_dtype},
                                                      {"plan.parameter_type", plan.parameter_dtype}};
  for (const auto& [key, dtype] : types) {
    if (dtype == DType::unknown || is_floating(dtype)) continue;
    throw Error(where, fmt::format("{} {}", key, name_of(dtype)), "training needs a floating type",
                {std::string(key)});
  }
}

}  // namespace

std::vector<std::string> micro_batch_keys(std::initializer_list<std::string_view> others) {
  // The likeliest first: an error is put to the first that the user gave.
  std::vector<std::string> keys = {"plan.micro_batches", "plan.micro_batch", "plan.batch",
                                   "plan.global_batch"};
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

void validate_plan(const Plan& plan, const std::string& where) {
  if (plan.ranks < 1 || plan.ranks > kMostRanks) {
    throw Error(where, fmt::format("plan.ranks {}", plan.ranks),
                fmt::format("ranks must be between 1 and {}", kMostRanks));
  }
  if (plan.batch < 1)
    throw Error(where, fmt::format("plan.batch {}", plan.batch), "it must be at least 1", {"plan.batch"});
  if (plan.micro_batches < 1)
    throw Error(where, fmt::format("plan.micro_batches {}", plan.micro_batches), "it must be at least 1",
                micro_batch_keys());
  if (plan.batch % plan.micro_batches != 0) {
    throw Error(where,
                fmt::format("plan.micro_batches {} does not divide the batch of {} per replica",
                            plan.micro_batches, plan.batch),
                "", micro_batch_keys());
  }
  if (plan.bucket.value < 1 || plan.first_bucket.value < 1)
    throw Error(where, "a gradient bucket must hold at least 1 byte", "",
                {"plan.bucket", "plan.first_bucket"});
  // First: what follows divides by the degrees.
  validate_degrees(plan, where);
  validate_sharding(plan, where);
  validate_stages(plan, where);
  validate_choices(plan, where);
}

}  // namespace armilla
