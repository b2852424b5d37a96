#include "lower/expert_exchange.h"

#include <fmt/format.h>

#include <cmath>

#include "base/checked.h"
#include "base/units_text.h"
#include "lower/shard/expert_load.h"
#include "lower/shard_layout.h"

namespace armilla {
namespace {

constexpr std::int64_t kScaled = 128;  // numbers that share a scale (DeepSeek-V3, section 3.3.2)

bool is_deduplicated(const Plan& plan, const ModelFacts& facts) {
  // Tables of a recommendation model send rows of their own, not copies of a token.
  if (plan.expert == 1 || facts.experts == 0 || facts.hidden == 0 || is_uneven(plan)) return false;
  if (plan.expert_dispatch != ExpertDispatch::automatic)
    return plan.expert_dispatch == ExpertDispatch::deduplicated;
  return facts.active_expert_groups < facts.expert_groups;
}

}  // namespace

bool is_uneven(const Plan& plan) {
  return plan.expert_load != ExpertLoad::uniform && plan.expert > 1 && plan.expert_skew > 0;
}

DType dispatch_type(const Plan& plan, const ModelFacts& facts) {
  // A plan that names a type is obeyed; DeepSeek-V3's own fp8 dispatch counts only where the plan computes in
  // fp8.
  if (plan.dispatch_dtype != DType::unknown) return plan.dispatch_dtype;
  if (plan.precision == DType::fp8 && facts.dispatch_dtype != DType::unknown) return facts.dispatch_dtype;
  return activation_dtype(plan);
}

ExpertRouting expert_routing(const Plan& plan, const ModelFacts& facts, bool to_experts) {
  if (!is_deduplicated(plan, facts)) return {};
  return {facts.experts, facts.active_experts, facts.expert_groups, facts.active_expert_groups, to_experts};
}

Bytes exchanged_bytes(std::int64_t numbers, const Plan& plan, const ModelFacts& facts, bool to_experts,
                      std::string_view what) {
  const ExpertRouting routing = expert_routing(plan, facts, to_experts);
  if (routing.experts > 0) {
    // A token goes once to every rank that holds some of its experts: on average so many copies instead of
    // `active`.
    const double copies = expected_blocks(routing, plan.expert) / static_cast<double>(routing.active);
    numbers = std::llround(static_cast<double>(numbers) * copies);
  }
  // Results come back in the activations' type: they are summed (DeepSeek-V3 combines in bf16, section
  // 3.3.3).
  const DType type = to_experts ? dispatch_type(plan, facts) : activation_dtype(plan);
  const Bytes bytes = size_of(numbers, type, std::string(what));
  // A 4-byte scale for every kScaled numbers.
  const bool has_scales = type == DType::fp8 || type == DType::fp4 || type == DType::int8;
  return has_scales ? bytes + Bytes(ceil_divide(numbers, kScaled) * 4) : bytes;
}

std::int32_t exchange_processors(const Plan& plan, const ModelFacts& facts) {
  // Buffer.num_sms of DeepEP, moe_deepep_num_sms of Megatron-Core; a block of NCCL's for each of 32 channels.
  constexpr std::int32_t kDeepEp = 20, kNccl = 32;
  return is_deduplicated(plan, facts) ? kDeepEp : kNccl;
}

// Writes the choice into the plan, so that reports show what was lowered.
void resolve_exchange(const ModelFacts& facts, Plan& plan) {
  if (plan.expert == 1 || facts.experts == 0) return;
  plan.dispatch_dtype = dispatch_type(plan, facts);
  if (dispatches_on_rank(plan.expert_dispatch)) return;
  plan.expert_dispatch =
      is_deduplicated(plan, facts) ? ExpertDispatch::deduplicated : ExpertDispatch::per_expert;
}

std::vector<std::string> describe_exchange(const Plan& plan, const ModelFacts& facts) {
  std::vector<std::string> notes;
  if (plan.expert == 1 || facts.experts == 0) return notes;
  if (has_tables_for_experts(facts)) {
    const std::int64_t most = ceil_divide(facts.experts, plan.expert);
    if (facts.experts % plan.expert != 0)
      notes.push_back(
          fmt::format("{} dealt out to {} expert ranks, at most {} to each: every one is "
                      "taken to have so many",
                      facts.experts == 1 ? "1 table is" : fmt::format("{} tables are", facts.experts),
                      plan.expert, most));
    return notes;
  }
  const DType there = dispatch_type(plan, facts), back = activation_dtype(plan);
  if (there != back)
    notes.push_back(fmt::format("tokens go to their experts in {} and come back in {} (plan.dispatch_type)",
                                name_of(there), name_of(back)));
  const ExpertRouting routing = expert_routing(plan, facts, true);
  if (routing.experts > 0) {
    const bool limited = routing.active_groups < routing.groups;
    notes.push_back(fmt::format(
        "a token is sent once to every rank, and across nodes once to every node, with experts of it: "
        "{:.2f} of {} ranks for {}{} (plan.expert_dispatch)",
        expected_blocks(routing, plan.expert), plan.expert, typed_count(routing.active, "expert"),
        limited ? fmt::format(" in {} of {} groups", routing.active_groups, routing.groups) : ""));
  } else if (is_uneven(plan) && (plan.expert_dispatch == ExpertDispatch::deduplicated ||
                                 facts.active_expert_groups < facts.expert_groups)) {
    notes.push_back(
        fmt::format("with {} expert loads every expert gets a copy of a token, and groups of "
                    "experts limit nothing",
                    name_of(plan.expert_load)));
  }
  return notes;
}

}  // namespace armilla
