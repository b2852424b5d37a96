#include "network/routing/up_down.h"

#include <algorithm>
#include <tuple>

#include "base/sorted.h"
#include "base/splitmix.h"

namespace armilla {

UpDown::UpDown(const LinkGraph& graph) : graph_(graph), order_(graph.leaving.size(), UINT64_MAX) {
  const auto nodes = static_cast<std::uint32_t>(graph.leaving.size());
  // How far every node is from the nearest device.
  std::vector<std::int32_t> height(nodes, -1);
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (!graph.is_device(node)) continue;
    height[node] = 0;
    waiting.push_back(node);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (const std::uint32_t link : graph.leaving[waiting[i]]) {
      const std::uint32_t next = graph.links[link].to;
      if (height[next] >= 0) continue;
      height[next] = height[waiting[i]] + 1;
      waiting.push_back(next);
    }
  }
  // Parts that are joined without devices.
  // Devices that pass nothing on separate them: each part has a root and numbers of its own, and a way that
  // stays in one part never compares numbers of two.
  std::vector<bool> seen(nodes);
  std::uint64_t next_number = 0;
  for (std::uint32_t first = 0; first < nodes; ++first) {
    if (seen[first] || !graph.forwards(first)) continue;
    std::vector<std::uint32_t> part = {first};
    seen[first] = true;
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (const std::uint32_t link : graph.leaving[part[i]]) {
        const std::uint32_t next = graph.links[link].to;
        if (seen[next] || !graph.forwards(next)) continue;
        seen[next] = true;
        part.push_back(next);
      }
    }
    number_part(part, height, next_number);
  }
  // What passes nothing on comes last, below all that does: every way into it leads down.
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (order_[node] == UINT64_MAX) order_[node] = next_number++;
  }
}

// Numbers grow with the distance from the root.
void UpDown::number_part(const std::vector<std::uint32_t>& part, const std::vector<std::int32_t>& height,
                         std::uint64_t& next) {
  // Far from devices, as the top of a tree is, so that few ways have to climb further than they must.
  const std::uint32_t root = *std::ranges::min_element(part, {}, [&](std::uint32_t node) {
    return std::tuple(-height[node], -static_cast<std::int64_t>(graph_.leaving[node].size()), node);
  });
  order_[root] = next++;
  std::vector<std::uint32_t> level = {root};
  while (!level.empty()) {
    std::vector<std::uint32_t> below;
    for (const std::uint32_t node : level) {
      for (const std::uint32_t link : graph_.leaving[node]) {
        const std::uint32_t end = graph_.links[link].to;
        if (graph_.forwards(end) && order_[end] == UINT64_MAX) below.push_back(end);
      }
    }
    // By number within a level: any order keeps ways free of circles, this one makes it the same everywhere.
    sort_unique(below);
    for (const std::uint32_t node : below) order_[node] = next++;
    level = std::move(below);
  }
}

const UpDown::Distances& UpDown::towards(std::uint32_t destination) {
  const auto [found, fresh] = known_.try_emplace(destination);
  Distances& distances = found->second;
  if (!fresh) return distances;
  // A way that has gone down once must not climb again, so each node has two distances: of ways that only go
  // down, and of all. The second may not be extended by a link that leads down, the first only by those.
  distances.down.assign(order_.size(), -1);
  distances.any.assign(order_.size(), -1);
  distances.down[destination] = distances.any[destination] = 0;
  // Backwards: what goes down to a node that goes down, then what climbs to a node from which there is a way.
  std::vector<std::uint32_t> waiting = {destination};
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const std::uint32_t here = waiting[i];
    if (here != destination && !graph_.forwards(here)) continue;
    for (const std::uint32_t leaving : graph_.leaving[here]) {
      const std::uint32_t from = graph_.links[leaving].to;
      if (leads_up(leaving ^ 1) || distances.down[from] >= 0) continue;
      distances.down[from] = distances.down[here] + 1;
      waiting.push_back(from);
    }
  }
  std::vector<std::vector<std::uint32_t>> by_distance;
  const auto put = [&](std::uint32_t node, std::int32_t distance) {
    distances.any[node] = distance;
    if (by_distance.size() <= static_cast<std::size_t>(distance))
      by_distance.resize(static_cast<std::size_t>(distance) + 1);
    by_distance[static_cast<std::size_t>(distance)].push_back(node);
  };
  for (std::uint32_t node = 0; node < order_.size(); ++node) {
    if (distances.down[node] >= 0) put(node, distances.down[node]);
  }
  for (std::size_t distance = 0; distance < by_distance.size(); ++distance) {
    // Nodes begin at several distances, so that this is a search by buckets, nearest first.
    for (std::size_t i = 0; i < by_distance[distance].size(); ++i) {
      const std::uint32_t here = by_distance[distance][i];
      if (distances.any[here] != static_cast<std::int32_t>(distance)) continue;  // found a shorter one
      if (here != destination && !graph_.forwards(here)) continue;
      for (const std::uint32_t leaving : graph_.leaving[here]) {
        const std::uint32_t from = graph_.links[leaving].to;
        const auto longer = static_cast<std::int32_t>(distance) + 1;
        if (leads_up(leaving ^ 1) && (distances.any[from] < 0 || distances.any[from] > longer))
          put(from, longer);
      }
    }
  }
  return distances;
}

bool UpDown::find(std::uint32_t source, std::uint32_t destination, std::uint64_t key,
                  std::vector<std::uint32_t>& way, bool& by_chance) {
  const Distances& distances = towards(destination);
  if (distances.any[source] < 0) return false;
  // Greedy: distances are of allowed ways, so each step that brings it nearer can be completed.
  bool climbing = true;
  std::vector<std::uint32_t> next;
  for (std::uint32_t node = source; node != destination;) {
    next.clear();
    for (const std::uint32_t link : graph_.leaving[node]) {
      const std::uint32_t to = graph_.links[link].to;
      if (to != destination && !graph_.forwards(to)) continue;
      const std::int32_t here = climbing ? distances.any[node] : distances.down[node];
      const bool up = leads_up(link);
      const std::int32_t left = up ? distances.any[to] : distances.down[to];
      if ((climbing || !up) && left >= 0 && left == here - 1) next.push_back(link);
    }
    by_chance = by_chance || next.size() > 1;
    // The node is mixed in, or a key would choose alike at every switch on the way, and so
    // leave most of a tree unused.
    const std::uint32_t link = next[splitmix(key + 0x9e3779b97f4a7c15U * (node + 1)) % next.size()];
    way.push_back(link);
    climbing = climbing && leads_up(link);
    node = graph_.links[link].to;
  }
  return true;
}

}  // namespace armilla
