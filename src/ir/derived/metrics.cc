#include "ir/derived/metrics.h"

#include <algorithm>
#include <numeric>

#include "ir/derived/stage_table.h"

namespace armilla {

// nccl-tests' factors: what a link carries in proportion to the size of the call.
double bus_factor(CollectiveKind kind, std::int64_t group_size) {
  const auto n = static_cast<double>(group_size);
  if (group_size < 2) return 0;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return 1;
    case CollectiveKind::barrier:
      return 0;
  }
  return 0;
}

Time simulated_time(const Run& run) {
  return run.iterations > 1 ? run.simulated : run.result.iteration;
}

double samples_per_second(const Run& run) {
  const double seconds = in_seconds(run.result.iteration);
  const Plan& plan = run.study.plan;
  return seconds > 0 ? static_cast<double>(plan.batch) * static_cast<double>(plan.data()) / seconds : 0;
}

double tokens_per_second(const Run& run) {
  return samples_per_second(run) * static_cast<double>(run.model.facts.sequence);
}

namespace {

double macs_of(const Work& work) {
  double macs = 0;
  for (const Gemm& gemm : work.gemms) macs += static_cast<double>(gemm.macs());
  return macs;
}

double share_of_peak(const Run& run, double flops) {
  const double seconds = in_seconds(run.result.iteration);
  const double peak = run.peak_rate.value * static_cast<double>(run.study.plan.ranks);
  return seconds > 0 ? flops / (seconds * peak) : 0;
}

// How many products of the size of its forward one the model asks for: gradients of inputs and of weights. A
// product of two activations has both as input gradients.
double passes(const Model& model, const Operator& op) {
  const double of_input = op.needs_input_gradient ? 1 : 0;
  if (!op.weight_is_operand) return 1 + 2 * of_input;
  const bool trained = std::any_of(op.parameters.begin(), op.parameters.end(),
                                   [&](std::uint32_t p) { return model.parameters[p].trainable; });
  return 1 + of_input + (trained ? 1 : 0);
}

double forward_flops(const Operator& op, bool full) {
  const Flops special = full ? op.full_flops : op.masked_flops;
  return special.value > 0 ? static_cast<double>(special.value) : 2 * macs_of(op.forward);
}

// Rows that experts without room for them drop are not computed by anybody, and no model asks for them; empty
// rows that fill experts up are nobody's. Megatron-LM's figures count every expert of a token.
double kept_rows(const Plan& plan) {
  return plan.expert_capacity > 0 ? std::min(1.0, plan.expert_capacity) : 1.0;
}

double model_flops(const Run& run, bool full) {
  double flops = 0;
  const Plan& plan = run.study.plan;
  for (const Operator& op : run.model.operators) {
    const double rows = op.expert && !full ? kept_rows(plan) : 1;
    flops += passes(run.model, op) * forward_flops(op, full) * rows;
  }
  return flops * static_cast<double>(plan.micro_batches) * static_cast<double>(plan.data());
}

}  // namespace

double model_flops(const Run& run) {
  return model_flops(run, false);
}

double full_model_flops(const Run& run) {
  return model_flops(run, true);
}

double hardware_flops(const Run& run) {
  double flops = 0;
  // Every rank of a program does the same, so count per program and multiply.
  std::vector<double> ranks(run.graph.programs.size());
  for (const std::uint32_t program : run.graph.program_of) ranks[program] += 1;
  for (std::size_t p = 0; p < run.graph.programs.size(); ++p) {
    const Program& program = run.graph.programs[p];
    double per_rank = 0;
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] != NodeKind::compute || program.phase[node] == Phase::optimizer) continue;
      per_rank +=
          2 * macs_of(run.graph.works[program.payload[node]]) * static_cast<double>(program.times(node));
    }
    flops += per_rank * ranks[p];
  }
  return flops / static_cast<double>(run.iterations);
}

bool has_hidden_scores(const Model& model) {
  return std::any_of(model.operators.begin(), model.operators.end(),
                     [](const Operator& op) { return op.masked_flops.value > 0 || op.full_flops.value > 0; });
}

Flops visible_forward_flops(const Model& model) {
  Flops flops;
  for (const Operator& op : model.operators)
    flops += op.masked_flops.value > 0 ? op.masked_flops : op.forward.flops;
  return flops;
}

double model_flops_utilization(const Run& run) {
  return share_of_peak(run, model_flops(run));
}

double hardware_flops_utilization(const Run& run) {
  return share_of_peak(run, hardware_flops(run));
}

namespace {

// Of one rank.
std::vector<LayerCost> layer_costs(const Program& program, const RankClass& ranks, std::size_t layers) {
  std::vector<LayerCost> costs(layers);
  for (const Interval& interval : ranks.computes) {
    const std::int32_t layer = program.layer[interval.node];
    if (layer < 0) continue;
    LayerCost& cost = costs[static_cast<std::size_t>(layer)];
    const Time duration = (interval.end - interval.start) * interval.times;
    switch (program.phase[interval.node]) {
      case Phase::forward:
        cost.forward += duration;
        break;
      case Phase::input_gradient:
        cost.input_gradient += duration;
        break;
      case Phase::weight_gradient:
        cost.weight_gradient += duration;
        break;
      case Phase::optimizer:
      case Phase::gradient_exchange:
      case Phase::other:
        break;
    }
  }
  for (const Interval& interval : ranks.collectives) {
    const std::int32_t layer = program.layer[interval.node];
    if (layer >= 0)
      costs[static_cast<std::size_t>(layer)].communication +=
          (interval.end - interval.start) * interval.times;
  }
  return costs;
}

}  // namespace

std::vector<LayerCost> layer_costs(const Run& run) {
  std::vector<LayerCost> costs(run.graph.layers.size());
  for (const RankClass* const ranks : representatives(run)) {
    if (ranks == nullptr || ranks->computes.empty()) continue;
    const std::vector<LayerCost> own = layer_costs(run.graph.programs[ranks->program], *ranks, costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const bool more =
          own[i].compute() > costs[i].compute() ||
          (own[i].compute() == costs[i].compute() && own[i].communication > costs[i].communication);
      if (more) costs[i] = own[i];
    }
  }
  for (std::size_t i = 0; i < costs.size(); ++i) costs[i].layer = static_cast<std::int32_t>(i);
  return costs;
}

Time idle(const RankClass& ranks, Time iteration) {
  return iteration - ranks.compute - ranks.exposed_communication;
}

double utilization(const LinkUse& link, Time iteration) {
  return iteration > Time(0) ? static_cast<double>(link.busy.value) / static_cast<double>(iteration.value)
                             : 0;
}

}  // namespace armilla
