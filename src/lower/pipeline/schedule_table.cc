// The table of pipeline schedules. A schedule is a row here and a source beside this one.
#include "base/error.h"
#include "lower/pipeline/pipeline_builder.h"

namespace armilla {

// Declared here and not in a header: the table is all that needs them.
using Chunks = std::vector<PipelineChunk>;
using Slots = std::vector<PipelineSlot>;
Slots gpipe_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
Slots one_f_one_b_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
void check_interleaved(const Plan& plan, const std::string& where);
Slots interleaved_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
void check_combined(const Plan& plan, const std::string& where);
Slots combined_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
Slots zb_h1_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
void check_zb_v(const Plan& plan, const std::string& where);
Chunks zb_v_chunks(const Plan& plan, std::int32_t rank);
Slots zb_v_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
void check_dualpipe(const Plan& plan, const std::string& where);
Chunks dualpipe_chunks(const Plan& plan, std::int32_t rank);
Slots dualpipe_slots(const Plan& plan, std::int32_t rank, std::int32_t micro_batches);
void check_2bw(const Plan& plan, const std::string& where);

namespace {

constexpr PipelineScheduleInfo kSchedules[] = {
    {.name = "gpipe",
     .help = "all forward passes, then all backward passes (Huang et al. 2019)",
     .check = require_one_chunk,
     .chunks = round_robin_chunks,
     .slots = gpipe_slots,
     .goes_back_last = true},
    {.name = "1f1b",
     .help = "one forward, one backward (Narayanan et al. 2019)",
     .check = require_one_chunk,
     .chunks = round_robin_chunks,
     .slots = one_f_one_b_slots,
     .over_chunks = "interleaved"},
    {.name = "interleaved",
     .help = "1F1B over several model chunks per rank (Narayanan et al. 2021)",
     .check = check_interleaved,
     .chunks = round_robin_chunks,
     .slots = interleaved_slots,
     .in_groups = true},
    {.name = "combined-1f1b",
     .help = "forward beside backward passes, which hides all-to-alls of experts (Megatron-Core)",
     .check = check_combined,
     .chunks = round_robin_chunks,
     .slots = combined_slots,
     .overlaps_passes = true,
     .in_groups = true},
    {.name = "zb-h1",
     .help = "zero bubble with the memory of 1F1B (Qi et al. 2023)",
     .check = require_one_chunk,
     .chunks = round_robin_chunks,
     .slots = zb_h1_slots,
     .passes = 3},
    {.name = "zb-v",
     .help = "zero bubble, two chunks per rank in a V (Qi et al. 2023, 2024)",
     .check = check_zb_v,
     .chunks = zb_v_chunks,
     .slots = zb_v_slots,
     .passes = 3,
     .laid_out = 2,
     .usual_chunks = 2},
    {.name = "dualpipe",
     .help = "two directions, two copies of the weights (DeepSeek-AI 2024)",
     .check = check_dualpipe,
     .chunks = dualpipe_chunks,
     .slots = dualpipe_slots,
     .passes = 3,
     .chains = 2,
     .overlaps_passes = true,
     .filled_by = 2},
    {.name = "pipedream-2bw",
     .help = "asynchronous, two weight versions (Narayanan et al. 2021)",
     .check = check_2bw,
     .chunks = round_robin_chunks,
     .slots = one_f_one_b_slots,
     .flushes = false,
     .weight_versions = 2,
     .filled_by = 1},
};

}  // namespace

std::span<const PipelineScheduleInfo> pipeline_schedules() {
  return kSchedules;
}

// Called for every pass and bucket of a job: a plain search before the error with its suggestions.
const PipelineScheduleInfo& schedule_of(const Plan& plan) {
  for (const PipelineScheduleInfo& schedule : kSchedules) {
    if (schedule.name == plan.schedule) return schedule;
  }
  return find_component("schedule", pipeline_schedules(), plan.schedule, "plan");
}

}  // namespace armilla
