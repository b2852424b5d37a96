// DualPipe: two copies of the model in opposite directions, each with half of the micro-batches; a forward
// pass hides the communication of the backward pass beside it (DeepSeek-AI 2024, section 3.2.1 and figure 5).
// p even, micro-batches even and at least 2p. Idles for (p/2 - 1)(F&B + B - 3W), F&B being such a pair, for F
// = W = B / 2 and the middle ranks.
#include <fmt/format.h>

#include "base/error.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

void check_dualpipe(const Plan& plan, const std::string& where) {
  require_one_chunk(plan, where);
  const std::int64_t p = plan.pipeline, m = plan.micro_batches;
  if (p % 2 != 0) {
    throw Error(where, fmt::format("plan.schedule {} with plan.pipeline {}", plan.schedule, p),
                fmt::format("it runs from both ends: plan.pipeline could be {}", nearest_multiples(2, p, 2)),
                {"plan.pipeline", "plan.schedule"});
  }
  if (micro_batch_rule(plan).allows(m)) return;
  throw Error(
      where,
      fmt::format("plan.schedule {} with plan.micro_batches {} and plan.pipeline {}", plan.schedule, m, p),
      fmt::format("it needs an even number, at least {}: plan.micro_batches could be {}", 2 * p,
                  nearest_multiples(2, m, 2 * p)),
      micro_batch_keys({"plan.schedule", "plan.pipeline"}));
}

std::vector<PipelineChunk> dualpipe_chunks(const Plan& plan, std::int32_t rank) {
  return {{0, rank}, {1, static_cast<std::int32_t>(plan.pipeline) - 1 - rank}};
}

// The eight steps of DeepSeek's dualpipe.py (github.com/deepseek-ai/DualPipe). "Near" is the chain that
// starts on this rank's half of the pipeline, "far" the other; `depth` is the distance from the nearer end.
// Chunk 0 belongs to chain 0 and to the first half of the micro-batches.
std::vector<PipelineSlot> dualpipe_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches) {
  const auto ranks = static_cast<std::int32_t>(plan.pipeline);
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
