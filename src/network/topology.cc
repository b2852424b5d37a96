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

// Of a Switch a message passes no member either: links lead to the switch, whose inside is not modelled.
bool passes_others(const Dimension& dimension) {
  return dimension.kind == DimensionKind::ring;
}

bool links_every_pair(const Dimension& dimension) {
  return dimension.kind == DimensionKind::fully_connected;
}

bool has_one_switch(const Dimension& dimension) {
  return dimension.kind == DimensionKind::switched && dimension.cables.empty();
}

Topology::Topology(const Machine& machine)
    : dimensions_(machine.dimensions),
      host_bandwidth_(machine.device.host_bandwidth),
      ranks_(rank_count(machine)) {
  std::int64_t stride = 1;
  for (const Dimension& dimension : dimensions_) {
    strides_.push_back(stride);
    stride *= dimension.size;
    std::vector<bool>& joined = joined_.emplace_back();
    if (!dimension.cables.empty()) joined.resize(static_cast<std::size_t>(dimension.size * dimension.size));
    for (const MemberCable& cable : dimension.cables) {
      joined[static_cast<std::size_t>(cable.a * dimension.size + cable.b)] = true;
      joined[static_cast<std::size_t>(cable.b * dimension.size + cable.a)] = true;
    }
  }
}

// What goes along several rings takes their cables, also between two members that none joins.
bool Topology::takes_rings(std::uint32_t d, std::int32_t here, std::int32_t there,
                           const Message& message) const {
  constexpr double kRounding = 1.001;
  const Dimension& dimension = dimensions_[d];
  return message.share > 0 && static_cast<double>(message.share) * dimension.bandwidth.value >
                                  kRounding * pair_bandwidth(dimension, here, there, host_bandwidth_).value;
}

std::int32_t Topology::switch_link(std::uint32_t d, std::int32_t here, std::int32_t there, bool in,
                                   const Message& message) const {
  // A cable joins both ways, so one table of pairs serves both ends.
  const std::size_t pair = static_cast<std::size_t>(here * dimensions_[d].size + there);
  const bool by_cable = !joined_[d].empty() && (joined_[d][pair] || takes_rings(d, here, there, message));
  return (by_cable ? 2 * (there + 1) : 0) + (in ? 1 : 0);
}

// Skips dimensions in which the ends agree; where they do in all that are left, so are no hops.
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
    // Half of the way through a Switch: up, or down from what the switch has added up.
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
  // At the switch the coordinates agree already, while the way down is still to come.
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
      link.number = at.at_switch ? switch_link(at.dimension, at.here,
                                               coordinate(message.source, at.dimension), true, message)
                                 : switch_link(at.dimension, at.here, at.there, false, message);
      at.at_switch = !at.at_switch;
      break;
  }
  // Behind the way up of a Switch the position is the destination's coordinate: the link down is its own.
  at.rank += static_cast<std::int32_t>((next - at.here) * strides_[at.dimension]);
  at.here = next;
  --at.hops_left;
  return link;
}

std::int32_t Topology::links_per_rank(std::uint32_t d) const {
  const auto size = static_cast<std::int32_t>(dimensions_[d].size);
  if (dimensions_[d].kind == DimensionKind::fully_connected) return size - 1;
  return dimensions_[d].cables.empty() ? 2 : 2 * (size + 1);
}

std::string Topology::link_name(const LinkId& link) const {
  const Dimension& dimension = dimensions_[link.dimension];
  const std::int64_t here = coordinate(link.owner, link.dimension);
  if (dimension.kind == DimensionKind::switched) {
    std::string other = dimension.cables.empty() ? "switch" : "PCIe";
    const bool leaves = !leads_in(link);
    if (link.number > 1) {
      const std::int64_t there = other_end(link);
      const std::int64_t peer = link.owner + (there - here) * strides_[link.dimension];
      const bool joined = joined_[link.dimension][static_cast<std::size_t>(here * dimension.size + there)];
      other = fmt::format("cables {}{} rank {}", joined ? "" : "of rings ", leaves ? "to" : "from", peer);
    }
    return leaves ? fmt::format("rank {} -> {} ({})", link.owner, other, dimension.name)
                  : fmt::format("{} -> rank {} ({})", other, link.owner, dimension.name);
  }
  const std::int64_t ahead = dimension.kind == DimensionKind::fully_connected ? link.number + 1
                             : link.number == 0                               ? 1
                                                                              : dimension.size - 1;
  const std::int64_t peer = link.owner + ((here + ahead) % dimension.size - here) * strides_[link.dimension];
  return fmt::format("rank {} -> rank {} ({})", link.owner, peer, dimension.name);
}

}  // namespace armilla
