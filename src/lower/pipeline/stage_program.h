// The program of one role of lower/hybrid.h: its pipeline rank's slots in order, each with the passes of its
// blocks and the messages to and from the neighbouring stages.
//
//   forward          receive activations; forward passes in order; send them on
//   backward         receive gradients; per block in reverse: recomputation, backward pass; send them on
//   input_gradient   the same without the steps that make weight gradients
//   weight_gradient  those steps alone, in reverse order of blocks
// Each pass waits for the communications that ended the pass before it, as frameworks that call collectives
// in the compute stream do. Under DualPipe communication has streams of its own, one for forward and one for
// backward passes: a slot waits only for what its own micro-batch needs, and the computations of two slots
// beside each other are two chains. The device goes on with the one that is ready; where both are, they take
// turns from one communication to the next (DeepSeek-AI 2024, section 3.2.1, figure 4: attention, dispatch,
// MLP, combine). Stages that are neighbours on one rank need no messages. With Plan::overlap_pipeline a
// receive is posted one slot ahead and nothing waits for sends; without, the next slot waits for them. With
// Plan::scatter_gather an all-gather among tensor ranks follows a receive, and the slot waits for that.
// Messages of a stage boundary and direction share a tag: micro-batches cross it in one order. Offloaded
// activations leave after the forward pass of their block and return one pass ahead of its backward pass.
// Cost: O(nodes); a node costs a few dozen nanoseconds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "lower/data/job_tables.h"
#include "lower/data/weight_buckets.h"
#include "lower/fused_slots.h"
#include "lower/hybrid.h"
#include "lower/pipeline/pass_template.h"

namespace armilla {

// What a stage program is made from; shared by the roles of a job.
struct StageJob {
  const Plan& plan;
  const PipelineOrder& order;
  const StageCut& stages;
  std::int64_t iterations = 1;
  Bandwidth host_bandwidth;
  // Per tied number, the pipeline ranks that hold the weight.
  std::vector<std::vector<std::int64_t>> holders;
  Fusion fusion;
};

// Of an emitted program.
struct StageProgram {
  std::vector<NodeRange> slots;  // the nodes of each
  // Delays that stand for slots, and the time of each in which nothing is computed.
  std::vector<std::pair<std::uint32_t, Time>> fused;
  std::vector<FusedSlotEnd> ends;  // of slots, where any are fused
  bool host_is_ahead = true;       // lower/fused_slots.h
};

std::vector<RoleChunk> role_chunks(const ShardedModel& model, const StageJob& job,
                                   std::int64_t pipeline_rank);

// An upper bound of its nodes; saturates.
std::int64_t most_nodes(const std::vector<RoleChunk>& chunks, const StageJob& job, std::int64_t pipeline_rank,
                        TemplateCache& templates);

// Fills `program`.
StageProgram emit_stage_program(const ShardedModel& model, const StageJob& job,
                                const std::vector<RoleChunk>& chunks, std::int64_t pipeline_rank,
                                TemplateCache& templates, JobTables& tables, Program& program);

}  // namespace armilla
