#include "read/astra/garnet_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/astra/stream_words.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 20> kGarnetKeys = {
    "num-npus",           "num-packages",         "package-rows",        "topology",
    "local-rings",        "vertical-rings",       "horizontal-rings",    "links-per-tile",
    "flit-width",         "local-packet-size",    "package-packet-size", "tile-link-width",
    "package-link-width", "vcs-per-vnet",         "routing-algorithm",   "router-latency",
    "local-link-latency", "package-link-latency", "buffers-per-vc",      "local-link-efficiency"};
constexpr std::string_view kPackageEfficiency = "package-link-efficiency";

constexpr std::int64_t kMostNpus = 1'000'000, kMostCables = 16'000'000;
constexpr std::int64_t kBridgeCycles = 2;  // at each end of a link that is narrower than a flit

class GarnetReader {
 public:
  GarnetReader(const std::string& path, SystemLayer& system, std::vector<std::string>& warnings)
      : path_(path), system_(system), warnings_(warnings) {
    std::vector<std::string_view> keys(kGarnetKeys.begin(), kGarnetKeys.end());
    keys.push_back(kPackageEfficiency);
    words_ = read_key_words(path, FileKind::astra1_network, "an ASTRA-sim 1.0 network file", keys);
  }

  void read() {
    npus_ = count("num-npus", 2, kMostNpus);
    const Located& topology = word_at(words_, "topology", path_);
    flit_bits_ = count("flit-width", 8, 1 << 23);
    if (flit_bits_ % 8 != 0)
      throw Error(word_at(words_, "flit-width", path_).where,
                  fmt::format("{} {} not a whole number of bytes", typed_count(flit_bits_, "bit"),
                              flit_bits_ == 1 ? "is" : "are"),
                  "expected a multiple of 8");
    router_latency_ = count("router-latency", 1, 1000);
    if (const Located* routing = find_word(words_, "routing-algorithm");
        routing != nullptr && routing->text != "Ring_XY" && routing->text != "AllToAll")
      throw Error(routing->where, fmt::format("unknown routing '{:.60}'", routing->text),
                  "Ring_XY or AllToAll");
    constexpr std::string_view kTopologies[] = {"Torus3D", "Torus2D", "NV_Switch", "AllToAll"};
    if (topology.text == "Torus3D" || topology.text == "Torus2D") {
      read_torus(topology);
    } else if (topology.text == "NV_Switch") {
      name_npus(false);
      add_switches(npus_);
    } else if (topology.text == "AllToAll") {
      const std::int64_t packages = this->packages();
      name_npus(true);
      add_rings(npus_ / packages, "local-rings", 1, local_link());
      add_switches(packages);
    } else {
      throw Error(topology.where, fmt::format("topology '{:.60}' is not read", topology.text),
                  topology.text == "Torus4D" || topology.text == "Torus5D"
                      ? "the keys name the sizes of three dimensions: Torus3D"
                      : suggest(topology.text, std::span(kTopologies)));
    }
    choose_network();
  }

 private:
  struct Link {
    std::string_view width_key, latency_key;
  };
  static Link local_link() { return {"tile-link-width", "local-link-latency"}; }
  static Link package_link() { return {"package-link-width", "package-link-latency"}; }

  std::int64_t count(std::string_view key, std::int64_t least, std::int64_t most) {
    const Located& word = word_at(words_, key, path_);
    const std::int64_t value = truncated_count(word.text, word.where, least, warnings_);
    if (value > most)
      throw Error(word.where, fmt::format("{} is out of range", value),
                  fmt::format("from {} to {}", least, most));
    return value;
  }

  std::int64_t packages() {
    const std::int64_t packages = count("num-packages", 1, kMostNpus);
    if (npus_ % packages != 0)
      throw Error(word_at(words_, "num-packages", path_).where,
                  fmt::format("{} {} not fill {}", typed_count(npus_, "NPU"), npus_ == 1 ? "does" : "do",
                              typed_count(packages, "package")));
    return packages;
  }

  void read_torus(const Located& topology) {
    const std::int64_t packages = this->packages(), rows = count("package-rows", 1, kMostNpus);
    if (packages % rows != 0)
      throw Error(word_at(words_, "package-rows", path_).where,
                  fmt::format("{} {} not fill {}", typed_count(packages, "package"),
                              packages == 1 ? "does" : "do", typed_count(rows, "row")));
    const std::int64_t local = npus_ / packages;
    if (topology.text == "Torus2D" && local > 1)
      throw Error(topology.where,
                  fmt::format("packages of {} make a third dimension", typed_count(local, "NPU")),
                  "Torus3D, or as many packages as NPUs");
    name_npus(true);
    if (topology.text == "Torus3D") add_rings(local, "local-rings", 1, local_link());
    add_rings(packages / rows, "horizontal-rings", 2, package_link());
    add_rings(rows, "vertical-rings", 2, package_link());
  }

  void name_npus(bool forward) {
    system_.links.devices_forward = forward;
    for (std::int64_t npu = 0; npu < npus_; ++npu)
      system_.links.nodes.push_back({NetworkNodeKind::device, fmt::format("npu{}", npu)});
  }

  // Bytes per cycle of a link that moves a flit in whole cycles, and the cycles of a hop.
  struct Hop {
    double bytes_per_ns = 0;
    std::int64_t cycles = 0;
  };
  Hop hop_over(const Link& link) {
    const std::int64_t width = count(link.width_key, 1, 1 << 23);
    const std::int64_t latency = count(link.latency_key, 1, 1'000'000);
    const std::int64_t cycles = (flit_bits_ + width - 1) / width;
    return {static_cast<double>(flit_bits_) / 8 / static_cast<double>(cycles),
            // A bridge stands at both ends of such a link.
            router_latency_ + latency + (cycles > 1 ? 2 * kBridgeCycles : 0)};
  }

  void check_cables(std::int64_t per_npu, std::string_view key) const {
    if (static_cast<std::int64_t>(system_.links.cables.size()) + npus_ * per_npu > kMostCables)
      throw Error(word_at(words_, key, path_).where, fmt::format("more than {} links", kMostCables), "fewer");
  }

  void add_rings(std::int64_t size, std::string_view key, std::int64_t ways, const Link& link) {
    if (size == 1) {
      add_dimension(DimensionKind::ring, size, {1, router_latency_ + 1}, 2);
      stride_ *= size;
      return;
    }
    const std::int64_t rings = ways * count(key, 1, 1 << 16), pairs = (rings + 1) / 2;
    Hop hop = hop_over(link);
    // A cable has both directions: an odd ring out is shared between them, and said.
    if (rings % 2 != 0) {
      hop.bytes_per_ns *= static_cast<double>(rings) / static_cast<double>(2 * pairs);
      warnings_.push_back(fmt::format(
          "{}: {} cannot be divided evenly among the two directions: here {} each way, of {}/{} of the "
          "links' width",
          word_at(words_, key, path_).where, rings == 1 ? "1 ring" : fmt::format("{} rings", rings),
          pairs == 1 ? "1 goes" : fmt::format("{} go", pairs), rings, 2 * pairs));
    }
    check_cables(pairs, key);
    const std::uint32_t dimension = add_dimension(DimensionKind::ring, size, hop, 2 * pairs);
    for (std::int64_t npu = 0; npu < npus_; ++npu) {
      const std::int64_t place = npu / stride_ % size;
      const std::int64_t next = place + 1 < size ? npu + stride_ : npu - (size - 1) * stride_;
      for (std::int64_t pair = 0; pair < pairs; ++pair) add_cable(npu, next, hop, dimension);
    }
    stride_ *= size;
  }

  // All NPUs hang on every switch.
  void add_switches(std::int64_t size) {
    const std::int64_t switches = count("links-per-tile", 1, 1 << 16);
    const Hop hop = hop_over(package_link());
    check_cables(switches, "links-per-tile");
    const std::uint32_t dimension = add_dimension(DimensionKind::switched, size, hop, switches);
    for (std::int64_t i = 0; i < switches; ++i) {
      const auto node = static_cast<std::int64_t>(system_.links.nodes.size());
      system_.links.nodes.push_back({NetworkNodeKind::switched, fmt::format("switch{}", i)});
      for (std::int64_t npu = 0; npu < npus_; ++npu) add_cable(npu, node, hop, dimension);
    }
  }

  std::uint32_t add_dimension(DimensionKind kind, std::int64_t size, const Hop& hop, std::int64_t links) {
    constexpr double kFileGigabyte = 1 << 30;
    StreamDimension dimension;
    dimension.kind = kind;
    dimension.size = size;
    dimension.bandwidth = hop.bytes_per_ns * 1e9 / kFileGigabyte;
    dimension.latency_ns = static_cast<double>(hop.cycles);
    dimension.links = links;
    dimension.type = system_.dimensions.empty() && kind == DimensionKind::ring ? "T" : "N";
    system_.dimensions.push_back(dimension);
    return static_cast<std::uint32_t>(system_.dimensions.size() - 1);
  }

  void add_cable(std::int64_t a, std::int64_t b, const Hop& hop, std::uint32_t dimension) {
    const LinkFigures figures = {Bandwidth(hop.bytes_per_ns * 1e9), nanoseconds(hop.cycles), 0};
    system_.links.cables.push_back(
        {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), figures, figures, dimension});
  }

  // One value for all links: the package's, which carry what leaves a package.
  std::string of_both(std::string_view local, std::string_view package) {
    const Located& chosen = word_at(words_, package, path_);
    const Located* const other = find_word(words_, local);
    const bool has_local = system_.dimensions.front().type == "T" && system_.dimensions.front().size > 1;
    if (has_local && other != nullptr && other->text != chosen.text)
      warnings_.push_back(fmt::format("{}: {} here, as the other links have", other->where, chosen.text));
    return chosen.text;
  }

  void choose_network() {
    const std::int64_t packet = [&] {
      of_both("local-packet-size", "package-packet-size");
      return count("package-packet-size", 1, 1 << 24);
    }();
    std::string payload = "1";
    if (find_word(words_, kPackageEfficiency) != nullptr) {
      payload = of_both("local-link-efficiency", kPackageEfficiency);
      const Located& word = word_at(words_, kPackageEfficiency, path_);
      real_between(word.text, word.where, 1e-6, 1);
    }
    ComponentChoice& network = system_.network;
    network.name = "flit";
    network.where = path_;
    const auto set = [&](const std::string& name, const std::string& value) {
      network.parameters[name] = {value, fmt::format("{}: {}", path_, name)};
    };
    set("router", "garnet");
    // Garnet's cycles are ASTRA-sim's nanoseconds.
    set("clock", "1GHz");
    set("routing", "spray");
    set("flit-width", fmt::format("{}B", flit_bits_ / 8));
    set("packet", fmt::format("{}B", packet));
    set("payload", payload);
    set("router-latency", std::to_string(router_latency_));
    set("vcs", std::to_string(count("vcs-per-vnet", 1, 4096)));
    set("buffer", std::to_string(count("buffers-per-vc", 1, INT32_MAX)));
  }

  std::string path_;
  SystemLayer& system_;
  std::vector<std::string>& warnings_;
  Words words_;
  std::int64_t npus_ = 0, flit_bits_ = 0, router_latency_ = 1, stride_ = 1;
};

}  // namespace

bool is_garnet_network(const std::string& path) {
  const MappedFile file(path);
  const std::string_view text(file.bytes().data(), file.bytes().size());
  // Two of three, so that one misspelt key is told by the reader and does not make it another kind of file.
  return !text.starts_with('{') &&
         std::ranges::count_if(
             std::array<std::string_view, 3>{"num-npus", "vcs-per-vnet", "num-packages"},
             [&](std::string_view key) { return text.find(key) != std::string_view::npos; }) > 1;
}

void read_garnet_network(const Astra1Settings& settings, SystemLayer& system,
                         std::vector<std::string>& warnings) {
  const std::pair<const char*, const std::vector<std::string>*> flags[] = {
      {"--units-count", &settings.units_count},
      {"--links-count", &settings.links_count},
      {"--link-bandwidth", &settings.link_bandwidth},
      {"--link-latency", &settings.link_latency}};
  for (const auto& [flag, values] : flags) {
    if (!values->empty())
      throw Error(flag, "is for the network files of the analytical backend", "change the keys of the file");
  }
  GarnetReader(settings.network, system, warnings).read();
}

}  // namespace armilla
