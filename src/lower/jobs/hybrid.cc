#include "lower/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"
#include "lower/data/job_tables.h"
#include "lower/expert_exchange.h"
#include "lower/fused_slots.h"
#include "lower/jobs/job_loops.h"
#include "lower/pipeline/stage_program.h"
#include "lower/plan.h"
#include "lower/rank_grid.h"
#include "lower/shard/expert_load.h"

namespace armilla {
namespace {

// About 40 bytes each.
constexpr std::int64_t kMostNodes = 50'000'000;

// `nodes` is about how many, or the fewest there can be.
[[noreturn]] void refuse_size(const Plan& plan, std::string_view words, double nodes) {
  const double fitting = static_cast<double>(plan.micro_batches) * static_cast<double>(kMostNodes) / nodes;
  const auto most = static_cast<std::int64_t>(fitting);
  throw Error("plan", fmt::format("the execution graph would have {} {:.0f} nodes", words, nodes),
              fmt::format("use {}; the limit is {} nodes",
                          most > 0 ? fmt::format("at most about {} micro-batches", most) : "fewer stages",
                          kMostNodes),
              micro_batch_keys());
}

// Schedules are made before nodes can be counted: so many slots must not exceed the limit either.
void check_slots(const Plan& plan, std::int64_t roles, std::int64_t iterations) {
  // Two passes at least of every micro-batch and chunk. In floating point, since the product may overflow.
  double slots = 2.0 * static_cast<double>(plan.micro_batches);
  for (const std::int64_t factor : {plan.virtual_stages, roles, iterations})
    slots *= static_cast<double>(factor);
  if (slots * 2 > static_cast<double>(kMostNodes)) refuse_size(plan, "at least", slots * 2);
}

// Per tied number, the pipeline ranks that hold it.
std::vector<std::vector<std::int64_t>> tied_holders(const ShardedModel& model, const StageJob& job) {
  std::vector<std::vector<std::int64_t>> holders;
  for (std::size_t rank = 0; rank < job.order.chunks.size(); ++rank) {
    for (const PipelineChunk& chunk : job.order.chunks[rank]) {
      const auto stage = static_cast<std::size_t>(chunk.stage);
      for (std::int64_t b = job.stages.first[stage]; b < job.stages.end[stage]; ++b) {
        const std::uint32_t shape = model.blocks[static_cast<std::size_t>(b)].shape;
        for (const WeightGroup& group : model.shapes[shape].weights) {
          if (group.tied < 0) continue;
          const auto number = static_cast<std::size_t>(group.tied);
          if (holders.size() <= number) holders.resize(number + 1);
          const auto holder = static_cast<std::int64_t>(rank);
          // Ranks come in ascending order, so comparing with the last one keeps holders unique.
          if (holders[number].empty() || holders[number].back() != holder) holders[number].push_back(holder);
        }
      }
    }
  }
  return holders;
}

std::string role_name(const Plan& plan, const Role& role, bool uneven) {
  std::string name = plan.pipeline == 1 ? "rank" : fmt::format("pipeline rank {}", role.pipeline_rank);
  if (uneven) name += fmt::format(", expert position {}", role.expert_position);
  return name;
}

// By the positions of a rank on the two axes that decide its program.
std::vector<std::uint32_t> programs_by_rank(const Plan& plan, std::int64_t positions) {
  // Ranks that differ by one on the pipeline axis are so many apart.
  std::int64_t stride = 1;
  for (const Axis axis : plan.order) {
    if (axis == Axis::pipeline) break;
    stride *= axis == Axis::tensor ? plan.tensor : axis == Axis::context ? plan.context : plan.data();
  }
  std::vector<std::uint32_t> programs(static_cast<std::size_t>(plan.ranks));
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    const std::int64_t expert = positions > 1 ? coordinates_of(plan, rank).expert : 0;
    // Roles are made rank by rank and within a rank position by position; the index follows that order.
    programs[static_cast<std::size_t>(rank)] =
        static_cast<std::uint32_t>(rank / stride % plan.pipeline * positions + expert);
  }
  return programs;
}

void reserve(Program& program, std::int64_t nodes) {
  const auto count = static_cast<std::size_t>(nodes);
  program.kind.reserve(count);
  program.phase.reserve(count);
  program.name.reserve(count);
  program.layer.reserve(count);
  program.payload.reserve(count);
  program.lane.reserve(count);
  program.first_dependence.reserve(count + 1);
  // One and a half dependences per node, about what pipelines have.
  program.dependence.reserve(count * 3 / 2);
}

void note_offload(LoweredJob& job, const Plan& plan, Bandwidth host_bandwidth) {
  if (plan.offload_optimizer)
    job.notes.push_back(
        "The optimizer's own work on the CPU takes no time here, since nothing is known of the host (Adam "
        "reads "
        "and writes some 30 bytes of its memory for every parameter of the shard).");
  if (host_bandwidth.value > 0 || !(plan.offload_optimizer || plan.offload_activations)) return;
  job.notes.push_back(
      fmt::format("The device's link to its CPU is not known; {:g} GB/s (PCIe 4.0) is assumed.",
                  kHostBandwidth.value / 1e9));
}

// A job and, by program, what is said of its slots.
struct Lowered {
  LoweredJob job;
  std::vector<StageProgram> programs;
};

Lowered lower_whole(std::vector<ShardedModel> sharded, const Plan& plan, std::int64_t iterations,
                    Bandwidth host_bandwidth, const Fusion& fusion) {
  Lowered lowered;
  LoweredJob& job = lowered.job;
  job.sharded = std::move(sharded);
  const auto positions = static_cast<std::int64_t>(job.sharded.size());
  job.stages = cut_stages(job.sharded[0], plan, "plan");
  check_slots(plan, plan.pipeline * positions, iterations);
  job.order = pipeline_order(plan, iterations, "plan");
  note_offload(job, plan, host_bandwidth);

  const Bandwidth host = host_bandwidth.value > 0 ? host_bandwidth : kHostBandwidth;
  StageJob stage_job{plan, job.order, job.stages, iterations, host, {}, fusion};
  stage_job.holders = tied_holders(job.sharded[0], stage_job);
  Graph& graph = job.graph;
  graph.ranks = plan.ranks;
  // Blocks have the same names at every expert position.
  const ShardedModel& any = job.sharded[0];
  for (std::size_t b = 0; b < any.blocks.size(); ++b) {
    // Graphs cut at every parameter have several blocks of one layer; reports show the layer once.
    const bool goes_on = !any.layers.empty() && b > 0 && any.layers[b] == any.layers[b - 1];
    if (!goes_on) graph.layers.push_back(any.blocks[b].name);
  }

  JobTables tables(graph, plan);
  // Templates refer to shapes of one sharded model, so each has its own.
  std::vector<TemplateCache> templates;
  templates.reserve(job.sharded.size());
  for (const ShardedModel& model : job.sharded) templates.emplace_back(model, plan, tables);
  std::vector<std::vector<RoleChunk>> chunks;
  std::vector<std::int64_t> most;
  double nodes = 0;
  // Bounds of all programs first: what is too large is refused before anything of it is written.
  for (std::int64_t rank = 0; rank < plan.pipeline; ++rank) {
    for (std::int64_t position = 0; position < positions; ++position) {
      const auto index = static_cast<std::size_t>(position);
      job.roles.push_back({rank, position});
      chunks.push_back(role_chunks(job.sharded[index], stage_job, rank));
      most.push_back(most_nodes(chunks.back(), stage_job, rank, templates[index]));
      nodes += static_cast<double>(most.back());
      // The others have about as many.
      if (nodes > static_cast<double>(kMostNodes))
        refuse_size(
            plan, "about",
            nodes / static_cast<double>(most.size()) * static_cast<double>(plan.pipeline * positions));
    }
  }
  for (std::size_t r = 0; r < job.roles.size(); ++r) {
    const auto position = static_cast<std::size_t>(job.roles[r].expert_position);
    Program& program = graph.programs.emplace_back();
    program.role = role_name(plan, job.roles[r], positions > 1);
    program.issue_time = issue_time_of(plan);
    reserve(program, most[r]);
    lowered.programs.push_back(emit_stage_program(job.sharded[position], stage_job, chunks[r],
                                                  job.roles[r].pipeline_rank, templates[position], tables,
                                                  program));
    job.slot_nodes.push_back(lowered.programs.back().slots);
  }
  graph.program_of = programs_by_rank(plan, positions);
  // With fused slots it is the graph of a plan that is lowered like any other, a part left out.
  if (fusion.slots.empty()) validate_graph(graph);
  return lowered;
}

// The same plan with fewer micro-batches.
Plan shortened(const Plan& plan, std::int64_t micro_batches) {
  Plan shorter = plan;
  shorter.batch = plan.micro_batch() * micro_batches;
  shorter.micro_batches = micro_batches;
  return shorter;
}

Lowered lower_in_loops(std::vector<ShardedModel> sharded, const Plan& plan, std::int64_t iterations,
                       Bandwidth host_bandwidth, Written written, const Fusion& fusion) {
  validate_plan(plan, "plan");
  const bool may_loop = written == Written::loops && schedule_of(plan).flushes == (iterations == 1);
  const MicroBatchRule rule = may_loop ? micro_batch_rule(plan) : MicroBatchRule();
  const std::int64_t round = rule.unit, filled = plan.pipeline / round;
  // Rounds that fill the pipeline and go round twice; where that is too few, half as many more beyond those
  // that fill it. What is left is whole rounds.
  std::int64_t rounds = std::max(filled + 2, (rule.least + round - 1) / round);
  for (; may_loop; rounds += std::max<std::int64_t>(1, (rounds - filled) / 2)) {
    const std::int64_t micro_batches = plan.micro_batches % round + rounds * round;
    if (micro_batches >= plan.micro_batches) break;
    const Plan shorter = shortened(plan, micro_batches);
    if (has_rounds(pipeline_order(shorter, iterations, "plan"), shorter)) {
      Lowered lowered = lower_whole(std::move(sharded), shorter, iterations, host_bandwidth, fusion);
      if (close_loops(lowered.job, shorter, (plan.micro_batches - micro_batches) / round)) return lowered;
      sharded = std::move(lowered.job.sharded);
    }
  }
  return lower_whole(std::move(sharded), plan, iterations, host_bandwidth, fusion);
}

}  // namespace

double hardware_flops(const ShardedModel& model, const StageCut& stages, const Plan& plan) {
  std::vector<double> of_shape;
  for (const BlockShape& shape : model.shapes) {
    double& flops = of_shape.emplace_back(0);
    for (const Pass* const pass : {&shape.forward, &shape.recompute, &shape.backward}) {
      for (const PassStep& step : pass->steps) {
        if (step.kind != NodeKind::compute) continue;
        for (const Gemm& gemm : model.works[step.work].gemms) flops += 2 * static_cast<double>(gemm.macs());
      }
    }
  }
  // Every micro-batch passes every block there and back, whatever the schedule.
  double flops = 0;
  for (std::size_t stage = 0; stage < stages.first.size(); ++stage) {
    for (const std::uint32_t shape : stage_shapes(model, plan, stages, static_cast<std::int64_t>(stage)))
      flops += of_shape[shape];
  }
  return flops * static_cast<double>(plan.micro_batches) * static_cast<double>(plan.ranks / plan.pipeline);
}

LoweredJob lower_sharded(std::vector<ShardedModel> sharded, const Plan& plan, std::int64_t iterations,
                         Bandwidth host_bandwidth, Written written) {
  return lower_in_loops(std::move(sharded), plan, iterations, host_bandwidth, written, {}).job;
}

FusedJob lower_fused(const ShardedModel& model, const Plan& plan, const Fusion& fusion,
                     Bandwidth host_bandwidth) {
  Lowered lowered = lower_in_loops({model}, plan, 1, host_bandwidth, Written::loops, fusion);
  FusedJob job;
  job.graph = std::move(lowered.job.graph);
  job.slot_nodes = std::move(lowered.job.slot_nodes);
  for (std::size_t p = 0; p < lowered.programs.size(); ++p) {
    StageProgram& program = lowered.programs[p];
    Time& waits = job.waits.emplace_back();
    for (const auto& [node, time] : program.fused) waits += time * job.graph.programs[p].times(node);
    job.slot_ends.push_back(std::move(program.ends));
    job.host_is_ahead = job.host_is_ahead && program.host_is_ahead;
  }
  return job;
}

LoweredJob lower_hybrid(const Model& model, const Plan& plan, std::int64_t iterations,
                        Bandwidth host_bandwidth, Written written) {
  validate_plan(plan, "plan");
  // Sizes are those of one micro-batch; a model of another size would be silently wrong by that factor.
  if (model.batch != plan.micro_batch()) {
    throw Error("plan", fmt::format("the model was read for {}, a micro-batch has {}",
                                    typed_count(model.batch, "sample"), plan.micro_batch()));
  }
  check_plan_for_model(plan, model, "plan");
  const bool uneven = is_uneven(plan);
  std::vector<ShardedModel> sharded;
  for (std::int64_t position = 0; position < (uneven ? plan.expert : 1); ++position)
    sharded.push_back(shard_model(model, plan, position, "plan"));
  LoweredJob job = lower_sharded(std::move(sharded), plan, iterations, host_bandwidth, written);
  const std::vector<std::string> exchange = describe_exchange(plan, model.facts);
  job.notes.insert(job.notes.end(), exchange.begin(), exchange.end());
  return job;
}

}  // namespace armilla
