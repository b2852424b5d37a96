#include "study/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/single_precision.h"
#include "collective/algorithm.h"
#include "collective/verify.h"
#include "ir/derived/check_system.h"
#include "network/network.h"
#include "read/astra.h"
#include "read/file_format.h"
#include "read/trace.h"
#include "study/astra/trace_input.h"
#include "trace/graph.h"
#include "trace/text.h"
#include "write/astra.h"

namespace armilla {
namespace {

// Algorithms of ASTRA-sim by the names of our own table.
std::string native_name(const StreamAlgorithm& algorithm) {
  switch (algorithm.kind) {
    case StreamAlgorithmKind::ring:
      return "ring";
    case StreamAlgorithmKind::direct:
      return algorithm.window < 0 ? "direct" : fmt::format("direct:window={}", algorithm.window);
    case StreamAlgorithmKind::halving_doubling:
      return "halving-doubling";
    case StreamAlgorithmKind::double_binary_tree:
      return "double-binary-tree";
  }
  return "ring";
}

std::vector<std::int64_t> stream_sizes(const SystemLayer& system) {
  std::vector<std::int64_t> sizes;
  for (const StreamDimension& dimension : system.dimensions) sizes.push_back(dimension.size);
  return sizes;
}

std::string algorithm_text(const SystemLayer& system, const Graph& graph, const CollectiveCall& call) {
  if (call.custom >= 0) return graph.custom[static_cast<std::size_t>(call.custom)].name;
  const auto found = system.algorithms.find(call.kind);
  if (found == system.algorithms.end()) return "its duration";
  std::string text;
  for (const StreamAlgorithm& algorithm : found->second) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", algorithm.flat ? "flat " : "",
                        native_name(algorithm));
  }
  return text;
}

// What the report shows of collectives beside their times.
void describe_collectives(Result& result, const Graph& graph, const SystemLayer& system) {
  std::vector<std::size_t> rank_of(graph.programs.size());
  for (std::size_t rank = graph.program_of.size(); rank-- > 0;) rank_of[graph.program_of[rank]] = rank;
  for (CollectiveRecord& record : result.collectives) {
    const CollectiveCall& call = graph.collectives[record.call];
    const GroupFamily& family = graph.families[call.family];
    const std::int32_t group = family.group_of[rank_of[record.program]];
    if (group >= 0)
      record.group_size = static_cast<std::int64_t>(family.groups[static_cast<std::size_t>(group)].size());
    if (record.algorithm.empty()) record.algorithm = algorithm_text(system, graph, call);
  }
}

// Flags of rules that the native profile has not.
template <class Settings>
void warn_about_astra_flags(const Settings& settings, std::vector<std::string>& warnings) {
  const std::pair<std::string_view, bool> flags[] = {
      {"--num-queues-per-dim", settings.queues_per_dimension != 1},
      {"--injection-scale", settings.injection_scale != 1},
      {"--rendezvous-protocol", settings.rendezvous}};
  for (const auto& [flag, given] : flags) {
    if (given)
      warnings.push_back(
          fmt::format("{} has no effect with --profile native: it is a rule of ASTRA-sim's", flag));
  }
}

// Plays `graph`, by the rules of ASTRA-sim or by ours, and fills what a Run needs beside it.
Run play(Graph graph, const SystemLayer& system, bool native, SimulationOptions options) {
  // The native profile uses the machine, algorithms and chunks of the system file, but none of ASTRA-sim's
  // own rules.
  Run run;
  run.graph = std::move(graph);
  if (native) {
    run.study = native_study(system, run.notes);
    options.remote_memory = system.remote_memory;
    options.packets = system.packets;
    const std::unique_ptr<CostModel> cost = make_cost_model(run.study.compute, run.study.machine.device);
    run.result = simulate(run.graph, run.study, *cost, options);
  } else {
    run.study.machine = machine_of(system);
    run.study.plan.ranks = run.graph.ranks;
    run.study.network = system.network;
    if (system.network.name.empty()) run.study.network.name = name_of(system.semantics);
    run.result = simulate(run.graph, system, options);
    describe_collectives(run.result, run.graph, system);
  }
  run.study.compute.name = "trace";
  run.warnings = run.result.warnings;
  run.notes.insert(run.notes.end(), run.result.notes.begin(), run.result.notes.end());
  return run;
}

// What was asked for goes before what the files say: of the same network, its parameters alone.
void choose_network(const ComponentChoice& asked, SystemLayer& system) {
  if (asked.name.empty()) return;
  ComponentChoice chosen = asked;
  if (asked.name == system.network.name)
    chosen.parameters.insert(system.network.parameters.begin(), system.network.parameters.end());
  system.network = std::move(chosen);
}

Communicators groups_of(const Astra2Request& request, std::int64_t ranks,
                        std::vector<std::string>& warnings) {
  // ASTRA-sim takes any path with "empty" in it for none.
  if (request.groups.find("empty") != std::string::npos && !is_there(request.groups)) {
    if (request.groups != "empty")
      warnings.push_back(
          fmt::format("--comm-group-configuration {}: the file does not exist: no groups", request.groups));
    return {};
  }
  return read_communicators(request.groups, ranks);
}

// Schedules of the user's: as many members as there are files in a row, or all ranks for MSCCL.
// A schedule that several kinds or nodes name is read once.
void add_custom(const SystemLayer& system, std::int64_t ranks, TraceGraphOptions& lowering) {
  std::map<std::string, std::int32_t> known;
  const auto index_of = [&](const std::string& path) {
    const auto [place, fresh] = known.emplace(path, static_cast<std::int32_t>(lowering.custom.size()));
    if (fresh) {
      const std::int64_t files = count_trace_files(path);
      lowering.custom.push_back(read_custom_collective(
          path, static_cast<std::int32_t>(files > 0 ? std::min(files, ranks) : ranks)));
    }
    return place->second;
  };
  for (const auto& [kind, path] : system.custom) lowering.custom_of_kind[kind] = index_of(path);
  for (const auto& [node, path] : system.custom_by_node) lowering.custom_of_node[node] = index_of(path);
}

// The peer runs any schedule; one that cannot have performed its collective is at least not passed over. Of
// MSCCL files the exact proof, else necessary conditions.
void warn_about_schedules(const Graph& graph, std::int64_t own, std::vector<std::string>& warnings) {
  std::set<std::pair<std::int32_t, CollectiveKind>> seen;
  for (const CollectiveCall& call : graph.collectives) {
    if (call.custom < 0 || call.custom >= own || !seen.emplace(call.custom, call.kind).second) continue;
    const CustomCollective& schedule = graph.custom[static_cast<std::size_t>(call.custom)];
    const std::string wrong = is_msccl_file(schedule.name)
                                  ? verify_msccl(read_msccl(schedule.name), call.kind, call.root)
                                  : verify_custom(schedule, {call.kind, std::nullopt, call.root});
    if (!wrong.empty())
      warnings.push_back(fmt::format("{}: performs no {}: {}", schedule.name, name_of(call.kind), wrong));
  }
}

// Every rank gets a program of its own, so that the nodes of each are recorded.
// Ranks with equal traces share a program otherwise, and only one of them is recorded.
void separate_programs(Graph& graph, std::vector<Astra2Utilisation>& utilisation) {
  std::vector<Program> programs;
  std::vector<Astra2Utilisation> uses;
  for (std::uint32_t& program : graph.program_of) {
    programs.push_back(graph.programs[program]);
    if (!utilisation.empty()) uses.push_back(utilisation[program]);
    program = static_cast<std::uint32_t>(programs.size() - 1);
  }
  graph.programs = std::move(programs);
  utilisation = std::move(uses);
}

std::vector<Astra2Utilisation> utilisation(const std::vector<RooflineUse>& uses) {
  std::vector<Astra2Utilisation> shares;
  for (const RooflineUse& use : uses) {
    const double time = use.time + 1;  // as the peer, which so avoids a division by zero
    shares.push_back({use.compute_bound_time / time, use.compute_utilisation / time,
                      use.memory_utilisation / time, use.operation_intensity / time});
  }
  return shares;
}

void track_memory(const Astra2Request& request, const SystemLayer& system, Astra2Run& done) {
  std::size_t tensors = 0;
  for (std::int32_t rank = 0; rank < done.run.result.ranks; ++rank) {
    const ChakraTrace trace = read_chakra_file(trace_file(request.workload, rank).value());
    const Program& program = done.run.graph.programs[static_cast<std::size_t>(rank)];
    LocalMemory memory = local_memory(trace, rank, program, node_spans(done.run.result, rank));
    tensors += memory.tensors;
    done.files.push_back(
        {fmt::format("{}.{}.json", system.local_memory_trace, rank), std::move(memory.chrome_trace)});
    const std::string line = peak_memory_line(rank, memory.peak_bytes);
    done.lines += line;
    done.log += line;
  }
  if (tensors == 0)
    done.run.warnings.push_back("track-local-mem: no node has the attributes 'inputs' or 'outputs'");
}

void warn_about_flags(const Astra2Request& request, std::vector<std::string>& warnings) {
  if (request.native) {
    warn_about_astra_flags(request.settings, warnings);
    if (request.settings.semantics == Semantics::astra2_aware)
      warnings.push_back("--backend aware has no effect with --profile native: name a --network");
  }
  if (request.compute_scale != 1)
    warnings.push_back("--compute-scale has no effect in ASTRA-sim 2, nor here");
  if (request.comm_scale != 1) warnings.push_back("--comm-scale has no effect in ASTRA-sim 2, nor here");
}

// Of ns-3 and htsim, whose links another network takes. A network that knows dimensions alone has those of
// the links with ns-3, but with htsim those of the YAML, which have nothing to do with its topology.
void warn_about_packets(const Astra2Request& request, const SystemLayer& system,
                        std::vector<std::string>& warnings) {
  const bool takes_links = !promises_of(system.network).over_dimensions;
  if (request.settings.htsim.used) {
    if (!takes_links)
      throw Error(system.network.where,
                  fmt::format("the network {} knows dimensions, not the links of htsim's topology",
                              system.network.name),
                  "--network flow, flit or packet, or omit --htsim-proto and --htsim_opts");
    warnings.push_back(fmt::format(
        "--htsim_opts: the links of htsim's topology are taken; its TCP has no part in the network {}",
        system.network.name));
    return;
  }
  warnings.push_back(fmt::format(
      "{}: of ns-3. {}; its other settings have no effect on this network", request.settings.network,
      takes_links ? "Its links are taken"
                  : "Every dimension has the bandwidth and latency of its hosts' links here"));
}

// What the files of ns-3 and htsim choose, for the report.
void name_transport(const PacketSettings& settings, ComponentChoice& network) {
  for (const CongestionControlRow& row : kCongestionControls) {
    if (row.control == settings.congestion_control)
      network.parameters.try_emplace("cc", std::string(row.name), network.where);
  }
}

}  // namespace

// The system file in terms of our own collectives. What has no counterpart is noted, not guessed.
Study native_study(const SystemLayer& system, std::vector<std::string>& notes) {
  Study study;
  study.machine = machine_of(system);
  study.plan.ranks = rank_count(system);
  if (!system.network.name.empty()) study.network = system.network;
  CollectiveOptions& options = study.collectives;
  options.decomposition = system.decomposition;
  options.chunks = std::max<std::int64_t>(1, system.splits);
  options.active_chunks = system.active_chunks;
  options.order = system.scheduling;
  options.charge_reductions = system.memory_bytes_per_second > 0;
  const auto is_flat = [](const auto& entry) { return entry.second.front().flat; };
  const bool flat =
      !system.algorithms.empty() && std::all_of(system.algorithms.begin(), system.algorithms.end(), is_flat);
  if (flat) options.decomposition = Decomposition::flat;
  for (const auto& [kind, algorithms] : system.algorithms) {
    // Native plans need an algorithm for each dimension, or one over all.
    if (!flat && (algorithms.front().flat || algorithms.size() != system.dimensions.size())) {
      notes.push_back(
          fmt::format("the {} uses each dimension's natural algorithm: the system file does not "
                      "name one for each",
                      name_of(kind)));
      continue;
    }
    std::vector<std::string> names;
    for (const StreamAlgorithm& algorithm : algorithms) names.push_back(native_name(algorithm));
    const auto cannot = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return !Algorithm(name, "native profile").performs(kind);
    });
    if (cannot == names.end()) {
      options.algorithms_by_kind[kind] = std::move(names);
    } else {
      notes.push_back(fmt::format("the {} uses each dimension's natural algorithm: {} cannot perform it",
                                  name_of(kind), *cannot));
    }
  }
  return study;
}

Astra2Run run_astra2(const Astra2Request& request, SimulationOptions options) {
  std::vector<std::string> warnings;
  SystemLayer system = read_astra2_config(request.settings, warnings);
  choose_network(request.network, system);
  if (request.native) system.semantics = Semantics::native;
  // Configuration first: it says how many ranks there are, and so how many traces to read.
  const std::int64_t ranks = rank_count(system);
  warn_about_flags(request, warnings);
  if (system.packets && system.network.name != "packet") warn_about_packets(request, system, warnings);

  TraceGraphOptions lowering;
  lowering.dimension_sizes = stream_sizes(system);
  lowering.communicators = groups_of(request, ranks, warnings);
  lowering.as_astra = !request.native;
  lowering.replay_only = system.replay_only;
  lowering.roofline = system.roofline;
  lowering.peak_flops = system.peak_flops;
  lowering.memory_bytes_per_second = system.memory_bytes_per_second;
  add_custom(system, ranks, lowering);
  TraceJob job = read_trace_job(request.workload, lowering);
  warnings.insert(warnings.end(), job.warnings.begin(), job.warnings.end());
  warn_about_schedules(job.graph, static_cast<std::int64_t>(lowering.custom.size()), warnings);
  Graph& graph = job.graph;
  check_system(system, graph, {request.settings.system, request.settings.remote_memory});
  // Logs and memory are made of recorded intervals.
  if (system.trace_enabled || system.track_local_memory) options.intervals = options.every_interval = true;
  Astra2Lines lines{system.replay_only, system.trace_enabled, utilisation(job.roofline_use)};
  if (system.trace_enabled || system.track_local_memory) separate_programs(graph, lines.utilisation);

  Astra2Run done;
  done.run = play(std::move(graph), system, request.native, options);
  done.run.workload = request.workload;
  done.run.warnings.insert(done.run.warnings.begin(), warnings.begin(), warnings.end());
  if (system.packets && system.network.name == "packet")
    name_transport(*system.packets, done.run.study.network);
  done.wants_log = system.trace_enabled;
  done.lines = astra2_finish_lines(done.run.graph, done.run.result, lines);
  done.log = astra2_log(done.run.graph, done.run.result, lines);
  if (system.track_local_memory) track_memory(request, system, done);
  return done;
}

Astra1Run run_astra1(const Astra1Request& request, const SimulationOptions& options) {
  std::vector<std::string> warnings;
  SystemLayer system = read_astra1_config(request.settings, warnings);
  choose_network(request.network, system);
  const MappedFile file(request.workload);
  require_kind(request.workload, file.bytes(), FileKind::astra_text, file_format(FileKind::astra_text).what);
  const TextWorkload workload = read_astra_text(file.bytes(), request.workload, &warnings);

  TextGraphOptions lowering;
  lowering.dimensions = stream_sizes(system);
  lowering.passes = request.passes;
  // ASTRA-sim's factors have single precision.
  lowering.compute_scale = request.native ? request.compute_scale : single_precision(request.compute_scale);
  lowering.comm_scale = request.native ? request.comm_scale : single_precision(request.comm_scale);
  lowering.single_precision = system.tutorial_release && !request.native;
  lowering.astra1_steps = !request.native;
  lowering.blocking_input_gradient = system.tutorial_release;
  lowering.simai = request.simai;
  if (request.native) warn_about_astra_flags(request.settings, warnings);
  for (const auto& [kind, algorithms] : system.algorithms) {
    if (algorithms.front().flat) lowering.flat.insert(kind);
  }
  TextGraph text = text_graph(workload, lowering);
  warnings.insert(warnings.end(), text.warnings.begin(), text.warnings.end());
  system.split_dimension = text.split_dimension;
  system.split_first = text.split_first;
  if (request.native) {
    system.semantics = Semantics::native;
    // Half a dimension is none of the machine's: such groups are just sets of ranks.
    for (GroupFamily& family : text.graph.families) {
      if (text.split_dimension >= 0) family.dimension_mask = 0;
    }
  }
  // What the rules cannot do with this workload is refused before the simulation.
  check_system(system, text.graph, {request.settings.system, request.settings.network});

  Astra1Run done;
  SystemLayer machine_system = system;
  // Links are counted as ASTRA-sim 1.0 counts them whichever profile is simulated.
  machine_system.semantics = Semantics::astra1;  // how links count
  done.run = play(text.graph, request.native ? machine_system : system, request.native, options);
  if (!system.links.empty())
    done.run.notes.insert(
        done.run.notes.begin(),
        fmt::format("{}: of ASTRA-sim's Garnet. {}", request.settings.network,
                    system.network.name == "flit"
                        ? "The links, whose latencies include the routers', and the settings of the network "
                          "flit are the "
                          "file's; packets take equally short ways in turn, whatever its routing-algorithm"
                        : "The links, whose latencies include the routers', are the file's; its other "
                          "settings have no "
                          "effect on this network"));
  done.run.workload = request.workload;
  done.run.warnings.insert(done.run.warnings.begin(), warnings.begin(), warnings.end());
  const TextReport report = text_report(text, done.run.result);
  for (std::size_t pass = 0; pass < report.pass_ends.size(); ++pass)
    done.lines += fmt::format("pass: {} finished at time: {}\n", pass, report.pass_ends[pass].value / 1000);
  done.lines += fmt::format("all passes finished at time: {}, id of first layer: {}\n",
                            report.finish.value / 1000, workload.layers.front().name);

  for (const TextLayerReport& layer : report.layers) {
    // The report's columns come in the order forward, weight gradient, input gradient.
    const auto in_order = [](const std::array<Time, 3>& times) {
      const auto at = [&](TextPart part) { return times[static_cast<std::size_t>(part)]; };
      return std::array{at(TextPart::forward), at(TextPart::weight_gradient), at(TextPart::input_gradient)};
    };
    done.report.layers.push_back({layer.name,
                                  in_order(layer.compute),
                                  in_order(layer.exposed),
                                  in_order(layer.communication),
                                  {},
                                  {}});
  }
  done.report.finish = report.finish;
  done.report.total_compute = report.compute;
  done.report.cost = astra1_network_cost(machine_system);
  done.report.payload = done.run.result.sent_per_dimension;
  add_chunk_statistics(done.report, done.run.graph, done.run.result,
                       logical_dimensions(lowering.dimensions, text).size());
  return done;
}

}  // namespace armilla
