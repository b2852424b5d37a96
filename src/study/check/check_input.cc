#include "study/check_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/units_text.h"
#include "collective/verify.h"
#include "read/astra.h"
#include "read/measurements.h"
#include "read/outline.h"
#include "read/profile.h"
#include "read/roce.h"
#include "read/scalesim.h"
#include "read/study.h"
#include "read/topology.h"
#include "read/trace.h"
#include "read/traffic.h"
#include "read/traffic_patterns.h"
#include "sim/collective_plan.h"
#include "study/astra/check_astra.h"
#include "study/astra/trace_input.h"
#include "study/check/check_study.h"
#include "study/check/check_sweep.h"
#include "study/database/database.h"
#include "study/profile.h"
#include "zoo/namesake.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

std::string whole_text(const std::string& path) {
  const MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

std::string describe(const Machine& machine, const std::vector<std::string>& notes = {}) {
  validate_machine(machine);
  const CollectiveOptions usual;
  CollectivePlanner(machine, usual);  // its constructor holds the checks of switches
  std::string text = fmt::format("machine '{}' of {}", machine.name, counted(rank_count(machine), "device"));
  for (const std::string& note : notes) text += "\n  note: " + note;
  return text;
}

std::string describe_machine(const std::string& path) {
  std::vector<std::string> notes;
  const Machine machine = load_machine(path, path, &notes);
  return describe(machine, notes);
}

// Reading is the check: everything that a run would refuse is refused here.
std::string check_model(const std::string& name, const ModelOptions& options) {
  const Model model = read_model(name, options);
  std::string text = fmt::format("model of {}, {}", counted(std::ssize(model.operators), "operator"),
                                 counted(totals(model).parameters, "parameter"));
  for (const UnknownOperator& unknown : model.unknown)
    text +=
        fmt::format("\n  note: operator '{}' is unknown ({})", unknown.type, counted(unknown.nodes, "node"));
  for (const std::string& note : model.notes) text += fmt::format("\n  note: {}", note);
  return text;
}

// PREFIX.0.et, PREFIX.1.et ...
std::string check_traces_of(const std::string& prefix, const CheckOptions& given) {
  const std::int64_t ranks = given.ranks > 0 ? given.ranks : count_trace_files(prefix);
  TraceCheckOptions options;
  options.dimension_sizes = {ranks};
  if (!given.groups.empty()) options.communicators = read_communicators(given.groups, ranks);
  const std::vector<TraceProblem> problems = check_trace_files(prefix, options);
  refuse_problems(problems, problems.size());
  std::string text = fmt::format("traces of {}", counted(ranks, "rank"));
  for (const TraceProblem& problem : problems)
    text +=
        fmt::format("\n  warning: {}{}{}", problem.where, problem.where.empty() ? "" : ": ", problem.message);
  return text;
}

std::string check_trace(const std::string& path) {
  const ChakraTrace trace = read_chakra_file(path);
  return fmt::format("Chakra trace of {}, schema {}", counted(trace.size(), "node"), trace.schema);
}

std::string check_schedule(const std::string& path) {
  const MscclAlgorithm algorithm = read_msccl(path);
  custom_collective(algorithm);  // finds steps that wait in a circle
  if (!algorithm.kind)
    return fmt::format("MSCCL algorithm; its collective '{:.60}' is not known, so nothing was verified",
                       algorithm.collective);
  const std::string wrong = verify_msccl(algorithm, *algorithm.kind);
  if (!wrong.empty()) throw Error(path, fmt::format("performs no {}: {}", name_of(*algorithm.kind), wrong));
  return fmt::format("MSCCL algorithm, verified: performs {}", name_of(*algorithm.kind));
}

std::string check_text_workload(const std::string& path) {
  std::vector<std::string> warnings;
  const MappedFile file(path);
  const TextWorkload workload = read_astra_text(file.bytes(), path, &warnings);
  std::string text = fmt::format("ASTRA-sim text workload of {}, policy {}",
                                 counted(workload.layers.size(), "layer"), name_of(workload.policy));
  for (const std::string& warning : warnings) text += fmt::format("\n  warning: {}", warning);
  return text;
}

std::string check_task_graph(const std::string& path) {
  const FlexflowTraces traces = parse_flexflow(whole_text(path), path, {});
  return fmt::format("FlexFlow task graph of {}", counted(traces.ranks.size(), "device"));
}

std::string check_log(const std::string& path) {
  const IssueLog log = parse_issue_log(whole_text(path), path);
  std::string text = fmt::format("ASTRA-sim 2 log of {} on {}", counted(log.nodes.size(), "finished node"),
                                 counted(log.ranks, "rank"));
  if (!log.unfinished.empty())
    text += fmt::format("\n  warning: {} never finish", counted(log.unfinished.size(), "node"));
  return text;
}

std::string check_groups(const std::string& path, std::int64_t ranks) {
  const Communicators groups = read_communicators(path, ranks > 0 ? ranks : INT32_MAX);
  return fmt::format("file of {}", counted(groups.size(), "communicator group"));
}

std::string check_profile(const std::string& path, FileKind kind) {
  const bool database = kind == FileKind::sqlite;
  // Of the others only the program that wrote them knows the tables.
  const DatabaseKind* const found = database ? kind_of_database(path) : nullptr;
  if (found == &kSavedSearch) return "saved search: armilla search --save FILE --resume goes on with it";
  if (found == &kSweepDatabase) return "database of sweeps: armilla sweep --save FILE adds to it";
  const Profile profile = database ? read_profile_database(path) : read_profile(path);
  const auto communications = static_cast<std::int64_t>(profile.communications.size());
  std::string text = fmt::format("{} of {}", database ? "profile database" : "table",
                                 counted(profile.computations.size(), "computation"));
  if (communications > 0) text += " and " + counted(communications, "communication");
  return text + " with a measured time";
}

std::string check_nccl_tests(const std::string& path) {
  const std::string output = whole_text(path);
  // Any stands for the collective where the file does not say it.
  const Profile profile = parse_nccl_tests(output, path, std::string(name_of(CollectiveKind::all_reduce)));
  std::string text =
      fmt::format("output of nccl-tests with {}", counted(profile.communications.size(), "time"));
  if (output.find("Collective test starting:") == std::string::npos)
    text += "\n  note: which collective they are of is not said: import it with --collective";
  return text;
}

std::string check_kineto(const std::string& path) {
  const Profile profile = import_profile(path, "");
  return fmt::format("trace of PyTorch's profiler with {} and {} to import (armilla profile import)",
                     counted(profile.computations.size(), "product"),
                     counted(profile.communications.size(), "collective"));
}

std::string check_measurements(const std::string& path) {
  const MeasurementFile table = read_measurements(path);
  std::size_t unread = 0;
  const Measurement* first = nullptr;
  for (const Measurement& row : table.rows) {
    if (row.fault.empty()) continue;
    if (++unread == 1) first = &row;
  }
  if (unread == table.rows.size()) throw Error(first->where, first->fault, first->expected);
  std::string text = fmt::format("table of {} ({})", counted(table.rows.size(), "measurement"), table.kind);
  if (unread > 0)
    text += fmt::format("\n  warning: {} cannot be read, the first of which is {}: {}",
                        counted(unread, "row"), first->where, first->fault);
  return text;
}

std::string check_topology(const std::string& path, FileKind kind) {
  const MachineLinks links = read_topology_file(path);
  const std::int64_t devices = links.graph.devices();
  std::string text = fmt::format("{}: {}", file_format(kind).what, counted(devices, "device"));
  const auto others = static_cast<std::int64_t>(links.graph.nodes.size()) - devices;
  if (others > 0)
    text += fmt::format(", {}", with_separators(others) + (others == 1 ? " switch" : " switches"));
  text += fmt::format(", {}", counted(links.graph.cables.size(), "link"));
  if (!links.surplus.empty()) text += fmt::format("\n  warning: {} are left out, as in ns-3", links.surplus);
  if (!links.without_effect.empty()) text += fmt::format("\n  warning: {}", links.without_effect);
  return text;
}

std::string check_logical_topology(const std::string& path) {
  std::vector<std::string> warnings;
  std::int64_t ranks = 1;
  const std::vector<std::int64_t> sizes = read_logical_dimensions(path, warnings);
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(ranks, size, &ranks) || ranks > INT32_MAX)
      throw Error(path, "its dimensions make more ranks than there can be");
  }
  std::string text =
      fmt::format("logical topology of {} in {}", counted(ranks, "rank"), counted(sizes.size(), "dimension"));
  for (const std::string& warning : warnings) text += fmt::format("\n  warning: {}", warning);
  return text;
}

// Which of them are hosts only its topology knows: here as many as a topology may have.
std::string check_flows(const std::string& path, FileKind kind) {
  constexpr std::size_t kMostHosts = 10'000'000;
  NetworkGraph graph;
  graph.is_switch.resize(kMostHosts);
  const std::vector<TrafficFlow> flows = read_flow_file(path, graph);
  std::int64_t last = 0;
  for (const TrafficFlow& flow : flows) last = std::max({last, flow.source, flow.destination});
  return fmt::format("{} of {} between hosts up to number {}",
                     kind == FileKind::hpcc_flows ? "file" : "connection matrix",
                     counted(flows.size(), "flow"), last);
}

// Each kind of file by the reader that a run would use.
std::string check_file(const std::string& path, FileKind kind, const CheckOptions& options) {
  switch (kind) {
    case FileKind::machine:
      return describe_machine(path);
    case FileKind::device:
      return fmt::format("device '{}'", read_device(Config::read(path)).name);
    case FileKind::profile:
    case FileKind::sqlite:
      return check_profile(path, kind);
    case FileKind::chakra:
    case FileKind::chakra_json:
      return check_trace(path);
    case FileKind::astra_text:
      return check_text_workload(path);
    case FileKind::flexflow:
      return check_task_graph(path);
    case FileKind::msccl:
      return check_schedule(path);
    case FileKind::issue_log:
      return check_log(path);
    case FileKind::communicators:
      return check_groups(path, options.ranks);
    case FileKind::scalesim_config:
      read_scalesim_config(path);
      return "SCALE-Sim configuration";
    case FileKind::booksim_config:
      read_booksim(path);
      return "BookSim configuration";
    case FileKind::ns3_config:
      read_roce_config(path);
      return "ns-3 configuration with its topology and flows";
    case FileKind::infragraph:
    case FileKind::hpcc_topology:
    case FileKind::htsim_topology:
      return check_topology(path, kind);
    case FileKind::hpcc_flows:
    case FileKind::htsim_connections:
      return check_flows(path, kind);
    case FileKind::measurements:
      return check_measurements(path);
    case FileKind::nccl_tests:
      return check_nccl_tests(path);
    case FileKind::kineto:
      return check_kineto(path);
    case FileKind::ns3_topology:
      return check_logical_topology(path);
    case FileKind::sweep:
      return check_sweep_file(path, *options.progress);
    case FileKind::astra1_system:
    case FileKind::astra1_network:
    case FileKind::astra2_system:
    case FileKind::astra2_network:
    case FileKind::astra2_memory:
    case FileKind::custom_table:
      return check_astra_file(path, kind, options.ranks);
    // Readable JSON of unknown purpose falls through to the refusal below; broken JSON gets its own.
    case FileKind::json:
      if (!outline_json(whole_text(path)).complete)
        throw Error(path, "is broken JSON", "a bracket or a quotation mark is never closed");
      break;
    default:
      break;
  }
  const FileFormat& format = file_format(kind);
  throw Error(path,
              kind == FileKind::empty || kind >= FileKind::json ? fmt::format("is {}", format.what)
              : format.read ? fmt::format("is {}, which is not checked by itself", format.what)
                            : fmt::format("is {}, which no command reads", format.what),
              std::string(format.use));
}

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_model(FileKind kind) {
  const auto formats = model_formats();
  return std::any_of(formats.begin(), formats.end(), [&](const ModelFormat& f) { return f.kind == kind; });
}

// A file that is damaged from its first byte on has only its name.
bool is_meant_as_trace(const std::string& path, FileKind kind) {
  const bool suffix = path.ends_with(".et") || path.ends_with(".et.gz") || path.ends_with(".eg");
  return suffix && (kind >= FileKind::json || kind == FileKind::gzip);
}

// A workflow of GitHub's Actions has the key 'jobs', as a study of several jobs does, and the key 'on'.
bool is_workflow(const std::string& path) {
  const std::string text = whole_text(path);
  const Outline outline = outline_yaml(text);
  return outline.has("on") && outline.has("jobs");
}

bool is_meant_as_configuration(const std::string& path, FileKind kind) {
  if (kind == FileKind::yaml && is_workflow(path)) return false;
  return (kind == FileKind::yaml || kind == FileKind::json || kind == FileKind::text ||
          kind == FileKind::empty) &&
         (path.ends_with(".yaml") || path.ends_with(".yml"));
}

}  // namespace

// The order is that of a run: names that are compiled in, then files, then prefixes of traces, then what a
// short name means.
CheckedInput check_input(const std::string& input, const CheckOptions& options) {
  const bool model_name = names_model(input);
  const bool machine_name = is_one_of(machine_names(), input), device_name = is_one_of(device_names(), input);
  if (!model_name && !machine_name && !device_name) {
    if (is_file(input)) {
      const FileKind kind = sniff_file(input);
      if (is_model(kind)) return {.text = check_model(input, options.model), .uses_model = true};
      if (kind == FileKind::study || is_meant_as_configuration(input, kind))
        return {.text = check_study_file(input)};
      if (is_meant_as_trace(input, kind)) return {.text = check_trace(input)};
      return {.text = check_file(input, kind, options),
              .uses_ranks = kind == FileKind::communicators || kind == FileKind::astra2_memory};
    }
    if (!is_there(input) && trace_file(input, 0))
      return {.text = check_traces_of(input, options), .uses_groups = true, .uses_ranks = true};
  }
  if (machine_name) {
    const std::string note = namesake_note(input, "a machine that is compiled in");
    return {.text = describe(load_machine(input, input)) + (note.empty() ? "" : "\n  note: " + note)};
  }
  if (device_name) return {.text = fmt::format("device '{}'", load_device(input, input).name)};
  // "h100" means them for a run, too.
  if (!model_name && !is_there(input)) {
    std::string meant;
    for (const std::string& name : machines_meant(input))
      meant += (meant.empty() ? "" : "; ") + describe(load_machine(name, name));
    for (const std::string& name : devices_meant(input))
      meant += fmt::format("{}device '{}'", meant.empty() ? "" : "; ", name);
    if (!meant.empty()) return {.text = std::move(meant)};
  }
  return {.text = check_model(input, options.model), .uses_model = true};
}

}  // namespace armilla
