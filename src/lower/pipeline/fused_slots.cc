#include "lower/fused_slots.h"

#include <algorithm>
#include <set>

#include "lower/pipeline/stage_program.h"

namespace armilla {
namespace {

// Nothing of the pass begins before the computations and communications before it are done.
bool waits_for_entry(const PassTemplate& pass) {
  std::vector<bool> has_entered;
  bool computes = false;  // a computation that has, which all later ones follow
  for (const TemplateStep& step : pass.steps) {
    const bool is_computation = step.kind == NodeKind::compute;
    bool entered = step.enters || (is_computation && computes);
    for (std::uint32_t wait = step.first_wait; wait < step.end_of_waits; ++wait)
      entered = entered || has_entered[pass.waits[wait]];
    if (!entered) return false;
    has_entered.push_back(entered);
    computes = computes || is_computation;
  }
  return true;
}

std::vector<const PassTemplate*> passes_of(const BlockTemplates& block, PipelineAction action) {
  switch (action) {
    case PipelineAction::forward:
      return {&block.forward};
    case PipelineAction::backward:
      return {&block.recompute, &block.backward};
    case PipelineAction::input_gradient:
      return {&block.recompute, &block.input_gradients};
    case PipelineAction::weight_gradient:
      return {&block.weight_gradients};
  }
  return {};
}

// What a chunk of these blocks does in a slot of its own between others, so that it is neither the first
// nor the last.
std::vector<PipelineSlot> slots_around(PipelineAction action) {
  std::vector<PipelineSlot> slots = {{PipelineAction::forward, 0, 0}, {PipelineAction::forward, 1, 0}};
  if (action == PipelineAction::forward) return slots;
  slots.push_back({action, 1, 0});
  slots.push_back({action, 0, 0});
  return slots;
}

}  // namespace

std::vector<SlotKind> slot_kinds(const ShardedModel& model, const Plan& plan) {
  const PipelineScheduleInfo& schedule = schedule_of(plan);
  // What stands for a slot must be true of it whenever it comes: not where passes overlap or go both ways,
  // nor where gradients or weights are exchanged in between.
  if (!schedule.flushes || schedule.overlaps_passes || schedule.chains != 1 || plan.zero_stage >= 2 ||
      !model.uneven.empty())
    return {};
  // A host that waits for the device in every slot is never ahead.
  if (plan.expert > 1 && issue_time_of(plan) > Time(0)) return {};
  const StageCut stages = cut_stages(model, plan, "plan");
  std::set<SlotKind> kinds;
  for (std::int64_t stage = 0; stage < static_cast<std::int64_t>(stages.first.size()); ++stage) {
    const std::vector<std::uint32_t> shapes = stage_shapes(model, plan, stages, stage);
    if (shapes.empty()) return {};
    kinds.insert({shapes, PipelineAction::forward});
    // Schedules with weight gradients of their own may have whole backward passes as well.
    kinds.insert({shapes, PipelineAction::backward});
    if (schedule.passes == 2) continue;
    kinds.insert({shapes, PipelineAction::input_gradient});
    kinds.insert({shapes, PipelineAction::weight_gradient});
  }
  return {kinds.begin(), kinds.end()};
}

std::optional<Graph> lone_block(const ShardedModel& model, const Plan& whole, std::uint32_t shape,
                                PipelineAction action) {
  Plan plan = whole;
  // Copies to and from the host are between blocks.
  plan.offload_activations = false;
  plan.batch = 2 * plan.micro_batch();
  plan.micro_batches = 2;
  PipelineOrder order;
  order.chunks = {{PipelineChunk{}}};
  order.slots = {slots_around(action)};
  const auto blocks = static_cast<std::int64_t>(model.blocks.size());
  const StageCut stages{{0}, {blocks}};
  const StageJob job{plan, order, stages, 1, kHostBandwidth, {}, {}};
  Graph graph;
  graph.ranks = plan.ranks;
  graph.layers = {"block"};
  JobTables tables(graph, plan);
  TemplateCache templates(model, plan, tables);
  for (const PassTemplate* const pass : passes_of(templates.of(shape), action)) {
    if (!waits_for_entry(*pass)) return std::nullopt;
  }
  RoleChunk chunk;
  chunk.shapes = {shape};
  chunk.layers = {0};
  Program all;
  const NodeRange range = emit_stage_program(model, job, {chunk}, 0, templates, tables, all)
                              .slots[action == PipelineAction::forward ? 1 : 2];
  // A slot without nodes takes no time.
  if (range.first == range.end) return graph;
  Program& program = graph.programs.emplace_back();
  program.role = "block";
  std::vector<std::uint32_t> within;
  for (std::uint32_t node = range.first; node < range.end; ++node) {
    within.clear();
    for (const std::uint32_t before : all.dependences(node)) {
      // What lies before the slot is done when it begins: that is what `waits_for_entry` made sure of.
      if (before >= range.first) within.push_back(before - range.first);
    }
    const std::uint32_t own =
        program.add(all.kind[node], all.phase[node], all.name[node], 0, all.payload[node], within);
    if (all.has_parts(node)) program.set_parts(own, all.parts[node]);
  }
  graph.program_of.assign(static_cast<std::size_t>(plan.ranks), 0);
  return graph;
}

}  // namespace armilla
