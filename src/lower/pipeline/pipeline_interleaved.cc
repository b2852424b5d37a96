// Interleaved 1F1B: v chunks per rank, micro-batches in groups of p (Narayanan et al. 2021, "Efficient
// Large-Scale Language Model Training", figure 4). Idles 1/v as long as 1F1B: (p - 1)(F + B) / v.
// Combined 1F1B: the same in pairs of a forward and a backward pass, for any v, with one forward pass more in
// the warm-up, so that the all-to-alls of experts hide behind the other pass (Megatron-Core, schedules.py and
// combined_1f1b.py, overlap_moe_expert_parallel_comm). Idles for (F + B) / v more where nothing is hidden.
#include <fmt/format.h>

#include "base/error.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

void check_interleaved(const Plan& plan, const std::string& where) {
  const std::int64_t p = plan.pipeline, m = plan.micro_batches;
  if (plan.virtual_stages == 1) {
    throw Error(where, fmt::format("plan.schedule {} with plan.virtual_stages 1", plan.schedule),
                "it needs several model chunks per rank: plan.virtual_stages 2, or plan.schedule 1f1b",
                {"plan.virtual_stages", "plan.schedule"});
  }
  if (micro_batch_rule(plan).allows(m)) return;
  throw Error(
      where,
      fmt::format("plan.schedule {} takes micro-batches in groups of plan.pipeline {}, and {} is not a "
                  "multiple of it",
                  plan.schedule, p, m),
      fmt::format("plan.micro_batches could be {}", nearest_multiples(p, m, p)),
      micro_batch_keys({"plan.schedule", "plan.pipeline"}));
}

void check_combined(const Plan& plan, const std::string& where) {
  if (plan.virtual_stages > 1) check_interleaved(plan, where);
}

namespace {

// Every chunk takes a group of `ranks` micro-batches before the next chunk does. The warm-up reaches the last
// chunk (ranks per chunk before it) and gives the ranks behind two passes each to answer. Pairs need one pass
// more, so that a backward pass has another micro-batch's forward pass beside it on the last rank, too.
std::vector<PipelineSlot> slots_in_groups(const Plan& plan, std::int32_t rank, std::int32_t micro_batches,
                                          bool pairs) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  const auto chunks = static_cast<std::int32_t>(plan.virtual_stages);
  SlotBuilder slots(std::vector<std::int32_t>(static_cast<std::size_t>(chunks)), micro_batches);
  const std::int32_t passes = micro_batches * chunks;
  const auto chunk_of = [=](std::int32_t pass) { return pass % (ranks * chunks) / ranks; };
  const std::int32_t warm_up =
      std::min((ranks - 1 - rank) * 2 + (chunks - 1) * ranks + (pairs ? 1 : 0), passes);
  for (std::int32_t pass = 0; pass < passes + warm_up; ++pass) {
    const std::int32_t back = pass < warm_up ? 0 : chunks - 1 - chunk_of(pass - warm_up);
    if (pairs && pass >= warm_up && pass < passes) {
      slots.forward_and_backward(chunk_of(pass), back);
      continue;
    }
    if (pass < passes) slots.forward(chunk_of(pass));
    if (pass >= warm_up) slots.backward(back);
  }
  return slots.take_slots();
}

}  // namespace

std::vector<PipelineSlot> interleaved_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  return slots_in_groups(plan, rank, micro_batches, false);
}

std::vector<PipelineSlot> combined_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  return slots_in_groups(plan, rank, micro_batches, true);
}

}  // namespace armilla
