#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

// Backward in the opposite order: the last micro-batch's activations are the freshest.
std::vector<PipelineSlot> gpipe_slots(std::int32_t micro_batches) {
  std::vector<PipelineSlot> slots;
  for (std::int32_t i = 0; i < micro_batches; ++i) slots.push_back({PipelineAction::forward, i, 0, false});
  for (std::int32_t i = micro_batches; i-- > 0;) slots.push_back({PipelineAction::backward, i, 0, false});
  return slots;
}

std::vector<PipelineSlot> one_f_one_b_slots(std::int32_t ranks, std::int32_t rank,
                                            std::int32_t micro_batches) {
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

// Every chunk takes a group of `ranks` micro-batches before the next chunk does. The warm-up reaches the last
// chunk (ranks per chunk before it) and gives the ranks behind two passes each to answer.
std::vector<PipelineSlot> interleaved_slots(std::int32_t ranks, std::int32_t rank, std::int32_t chunks,
                                            std::int32_t micro_batches) {
  SlotBuilder slots(std::vector<std::int32_t>(static_cast<std::size_t>(chunks)), micro_batches);
  const std::int32_t passes = micro_batches * chunks;
  const auto chunk_of = [=](std::int32_t pass) { return pass % (ranks * chunks) / ranks; };
  const std::int32_t warm_up = std::min((ranks - 1 - rank) * 2 + (chunks - 1) * ranks, passes);
  for (std::int32_t pass = 0; pass < passes + warm_up; ++pass) {
    if (pass < passes) slots.forward(chunk_of(pass));
    if (pass >= warm_up) slots.backward(chunks - 1 - chunk_of(pass - warm_up));
  }
  return slots.take_slots();
}

}  // namespace armilla
