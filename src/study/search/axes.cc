#include "study/search/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/units_text.h"
#include "lower/pipeline_schedule.h"
#include "study/search.h"

namespace armilla {
namespace {

using Texts = std::vector<std::string>;

Texts texts(const std::vector<std::int64_t>& numbers) {
  Texts result;
  for (const std::int64_t number : numbers) result.push_back(std::to_string(number));
  return result;
}

std::vector<std::int64_t> divisors(std::int64_t whole) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) continue;
    small.push_back(d);
    if (d != whole / d) large.push_back(whole / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// Those of `numbers` that are at most `most` and divide `whole`, where that is known.
Texts fitting(std::vector<std::int64_t> numbers, std::int64_t most, std::int64_t whole = 0) {
  std::erase_if(numbers, [&](std::int64_t n) { return n > most || (whole > 0 && whole % n != 0); });
  return texts(numbers);
}

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> powers;
  for (std::int64_t p = 1; p <= most; p *= 2) powers.push_back(p);
  return powers;
}

Texts no(const SpaceFacts&) {
  return {"false"};
}
Texts yes(const SpaceFacts&) {
  return {"true"};
}
Texts either(const SpaceFacts&) {
  return {"false", "true"};
}
Texts any_degree(const SpaceFacts& facts) {
  return texts(divisors(facts.ranks));
}

// Tensor parallelism does not leave the node: beyond it every layer would wait for the slower network.
Texts usual_tensor(const SpaceFacts& facts) {
  std::vector<std::int64_t> degrees = divisors(facts.ranks);
  std::erase_if(degrees, [&](std::int64_t n) { return !fits_nodes(n, facts.node, facts.ranks); });
  return fitting(std::move(degrees), std::min(facts.node, facts.ranks), facts.model.heads);
}
Texts usual_pipeline(const SpaceFacts& facts) {
  return fitting(divisors(facts.ranks), std::max<std::int64_t>(facts.model.layers, 1));
}
Texts usual_expert(const SpaceFacts& facts) {
  if (facts.model.experts == 0) return {"1"};
  // Tables may be dealt out unevenly.
  const bool tables = has_tables_for_experts(facts.model);
  std::vector<std::int64_t> degrees = divisors(facts.ranks);
  std::erase_if(degrees, [&](std::int64_t n) { return !fits_nodes(n, facts.node, facts.ranks); });
  return fitting(std::move(degrees), facts.model.experts, tables ? 0 : facts.model.experts);
}
Texts any_expert(const SpaceFacts& facts) {
  if (has_tables_for_experts(facts.model)) return fitting(divisors(facts.ranks), facts.model.experts);
  return facts.model.experts == 0 ? Texts{"1"} : fitting(divisors(facts.model.experts), facts.ranks);
}
// Experts whole or divided as the layers around them, which is what `armilla run` does; not where some of the
// exchanges would be between parts of nodes.
Texts usual_expert_tensor(const SpaceFacts& facts) {
  if (facts.model.experts == 0) return {};
  Texts degrees = {"1"};
  const Texts around =
      facts.tensor.empty() ? Texts{std::to_string(facts.study.request.tensor.value_or(1))} : facts.tensor;
  const Texts experts =
      facts.expert.empty() ? Texts{std::to_string(facts.study.request.plan.expert)} : facts.expert;
  const auto fits = [&](const std::string& degree) {
    return std::ranges::all_of(experts, [&](const std::string& expert) {
      return fits_nodes(std::stoll(degree) * std::stoll(expert), facts.node, facts.ranks);
    });
  };
  for (const std::string& degree : around) {
    if (std::ranges::find(degrees, degree) == degrees.end() && fits(degree)) degrees.push_back(degree);
  }
  return degrees;
}
Texts any_expert_tensor(const SpaceFacts& facts) {
  return facts.model.experts == 0 ? Texts{"1"} : any_degree(facts);
}
Texts usual_chunks(const SpaceFacts& facts) {
  return facts.ranks == 1 ? Texts{"1"} : fitting({1, 2, 4}, std::max<std::int64_t>(facts.model.layers, 1));
}
// Models without layers that repeat are cut between any operators.
Texts any_chunks(const SpaceFacts& facts) {
  return facts.model.layers > 1 ? texts(divisors(facts.model.layers)) : Texts{"1", "2", "4", "8"};
}
// Powers of two up to what `armilla run` takes, and that itself: images come in larger micro-batches
// than sequences.
Texts usual_micro_batch(const SpaceFacts& facts) {
  constexpr std::int64_t kFirst = 8, kMostTried = 256;
  if (facts.batch == 0) return {};
  std::vector<std::int64_t> sizes = powers_of_two(std::clamp(facts.run_micro_batch, kFirst, kMostTried));
  const auto at = std::ranges::lower_bound(sizes, facts.run_micro_batch);
  if (facts.run_micro_batch > 0 && (at == sizes.end() || *at != facts.run_micro_batch))
    sizes.insert(at, facts.run_micro_batch);
  return fitting(sizes, facts.batch);
}
// Both: where the tokens of a sequence cannot be divided, or are few, plans without it are the better ones.
Texts usual_sequence_parallel(const SpaceFacts& facts) {
  return facts.model.sequence > 0 ? Texts{"false", "true"} : Texts{"false"};
}
Texts any_micro_batch(const SpaceFacts& facts) {
  return facts.batch == 0 ? Texts{"1"} : texts(divisors(facts.batch));
}
Texts this_schedule(const SpaceFacts& facts) {
  return {facts.study.request.plan.schedule};
}
// One that never flushes trains with older weights: it is no other way to do the same.
Texts any_schedule(const SpaceFacts&) {
  Texts names;
  for (const PipelineScheduleInfo& schedule : pipeline_schedules()) {
    if (schedule.flushes) names.emplace_back(schedule.name);
  }
  return names;
}
Texts usual_zero(const SpaceFacts&) {
  return {"0", "1"};
}
Texts any_zero(const SpaceFacts&) {
  return {"0", "1", "2", "3"};
}
Texts usual_recompute(const SpaceFacts&) {
  return {"none", "selective", "full"};
}
// Of every chunk some first blocks, too: as many as divide the layers.
Texts any_recompute(const SpaceFacts& facts) {
  Texts values = {"none", "selective", "operators"};
  for (const std::int64_t blocks : divisors(std::max<std::int64_t>(facts.model.layers, 1))) {
    if (blocks < facts.model.layers) values.push_back("block:" + std::to_string(blocks));
  }
  values.emplace_back("full");
  return values;
}
Texts no_offload(const SpaceFacts&) {
  return {"none"};
}
Texts any_offload(const SpaceFacts&) {
  return {"none", "optimizer", "activations", "[optimizer, activations]"};
}
Texts usual_order(const SpaceFacts&) {
  return {"tensor-context-data-pipeline"};
}
Texts any_order(const SpaceFacts&) {
  std::array<std::string, 4> axes = {"context", "data", "pipeline", "tensor"};
  Texts orders;
  do {
    orders.push_back(axes[0] + "-" + axes[1] + "-" + axes[2] + "-" + axes[3]);
  } while (std::next_permutation(axes.begin(), axes.end()));
  return orders;
}
// Where all other degrees are given, what they leave of the ranks, as in a run.
Texts usual_context(const SpaceFacts& facts) {
  const PlanRequest& request = facts.study.request;
  return request.tensor && request.pipeline && request.data ? Texts{} : Texts{"1"};
}
Texts ring_context(const SpaceFacts&) {
  return {"ring"};
}
Texts any_context(const SpaceFacts&) {
  return {"ring", "all-to-all"};
}
// 0: over all replicas.
Texts any_shard(const SpaceFacts& facts) {
  Texts degrees = any_degree(facts);
  degrees.insert(degrees.begin(), "0");
  return degrees;
}
// Nothing: the model's even cut, which no value of the key stands for.
Texts nothing(const SpaceFacts&) {
  return {};
}
Texts any_stages(const SpaceFacts&) {
  return {"even", "balanced"};
}
// All between none and those of a whole chunk.
Texts any_recomputed(const SpaceFacts& facts) {
  Texts blocks = any_chunks(facts);
  blocks.insert(blocks.begin(), "0");
  return blocks;
}

// None, and each alone of those that the model has.
Texts any_modules(const SpaceFacts& facts) {
  Texts names = {"none"};
  for (const std::string_view name : names_of(facts.parts)) names.emplace_back(name);
  return names;
}

template <auto field>
void copy_of_plan(const PlanRequest& from, PlanRequest& to) {
  to.plan.*field = from.plan.*field;
}
template <auto field>
void copy_of_request(const PlanRequest& from, PlanRequest& to) {
  to.*field = from.*field;
}

void copy_recomputation(const PlanRequest& from, PlanRequest& to) {
  to.plan.recompute = from.plan.recompute;
  to.plan.recompute_blocks = from.plan.recompute_blocks;
}

constexpr std::array kAxes = {
    PlanAxis{"tensor", usual_tensor, any_degree, copy_of_request<&PlanRequest::tensor>},
    PlanAxis{"context", usual_context, any_degree, copy_of_request<&PlanRequest::context>},
    PlanAxis{"pipeline", usual_pipeline, any_degree, copy_of_request<&PlanRequest::pipeline>},
    PlanAxis{"data", nothing, any_degree, copy_of_request<&PlanRequest::data>},
    PlanAxis{"expert", usual_expert, any_expert, copy_of_plan<&Plan::expert>},
    PlanAxis{"expert_tensor", usual_expert_tensor, any_expert_tensor, copy_of_plan<&Plan::expert_tensor>},
    PlanAxis{"virtual_stages", usual_chunks, any_chunks, copy_of_plan<&Plan::virtual_stages>},
    PlanAxis{"micro_batch", usual_micro_batch, any_micro_batch, copy_of_request<&PlanRequest::micro_batch>},
    PlanAxis{"micro_batches", nothing, any_micro_batch, copy_of_request<&PlanRequest::micro_batches>},
    PlanAxis{"schedule", this_schedule, any_schedule, copy_of_plan<&Plan::schedule>},
    PlanAxis{"stage_blocks", nothing, any_stages,
             [](const PlanRequest& from, PlanRequest& to) {
               to.balance_stages = from.balance_stages;
               to.plan.stage_blocks = from.plan.stage_blocks;
             }},
    PlanAxis{"sequence_parallel", usual_sequence_parallel, either, copy_of_plan<&Plan::sequence_parallel>},
    PlanAxis{"recompute", usual_recompute, any_recompute, copy_recomputation},
    PlanAxis{"recompute_blocks", nothing, any_recomputed, copy_recomputation},
    PlanAxis{"recompute_modules", nothing, any_modules,
             [](const PlanRequest& from, PlanRequest& to) {
               to.plan.recompute = from.plan.recompute;
               to.plan.recompute_modules = from.plan.recompute_modules;
             }},
    PlanAxis{"zero", usual_zero, any_zero, copy_of_plan<&Plan::zero_stage>},
    PlanAxis{"offload", no_offload, any_offload,
             [](const PlanRequest& from, PlanRequest& to) {
               to.plan.offload_optimizer = from.plan.offload_optimizer;
               to.plan.offload_activations = from.plan.offload_activations;
             }},
    PlanAxis{"overlap", yes, either, copy_of_plan<&Plan::overlap>},
    PlanAxis{"overlap_tensor", no, either, copy_of_plan<&Plan::overlap_tensor>},
    PlanAxis{"overlap_pipeline", yes, either, copy_of_plan<&Plan::overlap_pipeline>},
    PlanAxis{"scatter_gather", nothing, either, copy_of_plan<&Plan::scatter_gather>},
    PlanAxis{"overlap_parameters", yes, either, copy_of_plan<&Plan::overlap_parameters>},
    PlanAxis{"prefetch", yes, either, copy_of_plan<&Plan::prefetch>},
    PlanAxis{"reshard", yes, either, copy_of_plan<&Plan::reshard>},
    PlanAxis{"hybrid_shard", nothing, any_shard, copy_of_plan<&Plan::hybrid_shard>},
    PlanAxis{"context_method", ring_context, any_context, copy_of_plan<&Plan::context_method>},
    PlanAxis{"order", usual_order, any_order, copy_of_plan<&Plan::order>},
};
static_assert(kAxes[kCuttingAxes - 1].key == "schedule");

}  // namespace

bool fits_nodes(std::int64_t group, std::int64_t node, std::int64_t ranks) {
  return ranks <= node || node % group == 0 || group % node == 0;
}

std::string note_on_nodes(const std::vector<std::pair<const Plan*, const Machine*>>& simulated) {
  std::size_t plans = 0;
  std::string example;
  for (const auto& [plan, machine] : simulated) {
    const std::int64_t node = machine->dimensions.empty() ? plan->ranks : machine->dimensions.front().size;
    const std::array groups = {plan->tensor, plan->expert * plan->experts_tensor()};
    const auto parted = std::ranges::find_if(
        groups, [&, &ranks = plan->ranks](std::int64_t group) { return !fits_nodes(group, node, ranks); });
    if (parted == groups.end()) continue;
    ++plans;
    example = fmt::format("of {} in nodes of {}", typed_count(*parted, "rank"), node);
  }
  if (plans == 0) return {};
  return fmt::format(
      "{} of the {} simulated {} groups that do not divide a node, such as {}: most ranks are then played "
      "one "
      "by one, which takes long; degrees that divide the node, or a smaller machine.dimensions.0.size, avoid "
      "that",
      plans, counted(simulated.size(), "plan"), plans == 1 ? "has" : "have", example);
}

std::span<const PlanAxis> plan_axes() {
  return kAxes;
}

bool is_about_cutting(const std::vector<std::string>& keys) {
  constexpr std::string_view kPlan = "plan.";
  const auto cuts = [&](std::string_view key) {
    if (!key.starts_with(kPlan) || key == "plan.context") return false;
    key.remove_prefix(kPlan.size());
    if (key == "batch" || key == "global_batch") return true;
    return std::any_of(kAxes.begin(), kAxes.begin() + kCuttingAxes,
                       [&](const PlanAxis& axis) { return axis.key == key; });
  };
  return !keys.empty() && std::ranges::all_of(keys, cuts);
}

}  // namespace armilla
