#include "sim/plan/link_limit.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "collective/cables.h"
#include "network/topology.h"

namespace armilla {
namespace {

struct Axis {
  double size = 1;       // of the group in the dimension
  double bandwidth = 0;  // of a rank's links in it
  bool is_ring = false, reduces = false;
};

Axis axis_of(const Dimension& dimension, std::int64_t size) {
  Axis axis{static_cast<double>(size), dimension.bandwidth.value, passes_others(dimension)};
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

}  // namespace

Time least_time_on_links(const CollectiveCall& call, const GroupLayout& layout, const Machine& machine,
                         std::uint32_t reducing, bool by_rings) {
  if (call.routing.experts > 0 || layout.ranks.size() < 2) return Time(0);
  const auto ranks = static_cast<double>(layout.ranks.size());
  std::vector<Axis> axes;
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
  for (const Axis& axis : axes) {
    if (call.kind != CollectiveKind::all_to_all || !axis.is_ring || !layout.is_grid()) continue;
    const double half = ranks * std::floor(axis.size / 2) / axis.size;
    most = std::max(most, volume(call, ranks, half, false) / (ranks / axis.size * axis.bandwidth));
  }
  return from_seconds(most);
}

}  // namespace armilla
