#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/error.h"
#include "read/astra.h"
#include "read/topology/importers.h"
#include "read/traffic.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostRouters = 1'000'000;

// A k-ary n-tree (Petrini and Vanneschi 1997): n levels of k^(n-1) switches with k links down and, below the
// top, k up. Switch w of a level is joined with those of the level above whose numbers differ from w in one
// digit, in base k: the lowest one at the lowest level.
MachineLinks make_k_ary_tree(std::int64_t k, std::int64_t n, Bandwidth bandwidth, Time latency,
                             const std::string& path) {
  std::int64_t across = 1;
  for (std::int64_t level = 1; level < n; ++level) across = checked_multiply(across, k, path);
  const std::int64_t devices = checked_multiply(across, k, path);
  if (devices > kMostRouters || across * n > kMostRouters)
    throw Error(path, fmt::format("has more than {} nodes", kMostRouters), "make it smaller");
  Interconnect graph;
  for (std::int64_t i = 0; i < devices; ++i)
    graph.nodes.push_back({NetworkNodeKind::device, fmt::format("node{}", i)});
  for (std::int64_t level = 0; level < n; ++level) {
    for (std::int64_t i = 0; i < across; ++i)
      graph.nodes.push_back({NetworkNodeKind::switched, fmt::format("level{}.{}", level, i)});
  }
  const LinkFigures figures = {bandwidth, latency, 0};
  const auto join = [&](std::int64_t a, std::int64_t b) {
    graph.cables.push_back(
        {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), figures, figures, 0});
  };
  for (std::int64_t i = 0; i < devices; ++i) join(i, devices + i / k);
  std::int64_t digit = 1;
  for (std::int64_t level = 0; level + 1 < n; ++level, digit *= k) {
    const std::int64_t here = devices + level * across;
    for (std::int64_t i = 0; i < across; ++i) {
      const std::int64_t rest = i - i / digit % k * digit;
      for (std::int64_t up = 0; up < k; ++up) join(here + i, here + across + rest + up * digit);
    }
  }
  Dimension dimension = one_dimension(graph, "fabric");
  return {std::move(graph), {std::move(dimension)}};
}

}  // namespace

MachineLinks read_booksim_links(const std::string& path) {
  const BooksimConfig config = read_booksim(path);
  const FlitStudy& study = config.study;
  const FlitRouter& router = study.router;
  const Bandwidth bandwidth(static_cast<double>(config.channel_bits) / 8 * 1e9);
  // The router's pipeline and the channel of L cycles, which takes L + 1 (docs/models/flit.md).
  const std::int64_t pipeline =
      router.routing_delay +
      (router.speculative ? std::max(router.vc_allocation_delay, router.switch_allocation_delay)
                          : router.vc_allocation_delay + router.switch_allocation_delay) +
      router.traversal_delay - 1;
  const auto hop = [&](std::int64_t link) {
    return nanoseconds((pipeline + router.speedup - 1) / router.speedup + link + 1);
  };
  const auto topology = [&](const std::string& name, std::map<std::string, std::string> parameters) {
    ComponentChoice choice;
    choice.name = name;
    choice.where = path;
    parameters["bandwidth"] = fmt::format("{}B/s", bandwidth.value);
    for (const auto& [key, value] : parameters) choice.parameters[key] = {value, path};
    return make_topology(choice);
  };
  const auto time = [](Time latency) { return fmt::format("{}ns", latency.value / 1000); };
  switch (study.topology) {
    case FlitTopology::mesh:
    case FlitTopology::torus: {
      constexpr std::string_view kAxes = "xyzwvu";
      if (study.n > static_cast<std::int64_t>(kAxes.size()))
        throw Error(path, fmt::format("a grid of {} dimensions", study.n),
                    fmt::format("machines have up to {}", kAxes.size()));
      std::map<std::string, std::string> parameters;
      for (std::size_t axis = 0; axis < kAxes.size(); ++axis)
        parameters[std::string(1, kAxes[axis])] =
            std::to_string(static_cast<std::int64_t>(axis) < study.n ? study.k : 1);
      const bool folded = study.topology == FlitTopology::torus;
      parameters["latency"] = time(hop(folded && study.long_links ? 2 : 1));
      return topology(folded ? "torus" : "mesh", parameters);
    }
    case FlitTopology::fat_tree:
      return make_k_ary_tree(study.k, study.n, bandwidth, hop(1), path);
    case FlitTopology::dragonfly:
      return topology("dragonfly", {{"hosts", std::to_string(study.k)},
                                    {"routers", std::to_string(2 * study.k)},
                                    {"global", std::to_string(study.k)},
                                    {"latency", time(hop(study.long_links ? 10 : 1))},
                                    {"global-latency", time(hop(study.long_links ? 100 : 1))}});
  }
  throw Error(path, "is a network of an unknown kind");
}

MachineLinks read_astra_links(const std::string& path, bool second) {
  std::vector<std::string> warnings;
  SystemLayer system;
  if (second) {
    system.dimensions = read_astra2_network(path, warnings);
  } else {
    Astra1Settings settings;
    settings.network = path;
    system.semantics = Semantics::astra1;
    read_astra1_network(settings, system, warnings);
  }
  Machine machine = machine_of(system);
  return {std::move(machine.graph), std::move(machine.dimensions)};
}

}  // namespace armilla
