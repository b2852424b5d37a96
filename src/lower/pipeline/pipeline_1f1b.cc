// 1F1B: a warm-up of p - 1 - rank forward passes, then one forward, one backward (Narayanan et al. 2019).
// Idles as GPipe, (p - 1)(F + B), and keeps p - rank micro-batches instead of all.
// 2BW is 1F1B without a flush between iterations (Narayanan et al. 2021, "Memory-Efficient Pipeline-Parallel
// DNN Training"); at least p micro-batches, so that two versions of the weights do.
#include <fmt/format.h>

#include "base/error.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

std::vector<PipelineChunk> round_robin_chunks(const Plan& plan, std::int32_t rank) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  std::vector<PipelineChunk> chunks;
  for (std::int32_t chunk = 0; chunk < plan.virtual_stages; ++chunk)
    chunks.push_back({0, chunk * ranks + rank});
  return chunks;
}

void require_one_chunk(const Plan& plan, const std::string& where) {
  if (plan.virtual_stages == 1) return;
  throw Error(where,
              fmt::format("plan.schedule {} with plan.virtual_stages {}", plan.schedule, plan.virtual_stages),
              "it has one model chunk per rank: plan.virtual_stages 1, or plan.schedule interleaved",
              {"plan.virtual_stages", "plan.schedule"});
}

void check_2bw(const Plan& plan, const std::string& where) {
  require_one_chunk(plan, where);
  if (micro_batch_rule(plan).allows(plan.micro_batches)) return;
  throw Error(where,
              fmt::format("plan.schedule {} with plan.micro_batches {} and plan.pipeline {}", plan.schedule,
                          plan.micro_batches, plan.pipeline),
              fmt::format("two versions of the weights need at least as many micro-batches as stages: "
                          "plan.micro_batches could be {}",
                          plan.pipeline),
              micro_batch_keys({"plan.schedule", "plan.pipeline"}));
}

std::vector<PipelineSlot> one_f_one_b_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  SlotBuilder slots({0}, micro_batches);
  const std::int32_t warm_up = std::min(ranks - 1 - rank, micro_batches);
  for (std::int32_t i = 0; i < warm_up; ++i) slots.forward(0);
  for (std::int32_t i = warm_up; i < micro_batches; ++i) {
    slots.forward(0);
    slots.backward(0);
  }
  for (std::int32_t i = 0; i < warm_up; ++i) slots.backward(0);
  return slots.take_slots();
}

}  // namespace armilla
