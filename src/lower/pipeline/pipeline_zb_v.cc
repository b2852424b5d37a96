// ZB-V: two chunks per rank in a V, stages r and 2p - 1 - r (Qi et al. 2023, section 6, the handcrafted order
// for F = B = W; V-ZB of Qi et al. 2024, "Pipeline Parallelism with Controllable Memory"). Idles not at all
// but for the r chunk passes before rank r's first and after the last of the others (F = B = W, m >= 2p - 1).
#include <fmt/format.h>

#include "base/error.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

void check_zb_v(const Plan& plan, const std::string& where) {
  if (plan.virtual_stages == 2) return;
  throw Error(
      where, fmt::format("plan.schedule {} with plan.virtual_stages {}", plan.schedule, plan.virtual_stages),
      "it has two model chunks per rank: plan.virtual_stages 2", {"plan.virtual_stages", "plan.schedule"});
}

std::vector<PipelineChunk> zb_v_chunks(const Plan& plan, std::int32_t rank) {
  return {{0, rank}, {0, 2 * static_cast<std::int32_t>(plan.pipeline) - 1 - rank}};
}

// Figure 5. Laid out for at least 2p - 1 micro-batches, which fill the pipeline.
std::vector<PipelineSlot> zb_v_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  SlotBuilder slots({0, 0}, micro_batches);
  const std::int32_t planned = std::max(2 * ranks - 1, micro_batches);
  const auto backward = [&](std::int32_t chunk) {
    slots.input_gradient(chunk);
    slots.weight_gradient(chunk);
  };
  // Until the first micro-batch comes back up the V as chunk 1 ...
  for (std::int32_t i = 0; i < 2 * (ranks - rank) - 1; ++i) slots.forward(0);
  // ... until its gradient comes down ...
  for (std::int32_t i = 0; i < rank; ++i) {
    slots.forward(1);
    slots.forward(0);
  }
  // ... until that arrives at chunk 0.
  for (std::int32_t i = 0; i < ranks - rank; ++i) {
    slots.forward(1);
    backward(1);
  }
  while (slots.forwards(1) < planned) {
    if (slots.forwards(0) < planned) slots.forward(0);
    backward(0);
    slots.forward(1);
    backward(1);
  }
  for (std::int32_t i = 0; i < rank; ++i) {
    slots.input_gradient(0);
    slots.input_gradient(1);
  }
  for (std::int32_t i = 0; i < ranks - rank; ++i) backward(0);
  for (std::int32_t i = 0; i < rank; ++i) slots.weight_gradient(1);
  for (std::int32_t i = 0; i < rank; ++i) slots.weight_gradient(0);
  return slots.take_slots();
}

}  // namespace armilla
