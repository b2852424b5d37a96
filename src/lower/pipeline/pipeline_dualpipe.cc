#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

// The eight steps of DeepSeek's dualpipe.py (github.com/deepseek-ai/DualPipe). "Near" is the chain that
// starts on this rank's half of the pipeline, "far" the other; `depth` is the distance from the nearer end.
// Chunk 0 belongs to chain 0 and to the first half of the micro-batches.
std::vector<PipelineSlot> dualpipe_slots(std::int32_t ranks, std::int32_t rank, std::int32_t micro_batches) {
  const std::int32_t half = ranks / 2, each = micro_batches / 2;
  const std::int32_t depth = std::min(rank, ranks - 1 - rank);
  const std::int32_t near = rank < half ? 0 : 1, far = 1 - near;
  const std::int32_t inner = half - 1 - depth;  // ranks between this one and the middle
  SlotBuilder slots({0, each}, each);

  for (std::int32_t i = 0; i < 2 * inner; ++i) slots.forward(near);
  for (std::int32_t i = 0; i <= depth; ++i) {
    slots.forward(near);
    slots.forward(far);
  }
  for (std::int32_t i = 0; i < inner; ++i) {
    slots.input_gradient(far);
    slots.weight_gradient();
    slots.forward(far);
  }
  for (std::int32_t i = 0; i < each - ranks + depth + 1; ++i) {
    if (i == 0 && inner == 0) {
      // The two middle ranks do not overlap their first pair: each waits for the other's forward pass.
      slots.forward(near);
      slots.backward(far);
    } else {
      slots.forward_and_backward(near, far);
    }
    slots.forward_and_backward(far, near);
  }
  for (std::int32_t i = 0; i < inner; ++i) {
    slots.backward(far);
    slots.forward_and_backward(far, near);
  }
  // From the middle of the next step on weight gradients are put off, to fill the end.
  const std::int32_t backwards = 2 * (depth + 1);
  for (std::int32_t i = 0; i < backwards; ++i) {
    const std::int32_t chunk = i % 2 == 0 ? far : near;
    if (i > depth) {
      slots.input_gradient(chunk);
    } else {
      slots.backward(chunk);
    }
  }
  for (std::int32_t i = 0; i < inner; ++i) {
    slots.weight_gradient();
    slots.input_gradient(near);
  }
  while (slots.waiting() > 0) slots.weight_gradient();
  return slots.take_slots();
}

}  // namespace armilla
