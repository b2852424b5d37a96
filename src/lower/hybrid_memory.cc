#include "lower/hybrid_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "lower/role_memory.h"

namespace armilla {
namespace {

// Activations of a slot are there from its first computation to its last; messages wait elsewhere.
struct SlotEnds {
  std::uint32_t first = 0, last = 0;
};

SlotEnds slot_ends(const Program& program, const NodeRange& range) {
  const auto is_compute = [&](std::uint32_t node) { return program.kind[node] == NodeKind::compute; };
  SlotEnds ends{range.first, range.end > range.first ? range.end - 1 : range.first};
  while (ends.first < ends.last && !is_compute(ends.first)) ++ends.first;
  while (ends.last > ends.first && !is_compute(ends.last)) --ends.last;
  return ends;
}

std::vector<MemoryChange> activation_changes(const LoweredJob& job, std::uint32_t program, std::size_t rank,
                                             const std::vector<ChunkActivations>& chunks, bool offload) {
  std::vector<MemoryChange> changes;
  if (program >= job.slot_nodes.size()) return changes;
  const std::vector<PipelineSlot>& slots = job.order.slots[rank];
  const std::vector<NodeRange>& nodes = job.slot_nodes[program];
  for (std::size_t i = 0; i < slots.size() && i < nodes.size(); ++i) {
    const std::int64_t saved = chunks[static_cast<std::size_t>(slots[i].chunk)].saved;
    if (saved == 0) continue;
    const SlotEnds ends = slot_ends(job.graph.programs[program], nodes[i]);
    const PipelineAction action = slots[i].action;
    const bool makes = action == PipelineAction::forward;
    const bool frees = action == PipelineAction::backward || action == PipelineAction::weight_gradient;
    // Offloaded activations leave after every pass and are back for the next.
    if (makes || offload) changes.push_back({ends.first, saved});
    if (frees || offload) changes.push_back({ends.last, -saved});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.node < b.node; });
  return changes;
}

}  // namespace

std::vector<RoleMemory> hybrid_memory(const LoweredJob& job, const Plan& plan, const Device& device) {
  std::vector<RoleMemory> result;
  for (std::uint32_t program = 0; program < job.roles.size(); ++program) {
    const Role& role = job.roles[program];
    const auto rank = static_cast<std::size_t>(role.pipeline_rank);
    const auto position = static_cast<std::size_t>(role.expert_position);
    const ShardedModel& model = job.sharded[position < job.sharded.size() ? position : 0];
    const RoleParts parts = role_parts(model, job.stages, job.order, rank, plan);
    RoleMemory memory = role_memory(parts, job.order.slots[rank], plan, device);
    memory.role = job.graph.programs[program].role;
    memory.program = program;
    memory.activations = activation_changes(job, program, rank, parts.activations, plan.offload_activations);
    result.push_back(std::move(memory));
  }
  return result;
}

}  // namespace armilla
