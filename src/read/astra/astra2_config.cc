#include "read/astra.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/config.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/units_text.h"
#include "read/astra/stream_words.h"
#include "read/file_format.h"

namespace armilla {
namespace {

constexpr double kAnything = std::numeric_limits<double>::max();

struct NamedKind {
  std::string_view name;
  CollectiveKind kind;
};
constexpr std::array kImplementations = {NamedKind{"all-reduce", CollectiveKind::all_reduce},
                                         NamedKind{"all-gather", CollectiveKind::all_gather},
                                         NamedKind{"reduce-scatter", CollectiveKind::reduce_scatter},
                                         NamedKind{"all-to-all", CollectiveKind::all_to_all}};

// JSON has no comments; such keys are the usual substitute.
bool looks_like_comment(std::string_view key) {
  return key.starts_with('_') || key.starts_with('#') || key.starts_with("//") ||
         key.starts_with("comment") || key.starts_with('$');
}

// After every known key has been asked for.
void finish_keys(const Config& config, std::vector<std::string>& warnings) {
  for (const std::string& key : config.keys()) {
    if (!looks_like_comment(key)) continue;
    warnings.push_back(fmt::format("{}: the key is taken as a comment", config.at(key).where()));
  }
  config.reject_unknown_keys();
}

Config read_mapping(const std::string& path, FileKind kind, std::string_view what) {
  {
    const MappedFile file(path);
    require_kind(path, file.bytes(), kind, file_format(kind).what);
  }
  Config config = Config::read(path);
  if (!config.is_map()) throw Error(path, fmt::format("is not a {}: it holds no keys", what));
  return config;
}

// ASTRA-sim wants lists; a single value is one, too.
std::vector<Config> values_of(const Config& config) {
  return config.is_list() ? config.items() : std::vector<Config>{config};
}

bool is_on(const Config& config) {
  const std::string text = config.text();
  if (text == "true" || text == "false") return text == "true";
  return real_between(text, config.where(), -kAnything, kAnything) != 0;
}

double real(const Config& config, double lowest, double highest = 1e12) {
  return real_between(config.text(), config.where(), lowest, highest);
}

// ASTRA-sim opens paths from the folder it was started in. Where nothing lies there, they are looked for
// beside the file that names them.
std::string traced_path(const Config& config) {
  const std::string path = config.text();
  if (path.empty()) throw Error(config.where(), "the path is empty");
  const auto exists = [](const std::string& prefix) {
    return is_there(prefix) || is_there(prefix + ".0.et");
  };
  const std::string beside = config.folder() + path;
  return !path.starts_with('/') && !exists(path) && exists(beside) ? beside : path;
}

void read_implementations(const Config& config, SystemLayer& system) {
  for (const NamedKind& each : kImplementations) {
    const auto listed = config.find(fmt::format("{}-implementation", each.name));
    if (!listed) continue;
    std::vector<StreamAlgorithm> algorithms;
    for (const Config& item : values_of(*listed))
      algorithms.push_back(stream_algorithm(item.text(), item.where()));
    // A flat algorithm treats all dimensions as one; of any other each dimension needs its own.
    if (listed->is_scalar() && system.dimensions.size() > 1 && !algorithms.front().flat) {
      throw Error(listed->where(), fmt::format("one algorithm for {} dimensions", system.dimensions.size()),
                  "list one for each, innermost first");
    }
    check_algorithms(algorithms, system.dimensions.size(), listed->where());
    if (!algorithms.empty()) system.algorithms[each.kind] = std::move(algorithms);
  }
}

void read_custom(const Config& config, SystemLayer& system) {
  for (const NamedKind& each : kImplementations) {
    // "-chakra" is what the key was called before 2025.
    for (const std::string_view suffix : {"chakra", "custom"}) {
      const auto listed = config.find(fmt::format("{}-implementation-{}", each.name, suffix));
      if (!listed) continue;
      const std::vector<Config> values = values_of(*listed);
      if (values.size() != 1) {
        throw Error(listed->where(), fmt::format("lists {} paths", values.size()),
                    "one schedule covers all dimensions: give one path prefix");
      }
      system.custom[each.kind] = traced_path(values.front());
    }
  }
  const auto table = config.find("per-node-custom-implementation");
  if (!table) return;
  const Config nodes = read_mapping(traced_path(*table), FileKind::custom_table, "table of nodes");
  for (const auto& [node, path] : nodes.entries()) {
    const std::int64_t id = parse_count(node, path.where());
    if (id < 0) throw Error(path.where(), fmt::format("node {} is negative", id));
    system.custom_by_node[static_cast<std::uint64_t>(id)] = traced_path(path);
  }
}

void read_scheduling(const Config& config, SystemLayer& system, std::vector<std::string>& warnings) {
  if (const auto policy = config.find("scheduling-policy")) {
    constexpr ChunkOrder kOrders[] = {ChunkOrder::lifo, ChunkOrder::fifo, ChunkOrder::priority};
    system.scheduling = kOrders[policy->choice({"LIFO", "FIFO", "EXPLICIT"})];
  } else {
    warnings.push_back(fmt::format("{}: no scheduling-policy: LIFO is taken", config.file()));
  }
  if (const auto optimization = config.find("collective-optimization")) {
    system.decomposition = stream_decomposition(optimization->text(), optimization->where());
  } else {
    system.decomposition = Decomposition::baseline;
    if (system.dimensions.size() > 1)
      warnings.push_back(fmt::format("{}: no collective-optimization: baseline is taken", config.file()));
  }
  // ASTRA-sim 2 documents both keys and reads neither.
  const auto warn = [&](const Config& key) {
    warnings.push_back(
        fmt::format("{}: '{:.60}' is heeded; ASTRA-sim 2 would ignore it", key.where(), key.text()));
  };
  if (const auto order = config.find("intra-dimension-scheduling")) {
    system.intra_dimension = intra_dimension_order(order->text(), order->where());
    if (system.intra_dimension != IntraDimensionOrder::fifo) warn(*order);
  }
  if (const auto order = config.find("inter-dimension-scheduling")) {
    system.inter_dimension = inter_dimension_order(order->text(), order->where());
    if (system.inter_dimension != InterDimensionOrder::ascending) warn(*order);
  }
}

void read_chunks(const Config& config, double injection_scale, SystemLayer& system,
                 std::vector<std::string>& warnings) {
  const auto count = [&](const Config& value, std::int64_t lowest) {
    return truncated_count(value.text(), value.where(), lowest, warnings);
  };
  if (const auto delay = config.find("endpoint-delay")) {
    // --injection-scale multiplies the file's delay, never the default, as in ASTRA-sim.
    const double scaled = static_cast<double>(count(*delay, 0)) * injection_scale;
    if (!(scaled >= 0 && scaled <= INT32_MAX))
      throw Error("--injection-scale", fmt::format("makes an endpoint-delay of {} ns", scaled));
    system.endpoint_delay_ns = static_cast<std::int64_t>(scaled);
  } else if (injection_scale != 1) {
    warnings.push_back(fmt::format(
        "{}: no endpoint-delay: --injection-scale has no effect on the default of 10 ns, as in ASTRA-sim",
        config.file()));
  }
  if (const auto active = config.find("active-chunks-per-dimension"))
    system.active_chunks = count(*active, 1);
  const auto splits = config.find("preferred-dataset-splits");
  system.splits = splits ? count(*splits, 1) : 0;  // check_system wants it when there are collectives
}

void read_roofline(const Config& config, SystemLayer& system, std::vector<std::string>& warnings) {
  if (const auto peak = config.find("peak-perf")) system.peak_flops = real(*peak, 0) * 1e12;
  if (const auto memory = config.find("local-mem-bw"))
    system.memory_bytes_per_second = real(*memory, 0) * 1e9;
  if (const auto roofline = config.find("roofline-enabled")) {
    system.roofline = is_on(*roofline);
    for (const std::string_view key : {"peak-perf", "local-mem-bw"}) {
      const auto value = config.find(key);
      if (system.roofline && (!value || !(real(*value, 0) > 0))) {
        throw Error(value ? value->where() : config.file(),
                    fmt::format("the roofline needs a '{}' of more than 0", key),
                    "peak-perf is in TFLOP/s, local-mem-bw in GB/s");
      }
    }
  }
  if (system.memory_bytes_per_second == 0) {
    warnings.push_back(
        fmt::format("{}: no local-mem-bw: the reductions of collectives take no time", config.file()));
  }
}

void read_on_off(const Config& config, SystemLayer& system) {
  if (const auto on = config.find("replay-only")) system.replay_only = is_on(*on);
  if (const auto on = config.find("trace-enabled")) system.trace_enabled = is_on(*on);
  if (const auto on = config.find("track-local-mem")) system.track_local_memory = is_on(*on);
  if (const auto name = config.find("local-mem-trace-filename")) {
    if (name->text().empty()) throw Error(name->where(), "the name is empty");
    system.local_memory_trace = name->text();
  }
}

void read_bus(const Config& config, SystemLayer& system, std::vector<std::string>& warnings) {
  if (const auto on = config.find("model-shared-bus")) system.shared_bus = is_on(*on);
  if (const auto delay = config.find("local-reduction-delay"))
    system.local_reduction_delay = truncated_count(delay->text(), delay->where(), 0, warnings);
  BusNumbers bus;
  const auto number = [&](std::string_view key, double& value) {
    if (const auto found = config.find(key)) value = real(*found, 0, 1e9);
  };
  number("L", bus.l);
  number("o", bus.o);
  number("g", bus.g);
  number("G", bus.gap_per_byte);
  set_bus(system, bus);
}

// One value per dimension.
std::vector<Config> per_dimension(const Config& network, std::string_view key, std::size_t dimensions) {
  const Config listed = network.at(key);
  std::vector<Config> values = values_of(listed);
  if (values.size() != dimensions) {
    throw Error(listed.where(),
                fmt::format("{} for {}", counted(values.size(), "value"), counted(dimensions, "dimension")),
                "the key 'topology' says how many dimensions there are");
  }
  return values;
}

RemoteMemoryKind memory_kind(const Config& type) {
  constexpr RemoteMemoryKind kKinds[] = {RemoteMemoryKind::none, RemoteMemoryKind::per_npu,
                                         RemoteMemoryKind::per_node, RemoteMemoryKind::pool};
  return kKinds[type.choice(
      {"NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"})];
}

}  // namespace

std::vector<StreamDimension> read_astra2_network(const std::string& path,
                                                 std::vector<std::string>& warnings) {
  constexpr std::size_t kMost = 32;  // the bits of a dimension mask
  const Config config = read_mapping(path, FileKind::astra2_network, "network configuration");
  const std::vector<Config> topology = values_of(config.at("topology"));
  if (topology.empty()) throw Error(config.at("topology").where(), "lists no dimension");
  if (topology.size() > kMost)
    throw Error(config.at("topology").where(), fmt::format("more than {} dimensions", kMost));
  const std::vector<Config> sizes = per_dimension(config, "npus_count", topology.size());
  const std::vector<Config> bandwidths = per_dimension(config, "bandwidth", topology.size());
  const std::vector<Config> latencies = per_dimension(config, "latency", topology.size());
  std::vector<StreamDimension> dimensions;
  std::int64_t ranks = 1;
  for (std::size_t d = 0; d < topology.size(); ++d) {
    StreamDimension dimension;
    dimension.kind = stream_dimension_kind(topology[d].text(), topology[d].where());
    dimension.size = sizes[d].count(1, INT32_MAX);
    dimension.bandwidth = link_bandwidth(bandwidths[d].text(), bandwidths[d].where());
    dimension.latency_ns = link_latency(latencies[d].text(), latencies[d].where());
    ranks *= dimension.size;  // both below 2^31
    if (ranks > INT32_MAX) throw Error(sizes[d].where(), fmt::format("more than {} NPUs", INT32_MAX));
    dimensions.push_back(std::move(dimension));
  }
  finish_keys(config, warnings);
  return dimensions;
}

RemoteMemory read_astra2_remote_memory(const std::string& path, std::int64_t ranks,
                                       std::vector<std::string>& warnings) {
  const Config config = read_mapping(path, FileKind::astra2_memory, "remote memory configuration");
  RemoteMemory memory;
  memory.kind = memory_kind(config.at("memory-type"));
  if (const auto latency = config.find("remote-mem-latency"))
    memory.latency_ns = link_latency(latency->text(), latency->where());
  const auto bandwidth = config.find("remote-mem-bw");
  const auto nodes = config.find("num-nodes");
  const auto npus = config.find("num-npus-per-node");
  finish_keys(config, warnings);
  // Without an expansion bandwidth and nodes mean nothing and need not be there.
  if (memory.kind == RemoteMemoryKind::none) return memory;
  const Config wanted = config.at("remote-mem-bw");
  memory.bytes_per_ns = link_bandwidth(wanted.text(), wanted.where());
  if (memory.kind != RemoteMemoryKind::per_node) return memory;
  memory.nodes = config.at("num-nodes").count(1, INT32_MAX);
  memory.npus_per_node = config.at("num-npus-per-node").count(1, INT32_MAX);
  if (memory.nodes * memory.npus_per_node < ranks) {
    throw Error(nodes->where(),
                fmt::format("{} of {} {} not hold the network's {}", typed_count(memory.nodes, "node"),
                            typed_count(memory.npus_per_node, "NPU"), memory.nodes == 1 ? "does" : "do",
                            typed_count(ranks, "NPU")));
  }
  return memory;
}

void read_astra2_system(const std::string& path, double injection_scale, SystemLayer& system,
                        std::vector<std::string>& warnings) {
  const Config config = read_mapping(path, FileKind::astra2_system, "system configuration");
  read_scheduling(config, system, warnings);
  read_chunks(config, injection_scale, system, warnings);
  read_implementations(config, system);
  read_custom(config, system);
  read_roofline(config, system, warnings);
  read_on_off(config, system);
  read_bus(config, system, warnings);
  if (const auto boost = config.find("boost-mode"))
    warnings.push_back(fmt::format("{}: ignored, as in ASTRA-sim 2", boost->where()));
  finish_keys(config, warnings);
}

SystemLayer read_astra2_config(const Astra2Settings& settings, std::vector<std::string>& warnings) {
  SystemLayer system;
  system.semantics = settings.semantics;
  system.queues_per_dimension = settings.queues_per_dimension;
  system.rendezvous = settings.rendezvous;
  const bool ns3 = sniff_file(settings.network) == FileKind::ns3_config;
  if (!ns3 && !settings.logical_topology.empty())
    throw Error("--logical-topology-configuration " + settings.logical_topology,
                fmt::format("belongs to a network configuration of ns-3, and {} is none", settings.network),
                "omit it with a YAML of dimensions; a config.txt of ns-3 names its TOPOLOGY_FILE");
  if (ns3 && settings.htsim.used)
    throw Error("--htsim_opts", fmt::format("{} is of ns-3", settings.network),
                "the network configuration of htsim is a YAML of dimensions");
  if (ns3) {
    read_astra2_ns3(settings.network, settings.logical_topology, system, warnings);
  } else {
    system.dimensions = read_astra2_network(settings.network, warnings);
    if (settings.htsim.used) read_astra2_htsim(settings.htsim, system, warnings);
  }
  read_astra2_system(settings.system, settings.injection_scale, system, warnings);
  warn_about_short_lists(system, settings.system, warnings);
  if (!settings.remote_memory.empty()) {
    system.remote_memory = read_astra2_remote_memory(settings.remote_memory, rank_count(system), warnings);
  }
  return system;
}

}  // namespace armilla
