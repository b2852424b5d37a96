#include "study/astra/check_astra.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/units_text.h"
#include "read/astra.h"

namespace armilla {
namespace {

constexpr std::size_t kMostDimensions = 10;  // of an ASTRA-sim 1.0 network

std::string network_text(const std::vector<StreamDimension>& dimensions, std::string_view what) {
  std::int64_t npus = 1;
  for (const StreamDimension& dimension : dimensions) npus *= dimension.size;
  return fmt::format("{}: {} in {}", what, counted(npus, "NPU"), counted(dimensions.size(), "dimension"));
}

// A system file alone does not say how many dimensions its network has: at least as many as its longest list.
std::size_t longest_list(const Config& config) {
  std::size_t longest = 1;
  for (const std::string& key : config.keys()) {
    const Config value = config.at(key);
    if (key.find("-implementation") != key.npos && value.is_list())
      longest = std::max(longest, value.items().size());
  }
  return longest;
}

std::string check_table(const std::string& path) {
  std::size_t nodes = 0;
  for (const auto& [node, prefix] : Config::read(path).entries()) {
    parse_count(node, prefix.where());
    if (prefix.text().empty()) throw Error(prefix.where(), "the path is empty");
    ++nodes;
  }
  return fmt::format("ASTRA-sim 2 table of custom collectives for {}", counted(nodes, "node"));
}

std::string check(const std::string& path, FileKind kind, std::int64_t ranks,
                  std::vector<std::string>& warnings) {
  Astra1Settings first;
  first.system = first.network = path;
  SystemLayer system;
  switch (kind) {
    case FileKind::astra1_network:
      read_astra1_network(first, system, warnings);
      return network_text(system.dimensions, system.network.name.empty()
                                                 ? "ASTRA-sim 1.0 network file"
                                                 : "ASTRA-sim 1.0 network file for Garnet");
    case FileKind::astra1_system:
      // Any number of dimensions that the file could be meant for.
      system.dimensions.resize(kMostDimensions);
      read_astra1_system(first, system, warnings);
      return "ASTRA-sim 1.0 system file";
    case FileKind::astra2_network:
      return network_text(read_astra2_network(path, warnings), "ASTRA-sim 2 network file");
    case FileKind::astra2_system:
      system.dimensions.resize(longest_list(Config::read(path)));
      read_astra2_system(path, 1, system, warnings);
      return "ASTRA-sim 2 system file";
    case FileKind::astra2_memory:
      read_astra2_remote_memory(path, ranks > 0 ? ranks : 1, warnings);
      return "ASTRA-sim 2 remote-memory file";
    default:
      return check_table(path);
  }
}

}  // namespace

std::string check_astra_file(const std::string& path, FileKind kind, std::int64_t ranks) {
  std::vector<std::string> warnings;
  std::string text = check(path, kind, ranks, warnings);
  for (const std::string& warning : warnings) text += fmt::format("\n  warning: {}", warning);
  return text;
}

}  // namespace armilla
