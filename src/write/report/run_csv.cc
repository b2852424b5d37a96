#include "write/report/run_csv.h"

#include "ir/derived/metrics.h"
#include "ir/derived/stage_table.h"
#include "write/format/csv.h"
#include "write/timeline.h"

namespace armilla {
namespace {

std::string roles_csv(const Run& run) {
  Csv csv({"role", "representative_rank", "ranks", "finish_s", "compute_s", "communication_s",
           "exposed_communication_s", "idle_s"});
  for (const RankClass& ranks : run.result.classes) {
    csv.cell(run.graph.programs[ranks.program].role).cell(std::int64_t{ranks.representative});
    csv.cell(ranks.ranks).cell(ranks.finish).cell(ranks.compute).cell(ranks.communication);
    csv.cell(ranks.exposed_communication).cell(idle(ranks, run.result.iteration)).end_record();
  }
  return csv.text();
}

std::string stages_csv(const Run& run) {
  Csv csv({"role", "ranks", "compute_s", "exposed", "exposed_s", "bubble_s", "peak_bytes"});
  const StageTable table = stage_table(run);
  for (const StageSummary& stage : table.stages) {
    const auto record = [&](std::string_view kind, Time exposed) {
      csv.cell(run.graph.programs[stage.program].role).cell(stage.ranks).cell(stage.compute).cell(kind);
      csv.cell(exposed).cell(stage.bubble).cell(stage.peak).end_record();
    };
    // A stage that waits for nothing has a row, too.
    if (table.kinds.empty()) record("", Time(0));
    for (std::size_t kind = 0; kind < table.kinds.size(); ++kind)
      record(table.kinds[kind], stage.exposed[kind]);
  }
  return csv.text();
}

std::string memory_csv(const Run& run) {
  Csv csv({"role", "in_flight", "weights_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes",
           "communication_buffers_bytes", "temporary_bytes", "fragmentation_bytes", "peak_bytes",
           "framework_bytes", "host_bytes", "capacity_bytes"});
  for (const RoleMemory& role : run.roles) {
    const MemoryUse& use = role.use;
    csv.cell(role.role).cell(role.most_in_flight).cell(use.weights).cell(use.gradients).cell(use.optimizer);
    csv.cell(use.activations).cell(use.communication_buffers()).cell(use.temporary).cell(use.fragmentation);
    csv.cell(use.peak()).cell(use.framework()).cell(role.host).cell(use.capacity).end_record();
  }
  return csv.text();
}

std::string collectives_csv(const Run& run) {
  Csv csv({"role", "name", "kind", "algorithm", "group_size", "bytes", "issued_s", "started_s", "finished_s",
           "link_limit_s", "bus_bandwidth_bytes_per_s"});
  for (const CollectiveRecord& record : run.result.collectives) {
    const Program& program = run.graph.programs[record.program];
    const CollectiveCall& call = run.graph.collectives[record.call];
    const double bus_bytes = static_cast<double>(call.bytes.value) * bus_factor(call.kind, record.group_size);
    csv.cell(program.role).cell(run.graph.names[program.name[record.node]]).cell(name_of(call.kind));
    csv.cell(record.algorithm).cell(record.group_size).cell(call.bytes).cell(record.issued);
    csv.cell(record.started).cell(record.finished).cell(record.link_limit);
    csv.cell(bus_bytes / in_seconds(record.finished - record.started)).end_record();
  }
  return csv.text();
}

std::string layers_csv(const Run& run) {
  Csv csv({"layer", "forward_s", "input_gradient_s", "weight_gradient_s", "compute_s", "communication_s"});
  for (const LayerCost& cost : layer_costs(run)) {
    csv.cell(run.graph.layers[static_cast<std::size_t>(cost.layer)]).cell(cost.forward);
    csv.cell(cost.input_gradient).cell(cost.weight_gradient).cell(cost.compute());
    csv.cell(cost.communication).end_record();
  }
  return csv.text();
}

std::string links_csv(const Run& run) {
  Csv csv({"link", "dimension", "links", "bytes", "busy_s", "bandwidth_bytes_per_s", "utilization"});
  for (const LinkUse& link : run.result.links) {
    csv.cell(link.name).cell(std::int64_t{link.dimension}).cell(link.links).cell(link.bytes);
    csv.cell(link.busy).cell(link.bandwidth).cell(utilization(link, run.result.iteration)).end_record();
  }
  return csv.text();
}

std::string timeline_csv(const Run& run, const TimelineSelection& selection) {
  Csv csv({"rank", "track", "name", "category", "layer", "start_s", "end_s"});
  for (const TraceProcess& process : make_timeline(run, selection).processes) {
    for (const TraceTrack& track : process.tracks) {
      for (const TraceSlice& slice : track.slices) {
        if (process.rank < run.result.ranks) {
          csv.cell(std::int64_t{process.rank});
        } else {
          csv.cell("");  // what if
        }
        csv.cell(track.name).cell(slice.name).cell(slice.category);
        csv.cell(slice.layer).cell(slice.start).cell(slice.end).end_record();
      }
    }
  }
  return csv.text();
}

}  // namespace

std::vector<NamedContents> write_run_csv(const Run& run, const std::string& folder,
                                         const TimelineSelection& selection) {
  const std::string prefix = folder + "/";
  // All of them always, so that none of an earlier run stays behind.
  return {{prefix + "roles.csv", roles_csv(run)},
          {prefix + "stages.csv", stages_csv(run)},
          {prefix + "memory.csv", memory_csv(run)},
          {prefix + "collectives.csv", collectives_csv(run)},
          {prefix + "layers.csv", layers_csv(run)},
          {prefix + "links.csv", links_csv(run)},
          {prefix + "timeline.csv", timeline_csv(run, selection)}};
}

}  // namespace armilla
