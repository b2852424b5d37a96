#include "write/run_json.h"

#include <algorithm>

#include "base/checked.h"
#include "ir/metrics.h"
#include "write/json_text.h"
#include "write/run_notes.h"

namespace armilla {
namespace {

// What only runs of a model have is null in the others.
template <class Value>
Json of_model(const Run& run, Json (*write)(const Value&), const Value& value) {
  return has_model(run) ? write(value) : Json(nullptr);
}

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

Json plan_json(const Plan& plan) {
  return {{"ranks", plan.ranks},
          {"batch_per_rank", plan.batch},
          {"global_batch", checked_multiply(plan.batch, plan.ranks, "plan")},
          {"micro_batches", plan.micro_batches},
          {"precision", name_of(plan.precision)},
          {"optimizer", name_of(plan.optimizer)},
          {"first_bucket_bytes", plan.first_bucket.value},
          {"bucket_bytes", plan.bucket.value},
          {"overlap", plan.overlap}};
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
          {"chunks", options.chunks},
          {"active_chunks", options.active_chunks},
          {"order", name_of(options.order)},
          {"charge_reductions", options.charge_reductions}};
}

Json metrics_json(const Run& run) {
  return {{"samples_per_s", finite(samples_per_second(run))},
          {"mfu", finite(model_flops_utilization(run))},
          {"model_flops", model_flops(run).value}};
}

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
                     {"idle_s", seconds(idle(ranks, run.result.iteration))}});
  }
  return roles;
}

Json memory_json(const MemoryUse& memory) {
  return {{"peak_bytes", memory.peak().value},
          {"weights_bytes", memory.weights.value},
          {"gradients_bytes", memory.gradients.value},
          {"optimizer_bytes", memory.optimizer.value},
          {"activations_bytes", memory.activations.value},
          {"communication_buffers_bytes", memory.communication_buffers.value},
          {"temporary_bytes", memory.temporary.value},
          {"capacity_bytes", memory.capacity.value},
          {"fits", memory.fits()}};
}

Json collectives_json(const Run& run) {
  Json collectives = Json::array();
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    collectives.push_back({{"kind", name_of(summary.kind)},
                           {"algorithm", summary.algorithm},
                           {"group_size", summary.group_size},
                           {"count", summary.count},
                           {"bytes", summary.bytes.value},
                           {"time_s", seconds(summary.time)},
                           {"queued_s", seconds(summary.queued)},
                           {"bus_bandwidth_bytes_per_s", finite(summary.bus_bandwidth)},
                           {"link_share", finite(summary.link_share)}});
  }
  return collectives;
}

Json calls_json(const Run& run) {
  Json calls = Json::array();
  for (const CollectiveRecord& record : run.result.collectives) {
    const Program& program = run.graph.programs[record.program];
    const CollectiveCall& call = run.graph.collectives[record.call];
    calls.push_back({{"role", program.role},
                     {"name", run.graph.names[program.name[record.node]]},
                     {"kind", name_of(call.kind)},
                     {"group_size", record.group_size},
                     {"bytes", call.bytes.value},
                     {"issued_s", seconds(record.issued)},
                     {"started_s", seconds(record.started)},
                     {"finished_s", seconds(record.finished)}});
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

}  // namespace

std::string write_run_json(const Run& run) {
  const Json document = {{"schema", "armilla.run/1"},
                         {"iteration_time_s", seconds(run.result.iteration)},
                         {"ranks", run.result.ranks},
                         {"metrics", of_model(run, metrics_json, run)},
                         {"memory", of_model(run, memory_json, run.memory)},
                         {"roles", roles_json(run)},
                         {"collectives", collectives_json(run)},
                         {"collective_calls", calls_json(run)},
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
  return to_text(document);
}

}  // namespace armilla
