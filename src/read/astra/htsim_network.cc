#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/config.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/astra.h"
#include "read/file_format.h"
#include "read/topology.h"

namespace armilla {
namespace {

struct HtsimOptions {
  std::string topology;  // path; empty: a fat tree of as many ports as the ranks need
  std::int64_t nodes = 0;
};

HtsimOptions parse_options(const std::vector<std::string>& words, std::vector<std::string>& warnings) {
  // With one subflow all of these halve and grow as NewReno does.
  constexpr std::string_view kAlike[] = {"UNCOUPLED", "COUPLED_INC", "FULLY_COUPLED", "COUPLED_TCP",
                                         "COUPLED_EPSILON"};
  const std::string where = "--htsim_opts";
  HtsimOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw Error(where, fmt::format("{} has no value", word));
      return words[++i];
    };
    const auto count = [&] {
      const std::int64_t number = parse_count(value(), fmt::format("{} {}", where, word));
      if (number < 1 || number > INT32_MAX)
        throw Error(where, fmt::format("{} {} is out of range", word, number));
      return number;
    };
    if (word == "-topo") {
      options.topology = value();
    } else if (word == "-nodes") {
      options.nodes = count();
    } else if (word == "-o") {
      warnings.push_back(
          fmt::format("--htsim_opts -o {} has no effect: htsim's log is not written", value()));
    } else if (word == "-sub") {
      if (const std::int64_t subflows = count(); subflows != 1)
        throw Error(where, fmt::format("-sub {}: multipath TCP is not modelled", subflows), "-sub 1");
    } else if (word == "COUPLED_SCALABLE_TCP") {
      throw Error(where, "Scalable TCP is not modelled",
                  "UNCOUPLED, as any of htsim's others with one subflow");
    } else if (std::ranges::find(kAlike, word) != std::end(kAlike)) {
      const bool number = word == "COUPLED_EPSILON" && i + 1 < words.size() && !words[i + 1].empty() &&
                          words[i + 1].find_first_not_of("0123456789.eE") == std::string::npos;
      if (number) ++i;
    } else if (word == where) {
      throw Error(where, "is given twice");
    } else if (word.starts_with("--")) {
      throw Error(where, fmt::format("'{:.60}' comes after it, where htsim's own options stand", word),
                  fmt::format("put {} before --htsim_opts", word.substr(0, word.find('='))));
    } else {
      std::vector<std::string_view> known = {"-topo", "-nodes", "-o", "-sub"};
      known.insert(known.end(), std::begin(kAlike), std::end(kAlike));
      throw Error(where, fmt::format("htsim's TCP knows no option '{:.60}'", word), suggest(word, known));
    }
  }
  return options;
}

// What htsim makes without a file: three tiers, 100 Gb/s and 1 us per link.
MachineLinks usual_tree(std::int64_t ranks) {
  const auto ports = static_cast<std::int64_t>(std::llround(std::cbrt(4.0 * static_cast<double>(ranks))));
  const auto hosts_of = [](std::int64_t k) { return k * k * k / 4; };
  if (ports % 2 != 0 || hosts_of(ports) != ranks) {
    const std::int64_t below =
        std::max<std::int64_t>(2, ports / 2 * 2 - (hosts_of(ports / 2 * 2) > ranks ? 2 : 0));
    throw Error(
        "--htsim_opts",
        fmt::format("no fat tree of htsim's has {}, and -topo names no other", typed_count(ranks, "host")),
        fmt::format("-topo FILE, or as many ranks as {} or {}", hosts_of(below), hosts_of(below + 2)));
  }
  return make_topology(
      parse_component(fmt::format("fat-tree:k={},bandwidth=100Gbps,latency=1us", ports), "--htsim_opts"));
}

// TcpSrc and RandomQueue of htsim, and what ASTRA-sim's front end passes to them (HTSimProtoTcp.cc).
PacketSettings settings_of_htsim() {
  PacketSettings settings;
  settings.congestion_control = CongestionControl::tcp_newreno;
  settings.payload = 1500;
  settings.initial_window = 10;
  settings.first_threshold = 100;
  settings.delayed_ack_ns = 0;
  settings.retransmit_timeout_ns = 250'000'000;
  settings.acks_take_no_time = true;  // its route back is that of the sender alone
  settings.port_queue = 8;
  settings.port_queue_random = 3;
  settings.buffer = std::int64_t{1} << 30;  // ports have queues of their own
  settings.buffer_is_shared = true;
  settings.ecn = false;
  settings.whole_ns = false;
  return settings;
}

}  // namespace

void read_astra2_htsim(const HtsimSettings& htsim, SystemLayer& system, std::vector<std::string>& warnings) {
  if (!htsim.protocol.empty() && htsim.protocol != "tcp")
    throw Error("--htsim-proto " + htsim.protocol, "ASTRA-sim's htsim has tcp alone",
                "tcp; --network packet:cc=ndp or cc=eqds puts the traces on these, over the same links");
  const HtsimOptions options = parse_options(htsim.options, warnings);
  const std::int64_t ranks = rank_count(system);
  if (options.nodes > 0 && options.nodes != ranks)
    throw Error("--htsim_opts",
                fmt::format("-nodes {} beside a network configuration of {}", options.nodes,
                            typed_count(ranks, "rank")),
                "omit -nodes");
  if (!options.topology.empty()) {
    const FileKind kind = sniff_file(options.topology);
    if (kind != FileKind::htsim_topology)
      throw Error("--htsim_opts -topo " + options.topology, "is not a topology of htsim's",
                  "a file that begins with Nodes, Tiers and Podsize, a key and its number per line");
  }
  MachineLinks links = options.topology.empty() ? usual_tree(ranks) : read_topology_file(options.topology);
  if (const std::int64_t hosts = links.graph.devices(); hosts != ranks)
    throw Error(options.topology,
                fmt::format("has {}, and the network configuration {}", counted(hosts, "host"),
                            counted(ranks, "rank")),
                "htsim wants as many");
  if (!links.without_effect.empty()) warnings.push_back(std::move(links.without_effect));
  system.links = std::move(links.graph);
  system.network.name = "packet";
  system.network.where = "--htsim_opts";
  system.packets = settings_of_htsim();
}

}  // namespace armilla
