// Memory of every role of a hybrid-parallel job.
//
//   weights      parameters of the role's blocks in the plan's weight type; ZeRO-3: the shard
//   gradients    in the plan's gradient type; ZeRO-2 and 3: the shard
//   optimizer    master weights (where weights are narrower than fp32) and state_words x 4 bytes per
//                parameter; ZeRO-1 to 3: the shard (Rajbhandari et al. 2020, section 3.1 and figure 1)
//   activations  BlockShape::saved x the micro-batches in flight of the schedule (lower/pipeline_schedule.h);
//                Korthikanti et al. 2022, equations 1 to 6 and table 2 for transformers
//   communication buffers   gradient buckets, gathered weights of ZeRO-3, boundary activations
//   temporary    the largest BlockShape::working
//   fragmentation           kFragmentation of all the others: what a caching allocator loses
// DualPipe holds two copies of the weights, 2BW two versions.
#pragma once

#include <string>
#include <vector>

#include "ir/machine.h"
#include "ir/memory.h"
#include "ir/plan.h"
#include "lower/hybrid.h"

namespace armilla {

// Of everything a rank allocates.
inline constexpr double kFragmentation = 0.04;

// One entry per program of the job.
std::vector<RoleMemory> hybrid_memory(const LoweredJob& job, const Plan& plan, const Device& device);

// What would make it fit, the smallest change first, each with the peak it would lead to: "recompute
// selective: 61.2 GiB". Tries recompute, ZeRO, sequence parallelism, offload, larger tensor and pipeline
// degrees by lowering again. Empty when it fits or nothing helps.
std::vector<std::string> memory_advice(const Model& model, const Plan& plan, const Device& device);

}  // namespace armilla
