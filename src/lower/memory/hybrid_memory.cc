#include "lower/memory.h"

#include <algorithm>
#include <span>

#include "lower/memory/role_memory.h"

namespace armilla {
namespace {

// Turns the walk over a rank's slots into moments of its program.
class MomentWriter {
 public:
  MomentWriter(const Program& program, const RoleParts& parts, const Plan& plan)
      : program_(program), parts_(parts), plan_(plan) {}

  std::vector<MemoryMoment> write(std::span<const PipelineSlot> slots, std::span<const NodeRange> nodes) {
    ActivationWalk walk(parts_.activations, plan_.offload_activations, parts_.kept_gradients, parts_.made);
    for (std::size_t i = 0; i < slots.size() && i < nodes.size();) {
      const std::span<const PipelineSlot> group = slots_beside(slots, i);
      const PipelineSlot* const next = slot_at(slots, i + group.size());
      HeldByPasses before = walk.held();
      const OffloadedEnds ends = walk.ends_of(group.front(), next);
      if (plan_.offload_activations) {
        // A pass that only makes weight gradients is among those that wait.
        const bool waits = group.front().action == PipelineAction::weight_gradient;
        const auto chunk = static_cast<std::size_t>(group.front().chunk);
        before.activations = walk.waiting() - (waits ? parts_.activations[chunk].saved : 0);
      }
      const bool makes = walk.makes_gradients(group.front());
      const HeldByPasses most = walk.enter(group, next);
      walk.leave(group);
      // Moments belong to computations: memory is taken when the first of a slot starts and given back when
      // the last one ends.
      list_computations(nodes[i]);
      if (!computations_.empty()) {
        // Alone, a pass can be followed block by block. Of slots beside each other only the largest sum is
        // known.
        if (group.size() == 1) {
          add_blocks(group.front(), before, makes, plan_.offload_activations ? &ends : nullptr);
        } else {
          add(computations_.front(), computations_.back(), {most, walk.held()});
        }
      }
      i += group.size();
    }
    return std::move(moments_);
  }

 private:
  void list_computations(const NodeRange& range) {
    computations_.clear();
    for (std::uint32_t node = range.first; node < range.end; ++node) {
      if (program_.kind[node] == NodeKind::compute) computations_.push_back(node);
    }
  }

  // Blocks in the order of the pass. One that computes nothing goes with the next, or with the last.
  void add_blocks(const PipelineSlot& slot, const HeldByPasses& before, bool makes,
                  const OffloadedEnds* offloaded) {
    const RoleChunk& chunk = parts_.chunks[static_cast<std::size_t>(slot.chunk)];
    const ChunkActivations& activations = parts_.activations[static_cast<std::size_t>(slot.chunk)];
    const std::size_t blocks = activations.blocks.size();
    const bool forward = slot.action == PipelineAction::forward;
    std::size_t next = 0;  // in the order of the pass
    for (std::size_t i = 0; i < computations_.size();) {
      std::size_t end = i + 1;
      const std::int32_t layer = program_.layer[computations_[i]];
      while (end < computations_.size() && program_.layer[computations_[end]] == layer) ++end;
      // Layers of a chunk are ascending; one layer may be several blocks (graphs cut at every parameter).
      const auto [of_layer, after] = std::equal_range(chunk.layers.begin(), chunk.layers.end(), layer);
      const auto done =
          static_cast<std::size_t>(forward ? after - chunk.layers.begin() : chunk.layers.end() - of_layer);
      // The pass's last computations bring whatever blocks are left.
      const std::size_t until = end == computations_.size() ? blocks : done;
      BlockHold hold;
      const std::size_t first = next;
      for (; next < until; ++next) {
        const BlockHold at =
            held_at(activations, slot.action, forward ? next : blocks - 1 - next, before, makes, offloaded);
        if (next == first || at.during.sum() > hold.during.sum()) hold.during = at.during;
        hold.after = at.after;
      }
      if (next > first) add(computations_[i], computations_[end - 1], hold);
      i = end;
    }
  }

  void add(std::uint32_t first, std::uint32_t last, const BlockHold& hold) {
    moments_.push_back({first, false, Bytes(hold.during.activations), Bytes(hold.during.temporary),
                        Bytes(hold.during.gradients)});
    moments_.push_back({last, true, Bytes(hold.after.activations), Bytes(0), Bytes(hold.after.gradients)});
  }

  const Program& program_;
  const RoleParts& parts_;
  const Plan& plan_;
  std::vector<std::uint32_t> computations_;  // of the slots at hand
  std::vector<MemoryMoment> moments_;
};

}  // namespace

std::vector<RoleMemory> hybrid_memory(const LoweredJob& job, const Plan& plan, const Device& device) {
  std::vector<RoleMemory> result;
  // Loops leave a rank what it holds, but for those that only go forward.
  const bool holds_more = schedule_of(plan).goes_back_last && !job.graph.programs.front().loops.empty();
  const PipelineOrder order = holds_more ? pipeline_order(plan, 1, "plan") : PipelineOrder();
  for (std::uint32_t program = 0; program < job.roles.size(); ++program) {
    const Role& role = job.roles[program];
    const auto rank = static_cast<std::size_t>(role.pipeline_rank);
    const auto position = static_cast<std::size_t>(role.expert_position);
    // Positions share one sharded model where loads are even.
    const ShardedModel& model = job.sharded[position < job.sharded.size() ? position : 0];
    const RoleParts parts = role_parts(model, job.stages, job.order, rank, plan);
    RoleMemory memory = role_memory(parts, (holds_more ? order : job.order).slots[rank], plan, device);
    memory.role = job.graph.programs[program].role;
    memory.program = program;
    if (program < job.slot_nodes.size()) {
      memory.over_time = MomentWriter(job.graph.programs[program], parts, plan)
                             .write(job.order.slots[rank], job.slot_nodes[program]);
    }
    result.push_back(std::move(memory));
  }
  return result;
}

}  // namespace armilla
