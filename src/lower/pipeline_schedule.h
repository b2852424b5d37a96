// Pipeline schedules: in which order every pipeline rank works on micro-batches. Pure data; no times.
//
// The model is cut into `stages` consecutive stages. A pipeline rank holds one or several of them as its
// chunks; `chain` tells copies of the model apart (DualPipe runs two, in opposite directions, each with half
// of the micro-batches).
//   gpipe        all forward, then all backward (Huang et al. 2019, figure 2)
//   1f1b         warm-up of p - 1 - rank forwards, then one forward, one backward (Narayanan et al. 2019)
//   interleaved  1F1B over v chunks per rank, micro-batches in groups of p (Narayanan et al. 2021, figure 4)
//   zb-h1        1F1B with the backward pass cut into input gradient (B) and weight gradient (W), which rank
//                r puts off by r micro-batches; W fills the bubble at the memory of 1F1B (Qi et al. 2023,
//                section 3)
//   zb-v         two chunks per rank in a V: stages r and 2p - 1 - r (Qi et al. 2023, section 6, the
//                handcrafted order for F = B = W; V-ZB of Qi et al. 2024, "Pipeline Parallelism with
//                Controllable Memory")
//   dualpipe     DeepSeek-AI 2024, section 3.2.1 and figure 5; p even, micro-batches even and at least 2p
//   2bw          1F1B without a flush between iterations (Narayanan et al. 2021, "Memory-Efficient
//                Pipeline-Parallel DNN Training"); at least p micro-batches, so that two versions do
// Idle time of a rank for equal stages of forward F and backward B = input gradient + W, where communication
// is free: gpipe and 1f1b (p - 1)(F + B); interleaved the same / v; zb-h1 (p - 1)(F + B - 2W); zb-v none but
// for the r chunk passes before rank r's first and after the last of the others (F = B = W, m >= 2p - 1);
// dualpipe (p/2 - 1)(F&B + B - 3W), F&B being an overlapped pair, for F = W = B / 2 and the middle ranks.
// Cost: O(ranks x micro-batches x chunks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/plan.h"

namespace armilla {

enum class PipelineAction : std::uint8_t {
  forward,
  backward,         // both gradients
  input_gradient,   // B
  weight_gradient,  // W
};

struct PipelineSlot {
  PipelineAction action = PipelineAction::forward;
  std::int32_t micro_batch = 0;  // of the whole replica
  std::int32_t chunk = 0;        // of this rank
  // Runs beside the slot before it (DualPipe overlaps a forward with a backward): their communication hides
  // behind the other's computation.
  bool beside_previous = false;
};

struct PipelineChunk {
  std::int32_t chain = 0;
  std::int32_t stage = 0;  // 0 .. stages - 1, in model order
};

struct PipelineOrder {
  std::int32_t stages = 1;
  std::int32_t chains = 1;
  std::vector<std::vector<PipelineChunk>> chunks;  // [pipeline rank][chunk]
  std::vector<std::vector<PipelineSlot>> slots;    // [pipeline rank], in order

  // The pipeline rank that holds a stage of a chain, and as which of its chunks.
  struct Place {
    std::int32_t rank = 0, chunk = 0;
  };
  Place place(std::int32_t chain, std::int32_t stage) const;
};

// What a plan's schedule asks of its degrees and micro-batches. Throws Error naming the clashing numbers and
// the nearest legal ones.
void check_schedule(const Plan& plan, std::int64_t iterations, const std::string& where);

// Throws as check_schedule does. `iterations` > 1 repeats the schedule with
// micro-batch numbers that go on; the asynchronous one then has no flush between them.
PipelineOrder pipeline_order(const Plan& plan, std::int64_t iterations, const std::string& where);

// Most forward passes of a chunk whose backward pass (input gradient) is not done, per rank and chunk, and
// their largest sum over the chunks of a rank.
std::vector<std::vector<std::int64_t>> in_flight(const PipelineOrder& order);
std::vector<std::int64_t> most_in_flight(const PipelineOrder& order);

}  // namespace armilla
