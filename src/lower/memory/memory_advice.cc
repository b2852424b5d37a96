#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"
#include "lower/expert_exchange.h"
#include "lower/memory.h"
#include "lower/memory/role_memory.h"
#include "lower/plan.h"
#include "lower/shard/expert_load.h"

namespace armilla {
namespace {

// Uneven loads make a rank per position; the heaviest is among the first of a Zipf's, and random ones differ
// little.
constexpr std::int64_t kMostPositions = 64;

}  // namespace

MemoryUse largest_use(const ShardedModel& model, const StageCut& stages, const PipelineOrder& order,
                      const Plan& plan, const Device& device) {
  MemoryUse most;
  for (std::size_t rank = 0; rank < order.slots.size(); ++rank) {
    const RoleParts parts = role_parts(model, stages, order, rank, plan);
    const MemoryUse use = role_memory(parts, order.slots[rank], plan, device).use;
    if (use.peak() >= most.peak()) most = use;
  }
  most.capacity = device.memory;
  return most;
}

std::optional<MemoryUse> largest_use(const Model& model, const Plan& plan, const Device& device) {
  // Variants of a plan may be impossible (a degree that divides nothing): such a one has no use, and no
  // advice.
  try {
    validate_plan(plan, "plan");
    check_plan_for_model(plan, model, "plan");
    const PipelineOrder order = pipeline_order(plan, 1, "plan");
    const std::int64_t positions = is_uneven(plan) ? std::min(plan.expert, kMostPositions) : 1;
    MemoryUse most;
    for (std::int64_t position = 0; position < positions; ++position) {
      const ShardedModel sharded = shard_model(model, plan, position, "plan");
      const MemoryUse use = largest_use(sharded, cut_stages(sharded, plan, "plan"), order, plan, device);
      if (use.peak() >= most.peak()) most = use;
    }
    return most;
  } catch (const Error&) {
    return std::nullopt;
  }
}

namespace {

struct Variant {
  std::string name;
  Plan plan;
  bool single_sample = false;  // micro-batches of one sample
};

// To `target`, a multiple of what it is. Replicas become fewer; the global batch and the micro-batch stay.
bool grow(Plan& plan, std::int64_t Plan::*degree, std::int64_t target) {
  const std::int64_t factor = target / plan.*degree;
  if (factor < 2 || plan.data() % factor != 0) return false;
  plan.*degree *= factor;
  plan.batch *= factor;
  plan.micro_batches *= factor;
  // Stages given by hand fit the old number of stages only.
  plan.stage_blocks.clear();
  return true;
}

// A change to the plan, false where it changes nothing.
struct Step {
  std::string name;
  std::function<bool(Variant&)> change;
};

// From what costs least time to what changes the job most.
std::vector<Step> steps_of(const Model& model, const Plan& plan) {
  std::vector<Step> steps;
  const auto recompute = [](Recompute kind) {
    return [kind](Variant& v) {
      const bool more = v.plan.recompute != Recompute::full && v.plan.recompute != kind;
      v.plan.recompute = kind;
      return more;
    };
  };
  const auto zero = [](int stage) {
    return [stage](Variant& v) {
      const bool more = v.plan.zero_stage < stage && v.plan.data() * v.plan.context > 1;
      v.plan.zero_stage = std::max(v.plan.zero_stage, stage);
      return more;
    };
  };
  const auto set = [](bool Plan::*choice) {
    return [choice](Variant& v) { return !std::exchange(v.plan.*choice, true); };
  };
  if (plan.tensor > 1) steps.push_back({"plan.sequence_parallel", set(&Plan::sequence_parallel)});
  // An order of cost: sharding of states and of activations costs little or no time, recomputation a part of
  // a forward pass, offload transfers, and larger degrees change what runs where.
  steps.push_back({"plan.zero 1", zero(1)});
  if (plan.recompute == Recompute::none)
    steps.push_back({"plan.recompute selective", recompute(Recompute::selective)});
  steps.push_back({"plan.zero 2", zero(2)});
  if (model.batch > 1) {
    steps.push_back({"plan.micro_batch 1", [samples = model.batch](Variant& v) {
                       v.plan.micro_batches *= samples;
                       v.single_sample = true;
                       return true;
                     }});
  }
  steps.push_back({"plan.recompute full", recompute(Recompute::full)});
  steps.push_back({"plan.zero 3", zero(3)});
  steps.push_back({"plan.offload optimizer", set(&Plan::offload_optimizer)});
  steps.push_back({"plan.offload activations", set(&Plan::offload_activations)});
  for (const std::int64_t factor : {2, 4, 8}) {
    const std::int64_t tensor = plan.tensor * factor, pipeline = plan.pipeline * factor;
    steps.push_back({fmt::format("plan.tensor {}", tensor),
                     [tensor](Variant& v) { return grow(v.plan, &Plan::tensor, tensor); }});
    steps.push_back({fmt::format("plan.pipeline {}", pipeline),
                     [pipeline](Variant& v) { return grow(v.plan, &Plan::pipeline, pipeline); }});
  }
  return steps;
}

class Adviser {
 public:
  Adviser(const Model& model, const Device& device) : model_(model), device_(device) {
    if (model.batch > 1) {
      // Micro-batches of one sample need the model in that size; it is scaled once for all variants.
      single_ = model;
      rescale_batch(*single_, 1);
    }
  }

  std::optional<MemoryUse> use_of(const Variant& variant) const {
    return largest_use(variant.single_sample ? *single_ : model_, variant.plan, device_);
  }

 private:
  const Model& model_;
  const Device& device_;
  std::optional<Model> single_;
};

std::string advice_of(const std::string& name, const MemoryUse& use) {
  return fmt::format("{}: {}", name, to_text(use.needed()));
}

// All of `chosen` at once; nothing where one of them is not possible or changes nothing.
std::optional<Variant> with_steps(const Plan& plan, const std::vector<Step>& chosen) {
  Variant variant{"", plan, false};
  for (const Step& step : chosen) {
    if (!step.change(variant)) return std::nullopt;
    // Values of one key are one list.
    const std::size_t key = step.name.find(' ') + 1;
    if (const std::size_t at = variant.name.rfind(step.name.substr(0, key)); at != std::string::npos) {
      variant.name.insert(std::min(variant.name.find(' ', at + key), variant.name.size()),
                          ',' + step.name.substr(key));
    } else {
      variant.name += (variant.name.empty() ? "" : " and ") + step.name;
    }
  }
  return variant;
}

// One step after the other, as long as each helps; then without those that a later one made needless.
std::vector<std::string> advise_together(const Adviser& adviser, const Plan& plan,
                                         const std::vector<Step>& steps, Bytes peak) {
  // Greedy: a step that does not lower the peak on top of the others is dropped at once.
  std::vector<Step> chosen;
  bool fits = false;
  for (std::size_t i = 0; i < steps.size() && !fits; ++i) {
    chosen.push_back(steps[i]);
    const std::optional<Variant> variant = with_steps(plan, chosen);
    const std::optional<MemoryUse> use = variant ? adviser.use_of(*variant) : std::nullopt;
    if (!use || use->peak() >= peak) {
      chosen.pop_back();
      continue;
    }
    peak = use->peak();
    fits = use->fits();
  }
  if (!fits) return {};
  // Earlier steps may be needless beside a strong later one; each is tried without, in the order of cost.
  for (std::size_t i = 0; i < chosen.size();) {
    std::vector<Step> fewer = chosen;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const std::optional<Variant> variant = with_steps(plan, fewer);
    const std::optional<MemoryUse> use = variant ? adviser.use_of(*variant) : std::nullopt;
    if (use && use->fits()) {
      chosen = std::move(fewer);
    } else {
      ++i;
    }
  }
  const std::optional<Variant> variant = with_steps(plan, chosen);
  return {advice_of(variant->name, *adviser.use_of(*variant))};
}

}  // namespace

std::vector<std::string> memory_advice(const Model& model, const Plan& plan, const Device& device) {
  std::vector<std::string> advice;
  const Adviser adviser(model, device);
  const std::optional<MemoryUse> now = adviser.use_of({"", plan, false});
  if (!now || now->fits()) return advice;
  const std::vector<Step> steps = steps_of(model, plan);
  // One change that is enough is better advice than two: combinations are tried only where no single one
  // fits.
  for (const Step& step : steps) {
    Variant variant{step.name, plan, false};
    if (!step.change(variant)) continue;
    const std::optional<MemoryUse> use = adviser.use_of(variant);
    if (use && use->fits()) advice.push_back(advice_of(step.name, *use));
  }
  if (!advice.empty()) return advice;
  return advise_together(adviser, plan, steps, now->peak());
}

}  // namespace armilla
