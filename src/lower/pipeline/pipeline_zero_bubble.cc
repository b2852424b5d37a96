#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

// 1F1B in which rank r puts off its weight gradients by r micro-batches: it then keeps as many activations as
// rank 0 of 1F1B, and the last rank's weight gradients fall into the time it would wait at the end.
std::vector<PipelineSlot> zb_h1_slots(std::int32_t ranks, std::int32_t rank, std::int32_t micro_batches) {
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

// The handcrafted order of Qi et al. 2023, section 6 (figure 5), for F = B = W: rank r holds stage r as chunk
// 0 and stage 2p - 1 - r as chunk 1. Laid out for at least 2p - 1 micro-batches, which fill the pipeline.
std::vector<PipelineSlot> zb_v_slots(std::int32_t ranks, std::int32_t rank, std::int32_t micro_batches) {
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
