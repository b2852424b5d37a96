// ZB-H1: 1F1B with the backward pass cut into input gradient (B) and weight gradient (W), which rank r puts
// off by r micro-batches; W fills the bubble at the memory of 1F1B (Qi et al. 2023, section 3). Idles for (p
// - 1)(F + B - 2W), B being both gradients.
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

// Rank r then keeps as many activations as rank 0 of 1F1B, and the last rank's weight gradients fall into the
// time it would wait at the end.
std::vector<PipelineSlot> zb_h1_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
  SlotBuilder slots({0}, micro_batches);
  const std::int32_t warm_up = std::min(ranks - 1 - rank, micro_batches);
  for (std::int32_t i = 0; i < micro_batches + warm_up; ++i) {
    if (i < micro_batches) slots.forward(0);
    if (i < warm_up) continue;
    slots.input_gradient(0);
    if (slots.waiting() > rank) slots.weight_gradient();
  }
  while (slots.waiting() > 0) slots.weight_gradient();
  return slots.take_slots();
}

}  // namespace armilla
