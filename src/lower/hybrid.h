// Lowering of a model under any parallel plan: Model x Plan -> Graph, one Program per role.
//
// A role is a pipeline rank (and an expert position where experts are loaded unevenly): ranks that differ
// only in tensor, context or data position run the same program. Passes, each its own file:
//   lower/sharded_model.h      operators and collectives of every block (tensor, sequence, context, expert)
//   lower/pipeline_schedule.h  the order of micro-batches; this file cuts the model into stages and joins
//                              them by sends and receives
//   lower/data/data_pass.h     gradient buckets, ZeRO-1/2/3, hybrid sharding, tied embeddings, optimizer,
//                              offload
// The device lane of a rank runs its nodes in order of id, so ids are in the order of the schedule. Sends and
// receives of activations overlap with computation (Plan::overlap_pipeline; otherwise the next computation
// waits for them).
// Cost: O(nodes); nodes = micro-batches that are written x blocks of the stage x steps of a block.
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
  friend bool operator==(const StageCut&, const StageCut&) = default;
};
// By Plan::stage_blocks (of all blocks, or of the layers alone), or evenly by layers, that is blocks with
// weights of their own that are neither embedding nor head: these go to the first and last stage on top of
// their share, as frameworks do. Where layers do not divide, the last and the first stage are the first to
// get fewer.
StageCut cut_stages(const ShardedModel& model, const Plan& plan, const std::string& where);

// Whether Recompute::block repeats all blocks that Recompute::full does.
bool repeats_all(const ShardedModel& model, const Plan& plan, const StageCut& stages);

// The shape of each block of a stage in order, with Recompute::block the recomputed one for the first layers.
std::vector<std::uint32_t> stage_shapes(const ShardedModel& model, const Plan& plan, const StageCut& stages,
                                        std::int64_t stage);

// Of an iteration on all ranks (ir/derived/metrics.h), without its graph.
double hardware_flops(const ShardedModel& model, const StageCut& stages, const Plan& plan);

// What a rank sends of a stage's output: all of it, or its part (Plan::scatter_gather).
Bytes sent_between_stages(Bytes output, const Plan& plan);

struct NodeRange {
  std::uint32_t first = 0, end = 0;  // nodes [first, end)
};

struct LoweredJob {
  Graph graph;
  std::vector<Role> roles;            // per program
  std::vector<ShardedModel> sharded;  // per expert position that differs
  PipelineOrder order;
  StageCut stages;
  // Per program and slot of its pipeline rank (PipelineOrder::slots): its nodes, messages included. Slots
  // that run beside each other share one range.
  std::vector<std::vector<NodeRange>> slot_nodes;
  std::vector<std::string> notes;
};

// Every micro-batch, or loops instead of many (lower/jobs/job_loops.h) where a job has any. Of a job with
// loops the order and the nodes of slots are those of what is written.
enum class Written : std::uint8_t { whole, loops };

// The plan must be resolved (lower/plan.h), the model that of a micro-batch. `iterations`: how many
// in a row, for the asynchronous schedule. `host_bandwidth`: of a device's link to its CPU, for offload; 0 is
// unknown and taken as kHostBandwidth. Throws Error for plans that are not legal for the model and for
// absurdly large graphs.
LoweredJob lower_hybrid(const Model& model, const Plan& plan, std::int64_t iterations = 1,
                        Bandwidth host_bandwidth = {}, Written written = Written::whole);

// The same for models that are divided already: one for every expert position, or one for all of them.
LoweredJob lower_sharded(std::vector<ShardedModel> sharded, const Plan& plan, std::int64_t iterations = 1,
                         Bandwidth host_bandwidth = {}, Written written = Written::whole);

// PCIe 4.0 with 16 lanes: 16 GT/s x 16 x 128/130 bits.
inline constexpr Bandwidth kHostBandwidth = gigabytes_per_second(31.5);

}  // namespace armilla
