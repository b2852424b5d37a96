// GPipe: all forward passes, then all backward passes (Huang et al. 2019, figure 2). For equal stages of
// forward F and backward B = input gradient + W and free communication a rank idles for (p - 1)(F + B).
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

// Backward in the opposite order: the last micro-batch's activations are the freshest.
std::vector<PipelineSlot> gpipe_slots(const Plan&, std::int32_t, std::int32_t micro_batches) {
  std::vector<PipelineSlot> slots;
  for (std::int32_t i = 0; i < micro_batches; ++i) slots.push_back({PipelineAction::forward, i, 0, false});
  for (std::int32_t i = micro_batches; i-- > 0;) slots.push_back({PipelineAction::backward, i, 0, false});
  return slots;
}

}  // namespace armilla
