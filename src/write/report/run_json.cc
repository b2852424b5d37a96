#include "write/report/run_json.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked.h"
#include "ir/derived/communication.h"
#include "ir/derived/expense.h"
#include "ir/derived/metrics.h"
#include "ir/derived/stage_table.h"
#include "ir/derived/training.h"
#include "write/format/json_text.h"
#include "write/report.h"
#include "write/report/run_notes.h"

namespace armilla {
namespace {

// Moments of a role's memory: fewer each where there are more roles than kFullRoles.
constexpr std::size_t kMostMemorySamples = 512, kFewestMemorySamples = 16, kFullRoles = 16;

// A count as an integer while it fits one; beyond that JSON readers get a floating number.
Json whole_json(double count) {
  return count < 9e18 ? Json(static_cast<std::int64_t>(count)) : Json(count);
}

// What only runs of a model have is null in the others.
template <class Value>
Json of_model(const Run& run, Json (*write)(const Value&), const Value& value) {
  return has_model(run) ? write(value) : Json(nullptr);
}

// Keys carry their unit: _s, _bytes, _bytes_per_s.
Json model_json(const Model& model) {
  const ModelTotals sum = totals(model);
  return {{"name", model.name},
          {"source", model.source},
          {"batch", model.batch},
          {"parameters", sum.parameters},
          {"parameters_bytes", sum.parameter_bytes.value},
          {"buffers_bytes", sum.buffer_bytes.value},
          {"forward_macs", sum.forward_macs},
          {"forward_flops", sum.forward_flops.value},
          {"forward_bytes", sum.forward_bytes.value},
          {"layers", model.layers.size()},
          {"operators", model.operators.size()}};
}

Json machine_json(const Machine& machine) {
  Json dimensions = Json::array();
  for (const Dimension& dimension : machine.dimensions) {
    dimensions.push_back({{"name", dimension.name},
                          {"kind", name_of(dimension.kind)},
                          {"size", dimension.size},
                          {"bandwidth_bytes_per_s", finite(dimension.bandwidth)},
                          {"latency_s", seconds(dimension.latency)}});
  }
  return {{"name", machine.name},
          {"device", machine.device.name},
          {"dimensions", dimensions},
          {"unverified", machine.unverified},
          {"device_unverified", machine.device.unverified}};
}

Json component_json(const ComponentChoice& choice) {
  Json parameters = Json::array();
  for (const auto& [name, given] : choice.parameters)
    parameters.push_back({{"name", name}, {"value", given.value}});
  return {{"name", choice.name}, {"parameters", parameters}};
}

Json options_json(const CollectiveOptions& options) {
  Json by_kind = Json::array();
  for (const auto& [kind, algorithms] : options.algorithms_by_kind)
    by_kind.push_back({{"kind", name_of(kind)}, {"algorithms", algorithms}});
  return {{"algorithms", options.algorithms},
          {"algorithms_by_kind", by_kind},
          {"decomposition", name_of(options.decomposition)},
          {"chunks", options.chunks.value_or(0)},
          {"active_chunks", options.active_chunks},
          {"order", name_of(options.order)},
          {"charge_reductions", options.charge_reductions}};
}

// Rates per device are over all ranks, idle ones included.
Json metrics_json(const Run& run) {
  const auto devices = static_cast<double>(run.study.plan.ranks);
  const double device_seconds = in_seconds(run.result.iteration) * devices;
  return {
      {"samples_per_s", finite(samples_per_second(run))},
      {"tokens_per_s", finite(tokens_per_second(run))},
      {"samples_per_s_per_device", finite(samples_per_second(run) / devices)},
      {"tokens_per_s_per_device", finite(tokens_per_second(run) / devices)},
      {"model_flops_per_s_per_device", finite(device_seconds > 0 ? model_flops(run) / device_seconds : 0)},
      {"mfu", finite(model_flops_utilization(run))},
      {"hfu", finite(hardware_flops_utilization(run))},
      {"attention_scores", has_hidden_scores(run.model) ? "causal half" : "all"},
      {"model_flops", whole_json(model_flops(run))},
      {"full_model_flops", whole_json(full_model_flops(run))},
      {"hardware_flops", whole_json(hardware_flops(run))},
      {"bubble_fraction", finite(bubble_fraction(run))},
      {"bubble_ratio", finite(bubble_ratio(run))},
      {"host_fraction", finite(host_fraction(run))}};
}

Json shares_json(const ComputeShares& shares) {
  return {{"measured", finite(shares.measured)},
          {"interpolated", finite(shares.interpolated)},
          {"modelled", finite(shares.modelled)},
          {"extrapolated", finite(shares.extrapolated)}};
}

// A class stands for all ranks that behave alike (folding): its figures are one rank's, `ranks` says how
// many.
Json roles_json(const Run& run) {
  Json roles = Json::array();
  for (const RankClass& ranks : run.result.classes) {
    roles.push_back({{"role", run.graph.programs[ranks.program].role},
                     {"representative_rank", ranks.representative},
                     {"ranks", ranks.ranks},
                     {"finish_s", seconds(ranks.finish)},
                     {"compute_s", seconds(ranks.compute)},
                     {"communication_s", seconds(ranks.communication)},
                     {"exposed_communication_s", seconds(ranks.exposed_communication)},
                     {"idle_s", seconds(idle(ranks, run.result.iteration))},
                     {"host_waits_s", seconds(ranks.host_waits)}});
  }
  return roles;
}

Json stages_json(const Run& run) {
  const StageTable table = stage_table(run);
  Json stages = Json::array();
  for (const StageSummary& stage : table.stages) {
    Json exposed = Json::array();
    for (std::size_t kind = 0; kind < table.kinds.size(); ++kind)
      exposed.push_back({{"kind", table.kinds[kind]}, {"time_s", seconds(stage.exposed[kind])}});
    stages.push_back({{"role", run.graph.programs[stage.program].role},
                      {"ranks", stage.ranks},
                      {"compute_s", seconds(stage.compute)},
                      {"least_compute_s", seconds(stage.least_compute)},
                      {"most_compute_s", seconds(stage.most_compute)},
                      {"exposed", exposed},
                      {"bubble_s", seconds(stage.bubble)},
                      {"peak_bytes", stage.peak.value}});
  }
  return stages;
}

Json accuracy_json(const LikeMeasured& like) {
  return {{"set", like.set},           {"rows", like.rows},       {"mape", finite(like.mape)},
          {"bias", finite(like.bias)}, {"p90", finite(like.p90)}, {"differences", like.differences}};
}

Json goodput_json(const Goodput& goodput) {
  return {{"share", finite(goodput.share)},
          {"mtbf_s", finite(goodput.mtbf)},
          {"interval_s", finite(goodput.interval)},
          {"optimal_interval_s", finite(goodput.optimal_interval)},
          {"iterations_per_interval", finite(goodput.iterations)},
          {"failures_per_day", finite(goodput.failures_per_day)},
          {"iteration_s", finite(goodput.iteration)}};
}

Json memory_json(const MemoryUse& memory) {
  Json buffers = Json::array();
  for (const MemoryBuffer buffer : kMemoryBuffers) {
    if (memory.buffer(buffer).value > 0)
      buffers.push_back({{"name", name_of(buffer)}, {"bytes", memory.buffer(buffer).value}});
  }
  return {{"peak_bytes", memory.peak().value},
          {"weights_bytes", memory.weights.value},
          {"gradients_bytes", memory.gradients.value},
          {"optimizer_bytes", memory.optimizer.value},
          {"activations_bytes", memory.activations.value},
          {"communication_buffers_bytes", memory.communication_buffers().value},
          {"temporary_bytes", memory.temporary.value},
          {"fragmentation_bytes", memory.fragmentation.value},
          {"framework_bytes", memory.framework().value},
          {"buffers", std::move(buffers)},
          {"needed_bytes", memory.needed().value},
          {"capacity_bytes", memory.capacity.value},
          {"fits", memory.fits()}};
}

Json over_time_json(const Run& run, const RoleMemory& role, std::size_t most) {
  Json samples = Json::array();
  for (const MemorySample& sample : memory_over_time(run, role, most))
    samples.push_back({{"at_s", seconds(sample.at)},
                       {"bytes", sample.held.value},
                       {"activations_bytes", sample.activations.value},
                       {"temporary_bytes", sample.temporary.value}});
  return samples;
}

// Of every role by category, and over time.
Json role_memory_json(const Run& run) {
  // Thousands of roles with full curves would make the file unreadable: the room is shared out.
  Json roles = Json::array();
  const std::size_t most = std::clamp<std::size_t>(kMostMemorySamples * kFullRoles / (run.roles.size() + 1),
                                                   kFewestMemorySamples, kMostMemorySamples);
  for (const RoleMemory& role : run.roles) {
    Json entry = memory_json(role.use);
    entry["role"] = role.role;
    entry["in_flight"] = role.most_in_flight;
    entry["host_bytes"] = role.host.value;
    entry["over_time"] = over_time_json(run, role, most);
    roles.push_back(std::move(entry));
  }
  return roles;
}

// The role with the highest peak, the one that decides whether the job fits.
Json memory_timeline_json(const Run& run) {
  const auto worst = std::find_if(run.roles.begin(), run.roles.end(), [&](const RoleMemory& role) {
    return role.use.peak() == run.memory.peak();
  });
  if (worst == run.roles.end()) return Json::array();
  return over_time_json(run, *worst, kMostMemorySamples);
}

Json traffic_json(const RankTraffic& traffic, std::string_view bandwidth) {
  return {{"ranks", traffic.ranks},
          {"calls", finite(traffic.calls)},
          {"bytes", traffic.bytes.value},
          {"time_s", seconds(traffic.time)},
          {"most_time_s", seconds(traffic.most_time)},
          {"queued_s", seconds(traffic.queued)},
          {std::string(bandwidth), finite(traffic.bandwidth)},
          {"link_share", finite(traffic.link_share)}};
}

Json messages_json(const Run& run) {
  Json messages = Json::array();
  for (const MessageSummary& summary : summarize_messages(run)) {
    messages.push_back({{"axis", summary.axis},
                        {"count", summary.count},
                        {"bytes", summary.bytes.value},
                        {"time_s", seconds(summary.time)},
                        {"per_rank", traffic_json(summary.per_rank, "bandwidth_bytes_per_s")}});
  }
  return messages;
}

Json collectives_json(const Run& run) {
  Json collectives = Json::array();
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    collectives.push_back({{"kind", name_of(summary.kind)},
                           {"algorithm", summary.algorithm},
                           {"group_size", summary.group_size},
                           {"axis", summary.axis},
                           {"count", summary.count},
                           {"bytes", summary.bytes.value},
                           {"time_s", seconds(summary.time)},
                           {"queued_s", seconds(summary.queued)},
                           {"bus_bandwidth_bytes_per_s", finite(summary.bus_bandwidth)},
                           {"link_share", finite(summary.link_share)},
                           {"per_rank", traffic_json(summary.per_rank, "bus_bandwidth_bytes_per_s")}});
  }
  return collectives;
}

// Shared out among the roles; more would make files of hundreds of megabytes that say the same
// again and again.
constexpr std::int64_t kMostCalls = 20'000, kFewestCallsOfRole = 100;

// As the first rank of each role saw them; summaries are in "collectives".
Json calls_json(const Run& run, const HappenedCollectives& listed) {
  Json calls = Json::array();
  for (const auto& [record, later] : listed.all) {
    const Program& program = run.graph.programs[record->program];
    const CollectiveCall& call = run.graph.collectives[record->call];
    calls.push_back({{"role", program.role},
                     {"name", run.graph.names[program.name[record->node]]},
                     {"kind", name_of(call.kind)},
                     {"group_size", record->group_size},
                     {"bytes", call.bytes.value},
                     {"chunks", record->chunks},
                     {"issued_s", seconds(record->issued + later)},
                     {"started_s", seconds(record->started + later)},
                     {"finished_s", seconds(record->finished + later)}});
  }
  return calls;
}

Json layers_json(const Run& run) {
  Json layers = Json::array();
  for (const LayerCost& cost : layer_costs(run)) {
    layers.push_back({{"name", run.graph.layers[static_cast<std::size_t>(cost.layer)]},
                      {"forward_s", seconds(cost.forward)},
                      {"input_gradient_s", seconds(cost.input_gradient)},
                      {"weight_gradient_s", seconds(cost.weight_gradient)},
                      {"compute_s", seconds(cost.compute())},
                      {"communication_s", seconds(cost.communication)}});
  }
  return layers;
}

Json links_json(const Run& run) {
  // Sorted by use; a large machine has hundreds of thousands.
  Json links = Json::array();
  for (std::size_t i = 0; i < std::min(kMostLinks, run.result.links.size()); ++i) {
    const LinkUse& link = run.result.links[i];
    links.push_back({{"name", link.name},
                     {"dimension", link.dimension},
                     {"links", link.links},
                     {"bytes", link.bytes.value},
                     {"busy_s", seconds(link.busy)},
                     {"bandwidth_bytes_per_s", finite(link.bandwidth)},
                     {"utilization", finite(utilization(link, run.result.iteration))}});
  }
  return links;
}

Json range_json(const RankRange& range) {
  return {{"first", range.first}, {"last", range.last}};
}

Json what_if_json(const Run& run) {
  const WhatIf& what_if = run.study.what_if;
  Json slow_ranks = Json::array(), slow_links = Json::array();
  for (const SlowRanks& slow : what_if.ranks)
    slow_ranks.push_back({{"ranks", range_json(slow.ranks)}, {"time", slow.time}});
  for (const SlowLinks& slow : what_if.links) {
    slow_links.push_back({{"dimension", slow.dimension},
                          {"ranks", range_json(slow.ranks)},
                          {"bandwidth", slow.bandwidth},
                          {"latency", slow.latency}});
  }
  Json document = {{"settings", what_if_settings(run)}, {"ranks", slow_ranks}, {"links", slow_links}};
  for (const DamagedLink& link : what_if.damage)
    document["failed_links"].push_back({{"between", link.between}, {"bandwidth", link.bandwidth}});
  if (what_if.jitter.deviation > 0)
    document["jitter"] = {{"deviation", what_if.jitter.deviation}, {"seed", what_if.jitter.seed}};
  if (run.ideal) {
    document["iteration_time_without_s"] = seconds(*run.ideal);
    document["difference_s"] = seconds(run.result.iteration - *run.ideal);
  }
  return document;
}

Json training_json(const TrainingTime& time) {
  return {{"samples", finite(time.samples)},
          {"tokens", finite(time.tokens)},
          {"iterations", finite(time.iterations)},
          {"time_s", finite(time.seconds)},
          {"days", finite(time.seconds / 86400)},
          {"device_hours", finite(time.device_seconds / 3600)},
          {"energy_j", time.energy ? finite(time.energy->value) : Json(nullptr)},
          {"cost_usd", time.cost ? finite(time.cost->value) : Json(nullptr)}};
}

Json expense_json(const Run& run, const Expense& expense) {
  const Machine& machine = run.study.machine;
  const auto figure = [](const auto& value) { return value ? Json(value->value) : Json(nullptr); };
  const auto per_token = [&](const auto& value) {
    return value && expense.tokens > 0 ? Json(value->value / expense.tokens) : Json(nullptr);
  };
  return {{"energy_j", figure(expense.energy)},
          {"full_power_energy_j", figure(expense.full_power)},
          {"energy_per_token_j", per_token(expense.energy)},
          {"cost_usd", figure(expense.cost)},
          {"cost_per_token_usd", per_token(expense.cost)},
          {"device_busy_power_w", figure(machine.device.busy_power)},
          {"device_idle_power_w", figure(machine.device.idle_power)},
          {"host_power_w", figure(machine.host_power)},
          {"device_price_usd_per_h", figure(machine.device.price)}};
}

Json jobs_json(const Run& run) {
  Json jobs = Json::array();
  for (const JobOutcome& job : run.jobs) {
    jobs.push_back({{"name", job.name},
                    {"model", job.model},
                    {"devices", job.devices},
                    {"ranks", job.ranks},
                    {"start_s", seconds(job.start)},
                    {"alone_s", seconds(job.alone)},
                    {"shared_s", seconds(job.shared)}});
  }
  return jobs;
}

}  // namespace

Json plan_json(const Plan& plan) {
  std::vector<std::string_view> order;
  for (const Axis axis : plan.order) order.push_back(name_of(axis));
  // Without dispatch between expert ranks the choice of a type for it means nothing.
  const bool dispatches = plan.dispatch_dtype != DType::unknown;
  const bool on_rank = dispatches_on_rank(plan.expert_dispatch);
  return {{"ranks", plan.ranks},
          {"batch_per_rank", plan.batch},
          {"global_batch", checked_multiply(plan.batch, plan.data(), "plan")},
          {"micro_batches", plan.micro_batches},
          {"micro_batch", plan.micro_batch()},
          {"precision", name_of(plan.precision)},
          {"weight_type", name_of(plan.weight_dtype)},
          {"gradient_type", name_of(plan.gradient_dtype)},
          {"parameter_type", name_of(plan.parameter_dtype)},
          {"scaling", name_of(plan.scaling)},
          {"wide_first_layers", plan.wide_first_layers},
          {"wide_last_layers", plan.wide_last_layers},
          {"wide_modules", names_of(plan.wide_modules)},
          {"fp8_attention", plan.fp8_attention},
          {"optimizer", name_of(plan.optimizer)},
          {"first_bucket_bytes", plan.first_bucket.value},
          {"bucket_bytes", plan.bucket.value},
          {"overlap", plan.overlap},
          {"tensor", plan.tensor},
          {"context", plan.context},
          {"data", plan.data()},
          {"pipeline", plan.pipeline},
          {"expert", plan.expert},
          {"expert_tensor", plan.experts_tensor()},
          {"virtual_stages", plan.virtual_stages},
          {"schedule", plan.schedule},
          {"stage_blocks", plan.stage_blocks},
          {"sequence_parallel", plan.sequence_parallel},
          {"tensor_method", name_of(tensor_method_of(plan))},
          {"overlap_tensor", plan.overlap_tensor},
          {"overlap_tensor_gradients", plan.overlap_tensor_gradients},
          {"overlap_pipeline", plan.overlap_pipeline},
          {"scatter_gather", plan.scatter_gather},
          {"overlap_parameters", plan.overlap_parameters},
          {"context_method", name_of(plan.context_method)},
          {"expert_load", name_of(plan.expert_load)},
          {"expert_skew", plan.expert_skew},
          {"expert_capacity", plan.expert_capacity},
          {"expert_dispatch", dispatches || on_rank ? name_of(plan.expert_dispatch) : "none"},
          {"dispatch_type", dispatches ? name_of(plan.dispatch_dtype) : "none"},
          {"seed", plan.seed},
          {"zero", plan.zero_stage},
          {"zero_partition", name_of(plan.zero_partition)},
          {"reduce_scatter", plan.reduce_scatter},
          {"prefetch", plan.prefetch},
          {"reshard", plan.reshard},
          {"hybrid_shard", plan.hybrid_shard},
          {"offload_optimizer", plan.offload_optimizer},
          {"offload_activations", plan.offload_activations},
          {"accumulation_fusion", plan.accumulation_fusion},
          {"channels_last", plan.channels_last},
          {"fused_experts", plan.fused_experts},
          {"fused_elementwise", names_of(fused_elementwise_of(plan))},
          {"loss", name_of(plan.loss)},
          {"loss_parallel", plan.loss_parallel},
          {"embedding_parallel", plan.embedding_parallel},
          {"head_parallel", plan.head_parallel},
          {"framework", name_of(plan.framework)},
          {"no_sync", plan.no_sync},
          {"state_type", name_of(plan.state_dtype)},
          {"host", name_of(plan.host)},
          {"issue_time_s", seconds(issue_time_of(plan))},
          {"step_overhead_s", seconds(plan.step_overhead)},
          {"cuda_graph_scope", names_of(plan.cuda_graph_scope)},
          {"check_collectives", plan.check_collectives},
          {"recompute", name_of(plan.recompute)},
          {"recompute_blocks", plan.recompute_blocks},
          {"recompute_modules",
           plan.recompute == Recompute::selective ? names_of(plan.recompute_modules) : names_of({})},
          {"recompute_early_stop", stops_early(plan)},
          {"order", order}};
}

Json run_json(const Run& run) {
  const HappenedCollectives listed = collectives_one_by_one(
      run,
      std::max(kFewestCallsOfRole, kMostCalls / std::max<std::int64_t>(1, std::ssize(run.graph.programs))));
  Json document = {{"schema", "armilla.run/1"},
                   {"iteration_time_s", seconds(run.result.iteration)},
                   {"simulated_time_s", seconds(simulated_time(run))},
                   {"iterations", run.iterations},
                   {"ranks", run.result.ranks},
                   {"metrics", of_model(run, metrics_json, run)},
                   {"compute_sources", of_model(run, shares_json, run.shares)},
                   {"memory", of_model(run, memory_json, run.memory)},
                   {"memory_roles", role_memory_json(run)},
                   {"memory_over_time", memory_timeline_json(run)},
                   {"roles", roles_json(run)},
                   {"stages", stages_json(run)},
                   {"collectives", collectives_json(run)},
                   {"collective_calls", calls_json(run, listed)},
                   {"collective_calls_left_out", listed.left_out},
                   {"messages", messages_json(run)},
                   {"layers", layers_json(run)},
                   {"links", links_json(run)},
                   {"links_used", run.result.links.size()},
                   {"workload", workload_name(run)},
                   {"model", of_model(run, model_json, run.model)},
                   {"machine", machine_json(run.study.machine)},
                   {"plan", of_model(run, plan_json, run.study.plan)},
                   {"compute", component_json(run.study.compute)},
                   {"network", component_json(run.study.network)},
                   {"collective_options", options_json(run.study.collectives)},
                   {"simulation", {{"messages", run.result.messages}, {"events", run.result.events}}},
                   {"notes", all_notes(run)},
                   {"warnings", all_warnings(run)}};
  // Keys of features that were not asked for are left out altogether.
  if (!run.jobs.empty()) document["jobs"] = jobs_json(run);
  if (run.ideal || !what_if_settings(run).empty()) document["what_if"] = what_if_json(run);
  if (const auto training = training_time(run)) document["training"] = training_json(*training);
  if (const Expense expense = expense_of(run); expense.is_known())
    document["expense"] = expense_json(run, expense);
  if (run.like) document["accuracy"] = accuracy_json(*run.like);
  if (run.goodput) document["goodput"] = goodput_json(*run.goodput);
  return document;
}

std::string write_run_json(const Run& run) {
  return to_text(run_json(run));
}

}  // namespace armilla
