#include "read/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/config.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/single_precision.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/astra/garnet_network.h"
#include "read/astra/stream_words.h"
#include "read/file_format.h"

namespace armilla {
namespace {

constexpr std::size_t kMostDimensions = 10;  // of ASTRA-sim's masks

// The system file.

constexpr std::string_view kSystemKeys[] = {"scheduling-policy",
                                            "all-reduce-implementation",
                                            "reduce-scatter-implementation",
                                            "all-gather-implementation",
                                            "all-to-all-implementation",
                                            "collective-optimization",
                                            "endpoint-delay",
                                            "local-reduction-delay",
                                            "active-chunks-per-dimension",
                                            "L",
                                            "o",
                                            "g",
                                            "G",
                                            "model-shared-bus",
                                            "preferred-dataset-splits",
                                            "boost-mode",
                                            "intra-dimension-scheduling",
                                            "inter-dimension-scheduling",
                                            "seprate-log",
                                            "gap-denominator"};

Words read_words(const std::string& path) {
  return read_key_words(path, FileKind::astra1_system, "an ASTRA-sim 1.0 system file", kSystemKeys);
}

// One word lists an algorithm per dimension, joined by underscores: "ring_halvingDoubling".
void read_algorithm_words(const Words& words, SystemLayer& system) {
  constexpr std::pair<std::string_view, CollectiveKind> kKinds[] = {
      {"all-reduce-implementation", CollectiveKind::all_reduce},
      {"reduce-scatter-implementation", CollectiveKind::reduce_scatter},
      {"all-gather-implementation", CollectiveKind::all_gather},
      {"all-to-all-implementation", CollectiveKind::all_to_all}};
  for (const auto& [key, kind] : kKinds) {
    const Located* const value = find_word(words, key);
    if (value == nullptr) continue;
    std::vector<StreamAlgorithm> algorithms;
    const std::string_view text = value->text;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('_', begin), text.size());
      algorithms.push_back(stream_algorithm(text.substr(begin, end - begin), value->where));
      begin = end + 1;
    }
    check_algorithms(algorithms, system.dimensions.size(), value->where);
    system.algorithms[kind] = std::move(algorithms);
  }
}

void read_scheduling_words(const Words& words, const std::string& path, SystemLayer& system) {
  const Located& policy = word_at(words, "scheduling-policy", path);
  constexpr std::string_view kPolicies[] = {"LIFO", "FIFO"};
  if (policy.text != kPolicies[0] && policy.text != kPolicies[1]) {
    throw Error(policy.where, fmt::format("unknown scheduling policy '{:.60}'", policy.text),
                suggest(policy.text, std::span(kPolicies)));
  }
  system.scheduling = policy.text == "LIFO" ? ChunkOrder::lifo : ChunkOrder::fifo;
  const Located& optimization = word_at(words, "collective-optimization", path);
  system.decomposition = stream_decomposition(optimization.text, optimization.where);
  if (const Located* order = find_word(words, "intra-dimension-scheduling"))
    system.intra_dimension = intra_dimension_order(order->text, order->where);
  if (const Located* order = find_word(words, "inter-dimension-scheduling"))
    system.inter_dimension = inter_dimension_order(order->text, order->where);
}

// A key of the tutorials' release alone.
void read_gap(const Words& words, const Astra1Settings& settings, SystemLayer& system,
              std::vector<std::string>& warnings) {
  const Located* const gap = find_word(words, "gap-denominator");
  if (gap == nullptr) return;
  if (settings.tutorial_release == false) {
    throw Error(gap->where, "ASTRA-sim 1.0's final release has no such key",
                "say --release tutorials for the release that has it");
  }
  system.gap_denominator = truncated_count(gap->text, gap->where, 1, warnings);
  if (system.tutorial_release) return;
  system.tutorial_release = true;
  warnings.push_back(
      fmt::format("{}: a key of ASTRA-sim 1.0's tutorials alone: their release is simulated", gap->where));
}

void read_system_file(const Astra1Settings& settings, SystemLayer& system,
                      std::vector<std::string>& warnings) {
  const std::string& path = settings.system;
  const Words words = read_words(path);
  const auto count = [&](std::string_view key, std::int64_t lowest, std::int64_t& value) {
    if (const Located* found = find_word(words, key))
      value = truncated_count(found->text, found->where, lowest, warnings);
  };
  read_scheduling_words(words, path, system);
  read_algorithm_words(words, system);
  word_at(words, "preferred-dataset-splits", path);
  count("preferred-dataset-splits", 1, system.splits);
  count("active-chunks-per-dimension", 1, system.active_chunks);
  count("local-reduction-delay", 0, system.local_reduction_delay);
  // ASTRA-sim tests these for being exactly 1.
  std::int64_t shared = 0, boost = 0, log = 0;
  count("model-shared-bus", 0, shared);
  count("boost-mode", 0, boost);
  count("seprate-log", 0, log);
  system.shared_bus = shared == 1;
  system.boost = boost == 1;
  read_gap(words, settings, system, warnings);
  if (find_word(words, "endpoint-delay") != nullptr) {
    // The injection scale multiplies the endpoint delay, and the result is truncated.
    count("endpoint-delay", 0, system.endpoint_delay_ns);
    const double scaled =
        astra1_scaled(system.endpoint_delay_ns, settings.injection_scale, system.tutorial_release);
    if (!(scaled >= 0 && scaled <= INT32_MAX))
      throw Error("--injection-scale", fmt::format("makes an endpoint-delay of {} ns", scaled));
    system.endpoint_delay_ns = static_cast<std::int64_t>(scaled);
  }
  BusNumbers bus;
  const auto number = [&](std::string_view key, double& value) {
    if (const Located* found = find_word(words, key)) value = real_between(found->text, found->where, 0, 1e9);
  };
  number("L", bus.l);
  number("o", bus.o);
  number("g", bus.g);
  number("G", bus.gap_per_byte);
  set_bus(system, bus);
}

// The network file.

Config read_network_file(const std::string& path) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::astra1_network, "an ASTRA-sim 1.0 network file");
  return Config::parse({file.bytes().data(), file.bytes().size()}, path);
}

class NetworkReader {
 public:
  explicit NetworkReader(const Astra1Settings& settings)
      : settings_(settings), config_(read_network_file(settings.network)) {
    if (!config_.is_map()) throw Error(settings.network, "is not a network configuration: it holds no keys");
  }

  // Keys that are missing tell the release: only the tutorials' reads files without them.
  std::vector<StreamDimension> read(std::vector<std::string>& warnings) {
    const auto name = config_.find("topology-name");
    if (name && name->text() != "Hierarchical") {
      throw Error(name->where(), fmt::format("topology '{:.60}' is not supported", name->text()),
                  "write Hierarchical, and the topology of each dimension under topologies-per-dim");
    }
    if (!name) absent_.push_back("topology-name");
    const auto count = config_.find("dimensions-count");
    if (!count) absent_.push_back("dimensions-count");
    count_ = count ? static_cast<std::size_t>(count->count(1, kMostDimensions)) : 1;
    const std::vector<Located> kinds = *values("topologies-per-dim", nullptr, true);
    const std::vector<Located> sizes = *values("units-count", &settings_.units_count, true);
    const std::vector<Located> links = *values("links-count", &settings_.links_count, true);
    std::vector<StreamDimension> dimensions(count_);
    std::int64_t ranks = 1;
    for (std::size_t d = 0; d < count_; ++d) {
      dimensions[d].kind = stream_dimension_kind(kinds[d].text, kinds[d].where);
      dimensions[d].size = whole(sizes[d]);
      dimensions[d].links = whole(links[d]);
      ranks *= dimensions[d].size;  // both below 2^31
      if (ranks > INT32_MAX) throw Error(sizes[d].where, fmt::format("more than {} NPUs", INT32_MAX));
      check_links(dimensions[d], d, links[d].where, warnings);
    }
    read_numbers(dimensions);
    read_types(dimensions);
    if (const auto fast = config_.find("use-fast-version"))
      warnings.push_back(fmt::format("{}: ignored", fast->where()));
    config_.reject_unknown_keys();
    return dimensions;
  }

  // Keys that the final release needs and this file lacks.
  const std::vector<std::string>& absent() const { return absent_; }

 private:
  static std::int64_t whole(const Located& value) {
    const std::int64_t count = parse_count(value.text, value.where);
    if (count < 1 || count > INT32_MAX)
      throw Error(value.where, fmt::format("{} is out of range", count), "the lowest value is 1");
    return count;
  }

  // Of the flag when it is given, else of the file.
  std::optional<std::vector<Located>> values(std::string_view key, const std::vector<std::string>* flag,
                                             bool needed) {
    std::vector<Located> all;
    std::string where = fmt::format("--{}", key);
    const auto listed = needed && (flag == nullptr || flag->empty()) ? config_.at(key) : config_.find(key);
    if (flag != nullptr && !flag->empty()) {
      for (const std::string& text : *flag) all.push_back({text, where});
    } else if (!listed) {
      return std::nullopt;
    } else {
      where = listed->where();
      for (const Config& item : listed->is_list() ? listed->items() : std::vector<Config>{*listed})
        all.push_back({item.text(), item.where()});
    }
    if (all.size() != count_) {
      throw Error(where,
                  fmt::format("{} for {}", counted(all.size(), "value"), counted(count_, "dimension")));
    }
    return all;
  }

  // An NPU of a ring needs a link to each side, and links come in pairs; fully connected ones share them
  // among the neighbours equally.
  static void check_links(const StreamDimension& dimension, std::size_t d, const std::string& where,
                          std::vector<std::string>& warnings) {
    const std::int64_t neighbours = dimension.size - 1;
    if (dimension.kind == DimensionKind::ring && dimension.links < 2)
      throw Error(where, fmt::format("an NPU of Ring dimension {} needs at least 2 links", d));
    if (dimension.kind == DimensionKind::fully_connected && dimension.links < neighbours) {
      throw Error(
          where, fmt::format("an NPU of FullyConnected dimension {} needs at least {} links", d, neighbours));
    }
    const std::int64_t unused = dimension.kind == DimensionKind::ring ? dimension.links % 2
                                : dimension.kind == DimensionKind::fully_connected && neighbours > 0
                                    ? dimension.links % neighbours
                                    : 0;
    if (unused > 0) {
      warnings.push_back(fmt::format("{}: {} of the {} of {} dimension {} cannot be used", where, unused,
                                     typed_count(dimension.links, "link"), name_of(dimension.kind), d));
    }
  }

  void read_numbers(std::vector<StreamDimension>& dimensions) {
    const auto each = [&](std::string_view key, const std::vector<std::string>* flag, bool needed,
                          double StreamDimension::*field,
                          double (*parse)(std::string_view, const std::string&)) {
      const auto listed = values(key, flag, needed);
      if (!listed) absent_.emplace_back(key);
      for (std::size_t d = 0; listed && d < count_; ++d)
        dimensions[d].*field = parse((*listed)[d].text, (*listed)[d].where);
    };
    each("link-bandwidth", &settings_.link_bandwidth, true, &StreamDimension::bandwidth, link_bandwidth);
    each("link-latency", &settings_.link_latency, true, &StreamDimension::latency_ns, link_latency);
    each("nic-latency", nullptr, false, &StreamDimension::nic_latency_ns, link_latency);
    each("router-latency", nullptr, false, &StreamDimension::router_latency_ns, link_latency);
    each("hbm-latency", nullptr, false, &StreamDimension::memory_latency_ns, link_latency);
    each("hbm-scale", nullptr, false, &StreamDimension::memory_scale, link_latency);
    const auto any = [](std::string_view text, const std::string& where) {
      return real_between(text, where, 0, 1e12);
    };
    // A memory bandwidth of 1 without a scale is no memory at all.
    for (StreamDimension& dimension : dimensions) dimension.memory_bandwidth = 1;
    each("hbm-bandwidth", nullptr, false, &StreamDimension::memory_bandwidth, any);
    for (std::size_t d = 0; d < count_; ++d) {
      if (dimensions[d].memory_scale > 0 && !(dimensions[d].memory_bandwidth > 0)) {
        throw Error(settings_.network, fmt::format("dimension {} has an hbm-scale but no hbm-bandwidth", d),
                    "an hbm-scale of 0 switches the memory off");
      }
    }
  }

  // The tutorials' release names the types in full.
  void read_types(std::vector<StreamDimension>& dimensions) {
    constexpr std::string_view kTypes[] = {"T", "N", "P", "PP"};
    constexpr std::pair<std::string_view, std::string_view> kTutorialTypes[] = {
        {"Tile", "T"}, {"Package", "N"}, {"Node", "N"}, {"Pod", "PP"}};
    const auto types = values("dimension-type", nullptr, false);
    for (std::size_t d = 0; d < count_; ++d) {
      dimensions[d].type = types ? (*types)[d].text : "N";
      if (!types) continue;
      const std::string& where = (*types)[d].where;
      const auto named = std::find_if(std::begin(kTutorialTypes), std::end(kTutorialTypes),
                                      [&](const auto& type) { return type.first == dimensions[d].type; });
      if (named != std::end(kTutorialTypes)) {
        dimensions[d].type = named->second;
        continue;
      }
      if (std::find(std::begin(kTypes), std::end(kTypes), dimensions[d].type) == std::end(kTypes)) {
        throw Error(where, fmt::format("unknown dimension type '{:.60}'", dimensions[d].type),
                    "T: between tiles, N: in a node, P: in a pod, PP: between pods");
      }
      if (dimensions[d].type == "PP" && dimensions[d].kind != DimensionKind::switched)
        throw Error(where, "only a Switch connects pods", "use the type P");
    }
  }

  const Astra1Settings& settings_;
  Config config_;
  std::size_t count_ = 0;
  std::vector<std::string> absent_;
};

void choose_release(const Astra1Settings& settings, const std::vector<std::string>& absent,
                    SystemLayer& system, std::vector<std::string>& warnings) {
  system.tutorial_release = settings.tutorial_release.value_or(!absent.empty());
  if (absent.empty()) return;
  const auto value_of = [](const std::string& key) {
    if (key == "topology-name") return "Hierarchical";
    return key == "dimensions-count" || key == "hbm-bandwidth" ? "1" : "0";
  };
  std::string assumed;
  for (const std::string& key : absent)
    assumed += fmt::format("{}{} {}", assumed.empty() ? "" : ", ", key, value_of(key));
  warnings.push_back(
      fmt::format("{}: absent keys are as in ASTRA-sim 1.0's tutorials: {}", settings.network, assumed));
  if (system.tutorial_release && !settings.tutorial_release) {
    warnings.push_back(fmt::format(
        "{}: only the tutorials' release of ASTRA-sim 1.0 reads this file: its rules are followed (--release "
        "final: those of the final release)",
        settings.network));
  }
}

// The cost model.

// The prices of ASTRA-sim 1.0's own cost model.
constexpr double kDollarsPerLink = 100, kDollarsPerSwitch = 23698, kDollarsPerInterface = 1200;
constexpr double kPricedBandwidth = 50;  // GB/s of the link and of the interface above
constexpr double kSwitchPorts = 40;

double switches_for(double ports) {
  return kDollarsPerSwitch * std::ceil(ports / kSwitchPorts);
}

}  // namespace

// The tutorials' release multiplies in single precision.
double astra1_scaled(std::int64_t value, double scale, bool tutorial_release) {
  const double single = single_precision(scale);
  if (tutorial_release) return static_cast<double>(static_cast<float>(value) * static_cast<float>(single));
  return static_cast<double>(value) * single;
}

SystemLayer read_astra1_config(const Astra1Settings& settings, std::vector<std::string>& warnings) {
  SystemLayer system;
  system.semantics = Semantics::astra1;
  system.queues_per_dimension = settings.queues_per_dimension;
  system.rendezvous = settings.rendezvous;
  read_astra1_network(settings, system, warnings);
  read_system_file(settings, system, warnings);
  warn_about_short_lists(system, settings.system, warnings);
  return system;
}

void read_astra1_network(const Astra1Settings& settings, SystemLayer& system,
                         std::vector<std::string>& warnings) {
  if (is_garnet_network(settings.network)) {
    read_garnet_network(settings, system, warnings);
    return;
  }
  NetworkReader network(settings);
  system.dimensions = network.read(warnings);
  choose_release(settings, network.absent(), system, warnings);
}

void read_astra1_system(const Astra1Settings& settings, SystemLayer& system,
                        std::vector<std::string>& warnings) {
  read_system_file(settings, system, warnings);
}

namespace {

// Of all rings or fully connected groups of the dimension.
// Each link has two ends: a ring's pair of links is counted once per NPU.
double direct_links(const StreamDimension& dimension, double npus) {
  if (dimension.kind == DimensionKind::ring) return npus * static_cast<double>(dimension.links / 2);
  if (dimension.size < 2) return 0;
  return npus * static_cast<double>(dimension.size - 1) / 2 *
         static_cast<double>(dimension.links / (dimension.size - 1));
}

// Prices are per GB/s: of a link, a port of a switch times the switch's ports, an interface.
double tutorial_network_cost(const SystemLayer& system) {
  const double npus = static_cast<double>(rank_count(system));
  double inside = 1;  // NPUs of this dimension and those below it
  double dollars = 0;
  for (const StreamDimension& dimension : system.dimensions) {
    const bool tile = dimension.type == "T", pod = dimension.type == "PP";
    const double link = (tile ? 1 : pod ? 7.4 : 4) * dimension.bandwidth;
    inside *= static_cast<double>(dimension.size);
    if (dimension.kind != DimensionKind::switched) {
      dollars += direct_links(dimension, npus) * link;
    } else {
      const double ports = inside * static_cast<double>(dimension.links), switches = npus / inside;
      const double port = (pod ? 23.7 : 13) * dimension.bandwidth;
      const double interface = pod ? 47.8 * dimension.bandwidth : 0;
      dollars += switches * ports * (link + port + interface);
    }
  }
  return dollars;
}

}  // namespace

// As ASTRA-sim's final release adds them up.
double astra1_network_cost(const SystemLayer& system) {
  if (system.tutorial_release) return tutorial_network_cost(system);
  const double npus = static_cast<double>(rank_count(system));
  double inside = 1;  // NPUs of this dimension and those below it
  double dollars = 0;
  for (const StreamDimension& dimension : system.dimensions) {
    const double price = kDollarsPerLink * dimension.bandwidth / kPricedBandwidth;
    const double link = dimension.type == "T" ? price / 2 : price;
    inside *= static_cast<double>(dimension.size);
    if (dimension.kind != DimensionKind::switched) {
      dollars += direct_links(dimension, npus) * link;
    } else if (dimension.type == "PP") {
      const double package = static_cast<double>(system.dimensions.front().size);
      const double bandwidth = package * dimension.bandwidth * static_cast<double>(dimension.links);
      const double interfaces = std::ceil(bandwidth / kPricedBandwidth) * std::floor(inside / package);
      dollars += interfaces * (kDollarsPerLink + kDollarsPerInterface) + switches_for(interfaces);
    } else {
      const double ports = inside * static_cast<double>(dimension.links);
      dollars += ports * link + switches_for(ports);
    }
  }
  return dollars;
}

}  // namespace armilla
