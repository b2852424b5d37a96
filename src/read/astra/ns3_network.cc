#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/units_text.h"
#include "read/astra.h"
#include "read/file_format.h"
#include "read/roce.h"
#include "read/topology.h"

namespace armilla {
namespace {

constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;

// ns-3 has no dimensions: the logical ones only say how collectives are planned.
std::vector<StreamDimension> logical_dimensions(const std::string& path, const Dimension& all,
                                                std::vector<std::string>& warnings) {
  std::vector<StreamDimension> dimensions;
  for (const std::int64_t size : read_logical_dimensions(path, warnings)) {
    StreamDimension& dimension = dimensions.emplace_back();
    dimension.kind = DimensionKind::switched;
    dimension.size = size;
    dimension.bandwidth = all.bandwidth.value / kGibi;
    dimension.latency_ns = in_seconds(all.latency) * 1e9;
  }
  return dimensions;
}

}  // namespace

std::vector<std::int64_t> read_logical_dimensions(const std::string& path,
                                                  std::vector<std::string>& warnings) {
  constexpr std::size_t kMost = 32;  // the bits of a dimension mask
  {
    const MappedFile file(path);
    require_kind(path, file.bytes(), FileKind::ns3_topology, file_format(FileKind::ns3_topology).what);
  }
  const Config config = Config::read(path);
  const Config listed = config.at("logical-dims");
  std::vector<std::int64_t> dimensions;
  for (const Config& size : listed.items()) dimensions.push_back(size.count(1, INT32_MAX));
  if (dimensions.empty() || dimensions.size() > kMost)
    throw Error(listed.where(), fmt::format("lists {} dimensions", dimensions.size()),
                fmt::format("from 1 to {}", kMost));
  for (const std::string& key : config.keys()) {
    if (key != "logical-dims")
      warnings.push_back(fmt::format("{}: '{}' has no effect, as in ASTRA-sim", path, key));
  }
  return dimensions;
}

void read_astra2_ns3(const std::string& network, const std::string& logical_topology, SystemLayer& system,
                     std::vector<std::string>& warnings) {
  if (logical_topology.empty())
    throw Error("--network-configuration " + network,
                "is of ns-3, which needs --logical-topology-configuration, too",
                R"(a file such as {"logical-dims": ["8", "4"]}: ranks by dimension, innermost first)");
  RoceInput input = read_roce_network(network);
  warnings.insert(warnings.end(), input.notes.begin(), input.notes.end());
  system.links = read_topology_file(input.topology).graph;
  system.dimensions = logical_dimensions(logical_topology, one_dimension(system.links, "all"), warnings);

  // Rank r is node r of the topology.
  const std::vector<bool>& is_switch = input.job.graph.is_switch;
  const std::int64_t ranks = rank_count(system), hosts = system.links.devices();
  if (ranks > hosts)
    throw Error(logical_topology, fmt::format("asks for {}, and {} has {}", counted(ranks, "rank"),
                                              input.topology, counted(hosts, "host")));
  const auto first_switch = std::ranges::find(is_switch, true) - is_switch.begin();
  if (first_switch < ranks)
    throw Error(input.topology,
                fmt::format("node {} is a switch, and rank {} is to be there", first_switch, first_switch),
                "rank r is node r: number the hosts first");
  if (first_switch < hosts)
    warnings.push_back(
        fmt::format("{}: hosts stand behind switches: these have other numbers here, so ECMP may "
                    "choose other ways than ns-3's",
                    input.topology));
  system.network.name = "packet";
  system.network.where = network;
  system.packets = std::move(input.job.settings);
  system.packets->stop_ns = INT64_MAX;  // ASTRA-sim stops when its ranks have finished
}

}  // namespace armilla
