// Memory of a rank: what a plan keeps on a device, what frameworks add, and what would save some.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/machine.h"
#include "ir/memory.h"
#include "ir/model.h"
#include "ir/plan.h"
#include "lower/hybrid.h"

namespace armilla {

// Memory of every role of a hybrid-parallel job.
//
//   weights      parameters of the role's blocks in the plan's weight type; ZeRO-3: the shard
//   gradients    in the plan's gradient type; ZeRO-2 and 3: the shard; whole with Plan::no_sync and more
//                than one micro-batch. PyTorch's, in its parameters' type, are made by the first backward
//                pass block by block: those that are there at the peak. Where they are wider, narrow ones are
//                made beside them so, by every pass, and added up when it is over
//   optimizer    master weights (where weights are narrower than fp32) and state_words x 4 bytes per
//                parameter; ZeRO-1 to 3: the shard (Rajbhandari et al. 2020, section 3.1 and figure 1). In a
//                narrower Plan::state_dtype: states alone, of its size
//   activations  BlockShape::saved, from a block's forward pass to the end of its last backward pass, in the
//                order of the schedule (lower/memory/activation_walk.h); Korthikanti et al. 2022, equations 1
//                to 6 and table 2 for transformers. Offloaded: those of the block at work and of one more,
//                which is on its way
//   communication buffers   ZeRO-2 and 3: two gradient buckets (without them buckets are parts of the
//                gradients); gathered weights of ZeRO-3: a block, with prefetch its neighbour, of each of the
//                passes that run beside each other, or all of them when they are not resharded; what tensor
//                parallelism exchanges and PyTorch frees late, as long as there is room for it; boundary
//                activations and their gradients, coming and going
//   temporary    BlockShape::working of the block at the peak; without accumulation fusion the gradient of
//                its largest weight, too
//   fragmentation           kFragmentation of all of these but what is freed late: what a caching allocator
//                loses; and what arrays that exchange weights under ZeRO-1 leave idle
//   framework    driver, context and buffers of the collective library (framework_memory, below), on top of
//                the peak
// The peak is that of the walk over the order, not a sum of peaks: activations and temporary are those of the
// moment when their sum, gradients included, is largest. Blocks of a slot come and go one by one.
// What differs by Plan::framework and host: docs/models/memory.md, "Frameworks".
// DualPipe holds two copies of the weights, 2BW two versions.
// NOT modelled: output gradients between B and W of zero-bubble schedules (activations stay whole until W
// instead), parameter buffers' padding.
// Cost: O(slots + blocks) per program.

// Of everything a rank allocates.
inline constexpr double kFragmentation = 0.04;

// One entry per program of the job. RoleMemory::most_in_flight counts passes of model chunks;
// RoleMemory::over_time follows the blocks of every pass; slots beside each other, and those whose
// activations are offloaded, are one step each, at what they need at most.
std::vector<RoleMemory> hybrid_memory(const LoweredJob& job, const Plan& plan, const Device& device);

// Of the role that needs most, without an execution graph. Nothing where the plan is not legal.
std::optional<MemoryUse> largest_use(const Model& model, const Plan& plan, const Device& device);
// Of a model that is divided already, by a legal plan.
MemoryUse largest_use(const ShardedModel& model, const StageCut& stages, const PipelineOrder& order,
                      const Plan& plan, const Device& device);

// What would make it fit, the smallest change first, each with what would be needed then (MemoryUse::needed):
// "recompute selective: 61.20 GiB". Tries recompute, ZeRO, sequence parallelism, offload, smaller
// micro-batches, larger tensor and pipeline degrees (of the same ranks and global batch) by cutting the model
// again; where none is enough alone, the first that are together. Empty when it fits or nothing helps.
std::vector<std::string> memory_advice(const Model& model, const Plan& plan, const Device& device);

// What a rank's device holds beside the tensors of the job, outside of the framework's allocator:
//
//   Device::reserved + Device::communicator_buffers x communicators(plan)
//
// `reserved` is the driver's share and the context with its kernels; a communicator is a group of ranks (of
// tensor, context, data, expert, sharding or pipeline parallelism) with another rank in it, and its buffers
// are NCCL's or RCCL's. Both are the device's figures (machines/README.md), 0 for a device that does not say.
// Fragmentation is counted with the tensors (above). NOT modelled: workspaces of libraries,
// symmetric or user-registered buffers, other processes on the device.

// Groups of more than one rank that a rank is in.
std::int64_t communicators(const Plan& plan);
void set_framework_memory(const Plan& plan, const Device& device, MemoryUse& use);
Bytes framework_memory(const Plan& plan, const Device& device);

// Memory options of a plan that save nothing: told, because they cost time. Each is judged by the peak that
// the same plan has without it (ZeRO: with the stage before), by the equations above and with
// even expert loads. Cost: that of cutting the model once more per option.

// "--recompute selective saves no memory: ...", one sentence each. `plan` is the request, resolved.
std::vector<std::string> options_without_savings(const PlanRequest& request, const Model& model,
                                                 const Plan& plan, const Device& device);

}  // namespace armilla
