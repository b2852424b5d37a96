// Lowering of a model under any parallel plan: Model x Plan -> Graph, one Program per role.
//
// A role is a pipeline rank (and an expert position where experts are loaded unevenly): ranks that differ
// only in tensor, context or data position run the same program. Passes, each its own file:
//   lower/sharded_model.h      operators and collectives of every block (tensor, sequence, context, expert)
//   lower/pipeline_schedule.h  the order of micro-batches; this file cuts the model into stages and joins
//                              them by sends and receives
//   lower/data_pass.h          gradient buckets, ZeRO-1/2/3, hybrid sharding, tied embeddings, optimizer,
//                              offload
// The device lane of a rank runs its nodes in order of id, so ids are in the order of the schedule. Sends and
// receives of activations overlap with computation (Plan::overlap_pipeline; otherwise the next computation
// waits for them).
// Cost: O(nodes); nodes = micro-batches x blocks of the stage x steps of a block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/memory.h"
#include "ir/model.h"
#include "ir/plan.h"
#include "lower/pipeline_schedule.h"
#include "lower/sharded_model.h"

namespace armilla {

struct Role {
  std::int64_t pipeline_rank = 0;
  std::int64_t expert_position = 0;
};

// Which blocks a pipeline rank holds, per chunk.
struct StageCut {
  std::vector<std::int64_t> first, end;  // per stage, blocks [first, end)
};
// By Plan::stage_blocks, or evenly by blocks with weights of their own: embedding and head blocks go to the
// first and last stage on top of their share, as frameworks do.
StageCut cut_stages(const ShardedModel& model, const Plan& plan, const std::string& where);

struct LoweredJob {
  Graph graph;
  std::vector<Role> roles;            // per program
  std::vector<ShardedModel> sharded;  // per expert position that differs
  PipelineOrder order;
  StageCut stages;
  std::vector<std::string> notes;
};

// The plan must be resolved (lower/resolve_plan.h), the model that of a micro-batch. `iterations`: how many
// in a row, for the asynchronous schedule. Throws Error for plans that are not legal for the model and for
// absurdly large graphs.
LoweredJob lower_hybrid(const Model& model, const Plan& plan, std::int64_t iterations = 1);

}  // namespace armilla
