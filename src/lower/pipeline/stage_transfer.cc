#include "lower/pipeline/stage_transfer.h"

#include <algorithm>

#include "base/checked.h"
#include "lower/shard_share.h"

namespace armilla {
namespace {

// Of a message between stages `stage` and `stage + 1`: below 2^24, those of passes lie above
// (lower/pipeline/pass_template.cc).
std::uint32_t tag_of(const StageJob& job, std::int32_t chain, std::int32_t stage, bool forward) {
  const std::int64_t boundary = std::int64_t{chain} * job.order.stages + stage;
  return static_cast<std::uint32_t>(boundary * 2 + (forward ? 0 : 1));
}

}  // namespace

bool gathers_after_transfer(const Plan& plan) {
  return plan.scatter_gather && plan.tensor > 1 && !plan.sequence_parallel;
}

Bytes sent_between_stages(Bytes output, const Plan& plan) {
  return gathers_after_transfer(plan) ? Bytes(ceil_divide(output.value, plan.tensor)) : output;
}

// Megatron waits for the device after every exchange (batch_p2p_sync of its ModelParallelConfig), but where
// it overlaps them.
bool awaits_messages(const Plan& plan) {
  return plan.pipeline > 1 && !plan.overlap_pipeline && plan.framework == Framework::megatron;
}

std::optional<PointToPoint> stage_transfer(const ShardedModel& model, const StageJob& job,
                                           const RoleChunk& chunk, std::int64_t rank, bool from_here,
                                           bool forward, JobTables& tables) {
  // Activations go towards later stages, gradients back; the sender and the receiver of one message agree on
  // the boundary it crosses, the lower of the two stages.
  const bool to_next = from_here == forward;  // towards later stages
  const std::int32_t other = chunk.stage + (to_next ? 1 : -1);
  if (other < 0 || other >= job.order.stages) return {};
  const PipelineOrder::Place place = job.order.place(chunk.chain, other);
  // Both stages on this rank: the activations are where they are needed.
  if (place.rank == rank) return {};
  const std::int32_t boundary = std::min(other, chunk.stage);
  // What crosses is the output of the earlier stage's last block, the same in size for gradients.
  const std::int64_t last = job.stages.end[static_cast<std::size_t>(boundary)] - 1;
  const std::uint32_t shape = model.blocks[static_cast<std::size_t>(last)].shape;
  PointToPoint transfer;
  transfer.peer = place.rank;
  transfer.tag = tag_of(job, chunk.chain, boundary, forward);
  transfer.bytes = sent_between_stages(model.shapes[shape].output, job.plan);
  transfer.peer_kind = PeerKind::position;
  transfer.family = tables.family(GroupAxis::pipeline);
  transfer.stops_host = !from_here && awaits_messages(job.plan);
  return transfer;
}

}  // namespace armilla
