#include "cli/commands/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collective/algorithm.h"
#include "cost/cost.h"
#include "lower/pipeline_schedule.h"
#include "network/network.h"
#include "network/routings.h"
#include "read/read.h"
#include "read/study.h"
#include "read/topology.h"
#include "study/trace_formats.h"
#include "trace/synthetic.h"
#include "write/write.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

std::vector<CatalogueEntry> models() {
  std::vector<CatalogueEntry> entries;
  for (const ZooModel& model : zoo_models())
    entries.push_back({std::string(model.name), std::string(model.description), {}});
  return entries;
}

std::vector<CatalogueEntry> machines() {
  std::vector<CatalogueEntry> entries;
  for (const std::string& name : machine_names())
    entries.push_back({name, load_machine(name, name).description, {}});
  return entries;
}

std::vector<CatalogueEntry> devices() {
  std::vector<CatalogueEntry> entries;
  for (const std::string& name : device_names())
    entries.push_back({name, load_device(name, name).description, {}});
  return entries;
}

// Families whose records have a name, a line of help and parameters.
template <class Record>
std::vector<CatalogueEntry> components(std::span<const Record> table) {
  std::vector<CatalogueEntry> entries;
  for (const Record& record : table)
    entries.push_back({std::string(record.name), std::string(record.help), record.parameters});
  return entries;
}

std::vector<CatalogueEntry> algorithms() {
  std::vector<CatalogueEntry> entries = components(collective_algorithms());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::vector<std::string_view> kinds;
    for (const CollectiveKind kind : collective_algorithms()[i].kinds) kinds.push_back(name_of(kind));
    entries[i].help += fmt::format(" ({})", fmt::join(kinds, ", "));
  }
  return entries;
}

std::vector<CatalogueEntry> compute_models() {
  return components(cost_models());
}
std::vector<CatalogueEntry> network_models() {
  return components(networks());
}

std::vector<CatalogueEntry> machine_topologies() {
  return components(topologies());
}

std::vector<CatalogueEntry> message_routings() {
  std::vector<CatalogueEntry> entries;
  for (const RoutingInfo& routing : routings())
    entries.push_back({std::string(routing.name), std::string(routing.help), {}});
  return entries;
}

std::vector<CatalogueEntry> synthetic() {
  return components(synthetic_patterns());
}

std::vector<CatalogueEntry> schedules() {
  return components(pipeline_schedules());
}

// Of both tables of what is read, and of every table of what is written: a new row of any of them is listed
// here.
std::vector<CatalogueEntry> formats() {
  std::vector<CatalogueEntry> entries;
  for (const FileFormat& format : file_formats()) {
    if (!format.read) continue;
    std::string help = fmt::format("read: {}", format.what);
    for (const ModelFormat& model : model_formats())
      if (model.kind == format.kind) help += fmt::format(", {}", model.help);
    entries.push_back({std::string(format.name), fmt::format("{}; {}", help, format.use), {}});
  }
  const auto add = [&](std::string_view command, std::string_view name, std::string_view help) {
    entries.push_back({std::string(name), fmt::format("written by {}: {}", command, help), {}});
  };
  for (const RunFormat& format : run_formats()) add("run", format.name, format.help);
  for (const LayerFormat& format : layer_formats()) add("layers", format.name, format.help);
  for (const TextWorkloadFormat& format : text_workload_formats()) add("translate", format.name, format.help);
  for (const TraceFormat& format : trace_formats()) add("translate", format.name, format.help);
  return entries;
}

// `armilla list` and docs/reference/components.md print them in this order.
constexpr CatalogueFamily kFamilies[] = {
    {"models", "model", "models that are compiled in; 'armilla zoo list' has more", models},
    {"machines", "machine", "clusters of any size", machines},
    {"devices", "device", "accelerators", devices},
    {"compute", "compute model", "models of compute time, for --compute", compute_models},
    {"topologies", "topology", "graphs of links, for a machine's topology", machine_topologies},
    {"networks", "network model", "models of the network, for --network", network_models},
    {"routings", "routing",
     "ways of messages over a graph, for the parameter routing of flow, packet and flit", message_routings},
    {"algorithms", "collective algorithm", "collective algorithms, for --algorithm", algorithms},
    {"schedules", "pipeline schedule", "orders of micro-batches in a pipeline, for --schedule", schedules},
    {"synthetic", "synthetic pattern", "patterns of traces, for translate --synthetic", synthetic},
    {"formats", "format", "files that are read and written", formats},
};

}  // namespace

std::span<const CatalogueFamily> catalogue() {
  return kFamilies;
}

}  // namespace armilla
