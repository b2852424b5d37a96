#include "ir/derived/interconnect_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace armilla {
namespace {

struct Arc {
  std::uint32_t to = 0;
  std::uint32_t back = 0;  // its opposite among those of `to`
  double left = 0;         // bytes per second
};

using Arcs = std::vector<std::vector<Arc>>;  // by node

void add_arcs(Arcs& arcs, std::uint32_t a, std::uint32_t b, double there, double back) {
  arcs[a].push_back({b, static_cast<std::uint32_t>(arcs[b].size()), there});
  arcs[b].push_back({a, static_cast<std::uint32_t>(arcs[a].size() - 1), back});
}

// Dinic: blocking flows along shortest ways with capacity left.
class LeastCut {
 public:
  LeastCut(Arcs arcs, std::uint32_t source, std::uint32_t sink)
      : arcs_(std::move(arcs)), source_(source), sink_(sink) {}

  double capacity() {
    double total = 0;
    while (find_levels()) {
      next_.assign(arcs_.size(), 0);
      for (double pushed = push(); pushed > 0; pushed = push()) total += pushed;
    }
    return total;
  }

 private:
  static constexpr double kNothing = 1e-3;  // bytes per second, less than any link has

  bool find_levels() {
    level_.assign(arcs_.size(), -1);
    std::vector<std::uint32_t> waiting = {source_};
    level_[source_] = 0;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      for (const Arc& arc : arcs_[waiting[i]]) {
        if (arc.left <= kNothing || level_[arc.to] >= 0) continue;
        level_[arc.to] = level_[waiting[i]] + 1;
        waiting.push_back(arc.to);
      }
    }
    return level_[sink_] >= 0;
  }

  // One way that has capacity left; 0: there is none.
  double push() {
    std::vector<std::uint32_t> way = {source_};
    while (way.back() != sink_) {
      const std::uint32_t here = way.back();
      std::uint32_t& next = next_[here];
      while (next < arcs_[here].size() &&
             (arcs_[here][next].left <= kNothing || level_[arcs_[here][next].to] != level_[here] + 1))
        ++next;
      if (next < arcs_[here].size()) {
        way.push_back(arcs_[here][next].to);
        continue;
      }
      if (here == source_) return 0;
      way.pop_back();
      ++next_[way.back()];
    }
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i + 1 < way.size(); ++i)
      least = std::min(least, arcs_[way[i]][next_[way[i]]].left);
    for (std::size_t i = 0; i + 1 < way.size(); ++i) {
      Arc& arc = arcs_[way[i]][next_[way[i]]];
      arc.left -= least;
      arcs_[arc.to][arc.back].left += least;
    }
    return least;
  }

  Arcs arcs_;
  std::uint32_t source_, sink_;
  std::vector<std::int32_t> level_;
  std::vector<std::uint32_t> next_;
};

// From the first half of the devices, in that order, to the others.
double cut_of(const Interconnect& graph, std::span<const std::uint32_t> devices) {
  if (devices.size() < 2) return 0;
  const auto nodes = static_cast<std::uint32_t>(graph.nodes.size());
  Arcs arcs(nodes + 2);
  for (const Cable& cable : graph.cables)
    add_arcs(arcs, cable.a, cable.b, cable.there.bandwidth.value, cable.back.bandwidth.value);
  constexpr double kAny = 1e30;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (i < devices.size() / 2) {
      add_arcs(arcs, nodes, devices[i], kAny, 0);
    } else {
      add_arcs(arcs, devices[i], nodes + 1, kAny, 0);
    }
  }
  return LeastCut(std::move(arcs), nodes, nodes + 1).capacity();
}

// Devices in the order in which they lie along the longest extent of the graph: by the second
// eigenvector of its Laplacian (Fiedler 1973; Pothen, Simon, Liou 1990), here that of a lazy random
// walk, by power iteration.
std::vector<std::uint32_t> along_the_graph(const Interconnect& graph, std::vector<std::uint32_t> devices) {
  constexpr double kMostSteps = 5e8;
  constexpr std::size_t kEnough = 2000;
  const std::size_t nodes = graph.nodes.size();
  const auto width = [](const Cable& cable) {
    return cable.there.bandwidth.value + cable.back.bandwidth.value;
  };
  std::vector<double> degree(nodes), place(nodes), next(nodes);
  for (const Cable& cable : graph.cables) {
    degree[cable.a] += width(cable);
    degree[cable.b] += width(cable);
  }
  double all = 0;
  for (std::size_t node = 0; node < nodes; ++node) {
    all += degree[node];
    place[node] = static_cast<double>(node);
  }
  const auto rounds = std::min(
      kEnough, static_cast<std::size_t>(kMostSteps / static_cast<double>(graph.cables.size() + 1)) + 1);
  for (std::size_t round = 0; round < rounds; ++round) {
    // The first eigenvector is the same everywhere.
    double mean = 0, largest = 0;
    for (std::size_t node = 0; node < nodes; ++node) mean += degree[node] * place[node] / all;
    for (double& value : place) largest = std::max(largest, std::abs(value -= mean));
    if (!(largest > 0)) break;
    for (double& value : place) value /= largest;
    next.assign(nodes, 0);
    for (const Cable& cable : graph.cables) {
      next[cable.a] += width(cable) * place[cable.b];
      next[cable.b] += width(cable) * place[cable.a];
    }
    for (std::size_t node = 0; node < nodes; ++node) {
      if (degree[node] > 0) place[node] = (place[node] + next[node] / degree[node]) / 2;
    }
  }
  // Alike to rounding: by rank.
  for (double& value : place) value = std::round(value * 1e9);
  std::ranges::stable_sort(devices, {}, [&](std::uint32_t device) { return place[device]; });
  return devices;
}

// Links to the nearest of `from`, over nodes that forward.
std::vector<std::int32_t> distances(const Interconnect& graph,
                                    const std::vector<std::vector<std::uint32_t>>& near,
                                    std::vector<std::uint32_t> from) {
  std::vector<std::int32_t> distance(graph.nodes.size(), -1);
  for (const std::uint32_t node : from) distance[node] = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint32_t here = from[i];
    if (distance[here] > 0 && graph.nodes[here].kind == NetworkNodeKind::device && !graph.devices_forward)
      continue;
    for (const std::uint32_t next : near[here]) {
      if (distance[next] >= 0) continue;
      distance[next] = distance[here] + 1;
      from.push_back(next);
    }
  }
  return distance;
}

double oversubscription_of(const Interconnect& graph, const std::vector<std::int32_t>& tier) {
  std::vector<double> down(graph.nodes.size()), up(graph.nodes.size());
  const auto add = [&](std::uint32_t node, std::uint32_t other, const LinkFigures& figures) {
    if (tier[other] < tier[node]) down[node] += figures.bandwidth.value;
    if (tier[other] > tier[node]) up[node] += figures.bandwidth.value;
  };
  for (const Cable& cable : graph.cables) {
    add(cable.a, cable.b, cable.there);
    add(cable.b, cable.a, cable.back);
  }
  double most = 0;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind == NetworkNodeKind::switched && up[node] > 0)
      most = std::max(most, down[node] / up[node]);
  }
  return most;
}

}  // namespace

InterconnectFigures figures_of(const Interconnect& graph) {
  constexpr double kMostSteps = 1e9;
  constexpr std::size_t kSome = 1024;
  InterconnectFigures figures;
  for (const InterconnectNode& node : graph.nodes) {
    figures.devices += node.kind == NetworkNodeKind::device ? 1 : 0;
    figures.nics += node.kind == NetworkNodeKind::nic ? 1 : 0;
    figures.switches += node.kind == NetworkNodeKind::switched ? 1 : 0;
  }
  figures.cables = static_cast<std::int64_t>(graph.cables.size());
  const auto devices = static_cast<std::size_t>(figures.devices);
  std::vector<std::vector<std::uint32_t>> near(graph.nodes.size());
  for (const Cable& cable : graph.cables) {
    near[cable.a].push_back(cable.b);
    near[cable.b].push_back(cable.a);
  }
  figures.diameter_is_exact =
      static_cast<double>(devices) * static_cast<double>(figures.cables) <= kMostSteps || devices <= kSome;
  const std::size_t stride = figures.diameter_is_exact ? 1 : devices / kSome;
  for (std::size_t device = 0; device < devices; device += stride) {
    const std::vector<std::int32_t> distance = distances(graph, near, {static_cast<std::uint32_t>(device)});
    figures.diameter = std::max(
        figures.diameter,
        *std::max_element(distance.begin(), distance.begin() + static_cast<std::ptrdiff_t>(devices)));
  }
  std::vector<std::uint32_t> all(devices);
  std::iota(all.begin(), all.end(), 0U);
  figures.bisection = Bandwidth(cut_of(graph, all));
  figures.least_bisection =
      std::min(figures.bisection, Bandwidth(cut_of(graph, along_the_graph(graph, all))));
  figures.oversubscription = oversubscription_of(graph, distances(graph, near, std::move(all)));
  return figures;
}

}  // namespace armilla
