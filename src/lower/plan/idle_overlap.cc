#include "lower/plan/idle_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lower/pipeline_schedule.h"
#include "lower/sharded_model.h"

namespace armilla {
namespace {

// What has ended before each step begins: what it waits for, and what that has waited for.
std::vector<std::vector<bool>> ended_before(const Pass& pass, bool in_order) {
  std::vector<std::vector<bool>> ended;
  std::vector<bool> on_device(pass.steps.size());  // before the next computation
  const auto join = [](std::vector<bool>& all, const std::vector<bool>& more) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] || more[i];
  };
  for (std::size_t i = 0; i < pass.steps.size(); ++i) {
    const PassStep& step = pass.steps[i];
    std::vector<bool> own(pass.steps.size());
    for (const std::uint32_t other : step.after) {
      join(own, ended[other]);
      own[other] = true;
    }
    const bool computes = step.kind == NodeKind::compute;
    if (computes ||
        (in_order && step.kind == NodeKind::collective && step.axis == GroupAxis::tensor && !step.along)) {
      join(on_device, own);
      own = on_device;
    }
    if (computes) on_device[i] = true;
    ended.push_back(std::move(own));
  }
  return ended;
}

bool run_alike(const Pass& a, const Pass& b, bool in_order) {
  const auto are_alike = [](PassStep one, PassStep other) {
    one.after = other.after = {};
    return one == other;
  };
  return std::ranges::equal(a.steps, b.steps, are_alike) &&
         ended_before(a, in_order) == ended_before(b, in_order);
}

}  // namespace

bool keeps_exchanges_in_order(const Plan& plan) {
  return plan.framework == Framework::pytorch && plan.host == Host::eager && issue_time_of(plan) > Time(0);
}

bool overlaps_nothing(Plan plan, const Model& model) {
  if (!plan.overlap_tensor || plan.tensor == 1 || plan.overlap_tensor_gradients || model.blocks.empty())
    return false;
  // Which has workspaces for it (lower/memory/role_memory.cc).
  if (plan.framework == Framework::megatron && plan.host != Host::compiled) return false;
  const ShardedModel with = shard_model(model, plan, 0, "plan");
  plan.overlap_tensor = false;
  const ShardedModel without = shard_model(model, plan, 0, "plan");
  const bool in_order = keeps_exchanges_in_order(plan);
  const auto are_alike = [&](const BlockShape& a, const BlockShape& b) {
    return run_alike(a.forward, b.forward, in_order) && run_alike(a.recompute, b.recompute, in_order) &&
           run_alike(a.backward, b.backward, in_order) && a.saved == b.saved && a.working == b.working;
  };
  return with.works == without.works && std::ranges::equal(with.shapes, without.shapes, are_alike);
}

std::string why_nothing_overlaps(const Plan& plan, const Model& model) {
  if (schedule_of(plan).overlaps_passes)
    return fmt::format("plan.schedule {} overlaps what tensor ranks exchange anyway", plan.schedule);
  if (!plan.sequence_parallel && keeps_exchanges_in_order(plan)) {
    return fmt::format(
        "PyTorch waits for every all-reduce; under {}plan.host compiled products would run beside what is "
        "exchanged",
        model.facts.sequence > 0 ? "plan.sequence_parallel or " : "");
  }
  return "no product of the model can run beside what tensor ranks exchange";
}

}  // namespace armilla
