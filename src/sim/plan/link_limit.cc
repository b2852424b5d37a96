#include "sim/plan/link_limit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "collective/cables.h"
#include "network/topology.h"

namespace armilla {
namespace {

struct LinkAxis {
  double size = 1;       // of the group in the dimension
  double bandwidth = 0;  // of a rank's links in it
  bool is_ring = false, reduces = false;
};

LinkAxis axis_of(const Dimension& dimension, std::int64_t size) {
  LinkAxis axis{static_cast<double>(size), dimension.bandwidth.value, passes_others(dimension)};
  if (links_every_pair(dimension)) axis.bandwidth *= axis.size - 1;
  if (axis.is_ring && dimension.size > 2) axis.bandwidth *= 2;
  return axis;
}

// What a block of `inside` of all `ranks` sends or receives at least, in bytes.
double volume(const CollectiveCall& call, double ranks, double inside, bool switches_reduce) {
  const auto bytes = static_cast<double>(call.bytes.value);
  const double others = 1 - inside / ranks;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return switches_reduce ? bytes : 2 * others * bytes;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return others * bytes;
    case CollectiveKind::all_to_all:
      return inside * others * bytes;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return bytes;
    case CollectiveKind::barrier:
      break;
  }
  return 0;
}

// The members in one block, and what leads into and out of it, in bytes per second.
struct Block {
  double members = 0, in = 0, out = 0;
};

// The blocks of a group that is no grid: of members that agree in all dimensions from `first` on. Messages
// cross dimensions in ascending order, so they come into a block over the links of its members, and leave it
// over those below which the other blocks have members. Empty: there is but one.
std::vector<Block> blocks_of(const GroupLayout& layout, const Machine& machine, std::size_t first,
                             std::uint32_t reducing, bool& reduces) {
  const Topology topology(machine);
  double bandwidth = 0;
  for (std::size_t d = first; d < machine.dimensions.size(); ++d) {
    std::set<std::int32_t> coordinates;
    for (const std::int32_t rank : layout.ranks)
      coordinates.insert(topology.coordinate(rank, static_cast<std::uint32_t>(d)));
    if (coordinates.size() < 2) continue;
    bandwidth += axis_of(machine.dimensions[d], static_cast<std::int64_t>(coordinates.size())).bandwidth;
    reduces = reduces || (reducing >> d & 1) != 0;
  }
  if (bandwidth <= 0) return {};
  std::int64_t inner = 1;
  for (std::size_t d = 0; d < first; ++d) inner *= machine.dimensions[d].size;
  std::map<std::int64_t, std::vector<std::int64_t>> members;  // by block: their places in it
  std::map<std::int64_t, std::int64_t> at_place;              // of all blocks
  for (const std::int32_t rank : layout.ranks) {
    members[rank / inner].push_back(rank % inner);
    ++at_place[rank % inner];
  }
  std::vector<Block> blocks;
  for (const auto& [number, places] : members) {
    const auto shut = std::ranges::count_if(places, [&](std::int64_t place) { return at_place[place] == 1; });
    const auto own = static_cast<double>(places.size());
    blocks.push_back({own, own * bandwidth,
                      (static_cast<double>(at_place.size()) - static_cast<double>(shut)) * bandwidth});
  }
  return blocks;
}

// What no algorithm beats where such blocks exchange the call.
double seconds_between(const CollectiveCall& call, double ranks, const std::vector<Block>& blocks,
                       bool switches_reduce) {
  const auto bytes = static_cast<double>(call.bytes.value);
  double in = 0, longest = 0, second = 0;  // the whole blocks' bandwidth; of the slowest two, a call each
  for (const Block& block : blocks) {
    in += block.in;
    const double own = bytes / (call.kind == CollectiveKind::reduce ? block.out : block.in);
    second = std::max(second, std::min(own, longest));
    longest = std::max(longest, own);
  }
  const double rounds = static_cast<double>(blocks.size()) - 1;
  double most = 0;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return std::max(longest, switches_reduce ? 0 : 2 * rounds * bytes / in);
    case CollectiveKind::reduce_scatter:
      for (const Block& block : blocks)
        most = std::max(most, (1 - block.members / ranks) * bytes / block.out);
      return std::max(most, rounds * bytes / in);
    case CollectiveKind::all_gather:
      for (const Block& block : blocks) most = std::max(most, (1 - block.members / ranks) * bytes / block.in);
      return most;
    case CollectiveKind::all_to_all:
      for (const Block& block : blocks)
        most = std::max(most,
                        block.members * (1 - block.members / ranks) * bytes / std::min(block.in, block.out));
      return most;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return second;  // the slowest may be the root's
    case CollectiveKind::barrier:
      break;
  }
  return 0;
}

double seconds_of_no_grid(const CollectiveCall& call, const GroupLayout& layout, const Machine& machine,
                          std::uint32_t reducing) {
  double most = 0;
  for (std::size_t first = 0; first < machine.dimensions.size(); ++first) {
    bool reduces = false;
    const std::vector<Block> blocks = blocks_of(layout, machine, first, reducing, reduces);
    if (blocks.size() < 2) break;
    most = std::max(most, seconds_between(call, static_cast<double>(layout.ranks.size()), blocks, reduces));
  }
  return most;
}

}  // namespace

Time least_time_on_links(const CollectiveCall& call, const GroupLayout& layout, const Machine& machine,
                         std::uint32_t reducing, bool by_rings) {
  if (call.routing.experts > 0 || layout.ranks.size() < 2) return Time(0);
  if (!layout.is_grid() && machine.graph.empty())
    return from_seconds(seconds_of_no_grid(call, layout, machine, reducing));
  const auto ranks = static_cast<double>(layout.ranks.size());
  std::vector<LinkAxis> axes;
  const std::vector<std::int64_t> sizes = layout.sizes();
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d) {
    const std::int64_t size = layout.is_grid() ? sizes[d] : machine.dimensions[d].size;
    if (size <= 1) continue;
    axes.push_back(axis_of(machine.dimensions[d], size));
    if (by_rings && !machine.dimensions[d].cables.empty() && layout.is_grid()) {
      axes.back().bandwidth = attained_on_cables(machine.dimensions[d], layout.coordinates[d], call.kind,
                                                 machine.device.host_bandwidth)
                                  .value;
      // Whatever rings cannot do goes along a chain, too, at a cable's speed: an all-gather both ways.
      const bool passes_on = call.kind != CollectiveKind::all_to_all;
      if (passes_on && find_rings(machine.dimensions[d].cables, layout.coordinates[d]).chain)
        axes.back().bandwidth = std::max(axes.back().bandwidth, cable_bandwidth(machine.dimensions[d]).value);
    }
    axes.back().reduces = (reducing >> d & 1) != 0;
  }
  double most = 0;
  // Bit i: blocks have all coordinates of axis i.
  const std::uint32_t whole = (1U << axes.size()) - 1;
  for (std::uint32_t inside = 0; inside < whole && (inside == 0 || layout.is_grid()); ++inside) {
    double members = 1, bandwidth = 0;
    bool reduces = false;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if ((inside >> i & 1) != 0) {
        members *= axes[i].size;
      } else {
        bandwidth += axes[i].bandwidth;
        reduces = reduces || axes[i].reduces;
      }
    }
    most = std::max(most, volume(call, ranks, members, reduces) / (members * bandwidth));
  }
  for (const LinkAxis& axis : axes) {
    if (call.kind != CollectiveKind::all_to_all || !axis.is_ring || !layout.is_grid()) continue;
    const double half = ranks * std::floor(axis.size / 2) / axis.size;
    most = std::max(most, volume(call, ranks, half, false) / (ranks / axis.size * axis.bandwidth));
  }
  return from_seconds(most);
}

}  // namespace armilla
