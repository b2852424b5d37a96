#include "network/topology.h"

#include <fmt/format.h>

#include <algorithm>

namespace armilla {

std::int32_t hops(const Dimension& dimension, std::int32_t here, std::int32_t there) {
  if (here == there) return 0;
  switch (dimension.kind) {
    case DimensionKind::ring: {
      const auto size = static_cast<std::int32_t>(dimension.size);
      const std::int32_t forward = there > here ? there - here : there - here + size;
      return std::min(forward, size - forward);
    }
    case DimensionKind::fully_connected:
      return 1;
    case DimensionKind::switched:
      return 2;
  }
  return 0;
}

bool passes_others(const Dimension& dimension) {
  return dimension.kind == DimensionKind::ring;
}

bool links_every_pair(const Dimension& dimension) {
  return dimension.kind == DimensionKind::fully_connected;
}

Topology::Topology(const Machine& machine)
    : dimensions_(machine.dimensions),
      host_bandwidth_(machine.device.host_bandwidth),
      ranks_(rank_count(machine)) {
  std::int64_t stride = 1;
  for (const Dimension& dimension : dimensions_) {
    strides_.push_back(stride);
    stride *= dimension.size;
  }
}

void Topology::enter(const Message& message, std::uint32_t d, Position& at) const {
  do {
    at.dimension = d;
    at.here = coordinate(at.rank, d);
    at.there = coordinate(message.destination, d);
    ++d;
  } while (at.here == at.there && d < dimensions());
}

Position Topology::start(const Message& message) const {
  Position at;
  at.rank = message.source;
  if (message.dimension != kAllDimensions) {
    at.dimension = message.dimension;
    at.here = coordinate(message.source, at.dimension);
    at.there = coordinate(message.destination, at.dimension);
    at.hops_left = hops(dimensions_[at.dimension], at.here, at.there);
    if (message.leg == Leg::whole) return at;
    at.hops_left = 1;
    if (message.leg == Leg::to_switch) return at;
    at.rank = message.destination;
    at.here = at.there;
    at.at_switch = true;
    return at;
  }
  for (std::uint32_t d = 0; d < dimensions(); ++d) {
    at.hops_left += hops(dimensions_[d], coordinate(message.source, d), coordinate(message.destination, d));
  }
  enter(message, 0, at);
  return at;
}

LinkId Topology::advance(const Message& message, Position& at) const {
  if (at.here == at.there && !at.at_switch) enter(message, at.dimension + 1, at);
  const Dimension& dimension = dimensions_[at.dimension];
  const auto size = static_cast<std::int32_t>(dimension.size);
  const std::int32_t forward = at.there >= at.here ? at.there - at.here : at.there - at.here + size;
  LinkId link{at.dimension, at.rank, 0};
  std::int32_t next = at.there;
  switch (dimension.kind) {
    case DimensionKind::ring:
      // The choice cannot flip on the way: every hop shortens the chosen side.
      if (2 * forward <= size) {
        next = at.here + 1 == size ? 0 : at.here + 1;
      } else {
        link.number = 1;
        next = at.here == 0 ? size - 1 : at.here - 1;
      }
      break;
    case DimensionKind::fully_connected:
      link.number = forward - 1;
      break;
    case DimensionKind::switched:
      link.number = at.at_switch ? 1 : 0;
      at.at_switch = !at.at_switch;
      break;
  }
  at.rank += static_cast<std::int32_t>((next - at.here) * strides_[at.dimension]);
  at.here = next;
  --at.hops_left;
  return link;
}

std::int32_t Topology::links_per_rank(std::uint32_t d) const {
  return dimensions_[d].kind == DimensionKind::fully_connected
             ? static_cast<std::int32_t>(dimensions_[d].size - 1)
             : 2;
}

std::string Topology::link_name(const LinkId& link) const {
  const Dimension& dimension = dimensions_[link.dimension];
  const std::int64_t here = coordinate(link.owner, link.dimension);
  if (dimension.kind == DimensionKind::switched) {
    // Of members joined by cables a link stands for all cables of a member.
    const std::string_view other = dimension.cables.empty() ? "switch" : "cables";
    return link.number == 0 ? fmt::format("rank {} -> {} ({})", link.owner, other, dimension.name)
                            : fmt::format("{} -> rank {} ({})", other, link.owner, dimension.name);
  }
  const std::int64_t ahead = dimension.kind == DimensionKind::fully_connected ? link.number + 1
                             : link.number == 0                               ? 1
                                                                              : dimension.size - 1;
  const std::int64_t peer = link.owner + ((here + ahead) % dimension.size - here) * strides_[link.dimension];
  return fmt::format("rank {} -> rank {} ({})", link.owner, peer, dimension.name);
}

}  // namespace armilla
