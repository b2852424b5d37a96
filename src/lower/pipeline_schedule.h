// Pipeline schedules: in which order every pipeline rank works on micro-batches. Pure data; no times.
//
// The model is cut into `stages` consecutive stages. A pipeline rank holds one or several of them as its
// chunks; `chain` tells copies of the model apart (DualPipe runs two, in opposite directions, each with half
// of the micro-batches).
// Each schedule is one row of a table (name, help and what sets it apart) and one source, lower/pipeline/
// pipeline_<name>.cc, which says where it comes from and how long its ranks idle.
// Cost: O(ranks x micro-batches x chunks).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
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

struct PipelineScheduleInfo {
  std::string_view name;  // "1f1b"
  std::string_view help;
  std::span<const ParameterInfo> parameters = {};
  // Throws Error for model chunks, degrees and micro-batches that do not go with it.
  void (*check)(const Plan& plan, const std::string& where);
  std::vector<PipelineChunk> (*chunks)(const Plan& plan, std::int32_t rank);
  // Of one flush, in order.
  std::vector<PipelineSlot> (*slots)(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
  std::int32_t passes = 2;            // of a micro-batch and chunk: 3 where B and W are apart
  std::int64_t laid_out = 0;          // slots() counts with so many micro-batches per rank at least
  bool flushes = true;                // at the end of an iteration; false: iterations overlap
  std::int64_t weight_versions = 1;   // kept on every rank
  std::int32_t chains = 1;            // copies of the model, which sum their gradients
  bool overlaps_passes = false;       // a forward pass beside a backward pass
  bool in_groups = false;             // of plan.pipeline micro-batches
  bool goes_back_last = false;        // all forward passes come before all backward ones
  std::int64_t filled_by = 0;         // micro-batches per rank, at least
  std::int64_t usual_chunks = 1;      // per rank, where a plan names no other number
  std::string_view over_chunks = {};  // the schedule that it is called over several chunks per rank
};
std::span<const PipelineScheduleInfo> pipeline_schedules();
// That of the plan. Throws Error for a name that there is not.
const PipelineScheduleInfo& schedule_of(const Plan& plan);

// Micro-batches come in multiples of `unit`, at least `least` of them.
struct MicroBatchRule {
  std::int64_t unit = 1, least = 1;
  bool allows(std::int64_t micro_batches) const {
    return micro_batches >= least && micro_batches % unit == 0;
  }
};
MicroBatchRule micro_batch_rule(const Plan& plan);
// Whether its slots, over so many iterations, are few enough to be laid out.
bool is_schedulable(const Plan& plan, std::int64_t iterations);

// What a plan's schedule asks of its degrees and micro-batches. Throws Error naming the clashing numbers and
// the nearest legal ones.
void check_schedule(const Plan& plan, std::int64_t iterations, const std::string& where);

// Throws as check_schedule does. `iterations` > 1 repeats the schedule with
// micro-batch numbers that go on; the asynchronous one then has no flush between them.
PipelineOrder pipeline_order(const Plan& plan, std::int64_t iterations, const std::string& where);

// Whether a plan of one pipeline rank takes the passes of micro-batches as 1F1B does, so that its schedule
// does not matter: GPipe keeps all micro-batches even so, zero-bubble schedules cut the backward pass, passes
// may be combined, chunks of the model take turns, and without a flush iterations overlap.
bool orders_like_1f1b(const Plan& plan);

// Most forward passes of a chunk whose backward pass (input gradient) is not done, per rank and chunk, and
// their largest sum over the chunks of a rank.
std::vector<std::vector<std::int64_t>> in_flight(const PipelineOrder& order);
std::vector<std::int64_t> most_in_flight(const PipelineOrder& order);

}  // namespace armilla
