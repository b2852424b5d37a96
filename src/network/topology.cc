#include "network/topology.h"

#include <fmt/format.h>

#include <algorithm>

namespace armilla {

Topology::Topology(const Machine& machine) : dimensions_(machine.dimensions), ranks_(rank_count(machine)) {
  std::int64_t stride = 1;
  for (const Dimension& dimension : dimensions_) {
    strides_.push_back(stride);
    stride *= dimension.size;
  }
}

std::int32_t Topology::moved(std::int32_t rank, std::uint32_t d, std::int64_t coordinate_to) const {
  return static_cast<std::int32_t>(rank + (coordinate_to - coordinate(rank, d)) * strides_[d]);
}

bool Topology::crosses(const Message& message, std::uint32_t d) const {
  if (message.dimension != kAllDimensions && message.dimension != d) return false;
  return coordinate(message.source, d) != coordinate(message.destination, d);
}

std::int64_t Topology::clockwise(std::int32_t from, std::int32_t to, std::uint32_t d) const {
  const std::int64_t size = dimensions_[d].size;
  return (coordinate(to, d) - coordinate(from, d) + size) % size;
}

std::int64_t Topology::hops(const Message& message) const {
  std::int64_t total = 0;
  for (std::uint32_t d = 0; d < dimensions(); ++d) {
    if (!crosses(message, d)) continue;
    const std::int64_t forward = clockwise(message.source, message.destination, d);
    switch (dimensions_[d].kind) {
      case DimensionKind::ring:
        total += std::min(forward, dimensions_[d].size - forward);
        break;
      case DimensionKind::fully_connected:
        total += 1;
        break;
      case DimensionKind::switched:
        total += 2;
        break;
    }
  }
  return total;
}

Position Topology::start(const Message& message) const {
  return {message.source, 0, false};
}

LinkId Topology::advance(const Message& message, Position& at) const {
  const std::int32_t to = message.destination;
  if (message.dimension != kAllDimensions) at.dimension = message.dimension;
  while (coordinate(at.rank, at.dimension) == coordinate(to, at.dimension) && !at.at_switch) ++at.dimension;
  const std::uint32_t d = at.dimension;
  LinkId link{d, at.rank, 0};
  switch (dimensions_[d].kind) {
    case DimensionKind::ring: {
      const std::int64_t size = dimensions_[d].size;
      const std::int64_t forward = clockwise(at.rank, to, d);
      // The choice cannot flip on the way: every hop shortens the chosen side.
      const bool up = 2 * forward <= size;
      link.number = up ? 0 : 1;
      at.rank = moved(at.rank, d, (coordinate(at.rank, d) + (up ? 1 : size - 1)) % size);
      break;
    }
    case DimensionKind::fully_connected:
      link.number = static_cast<std::int32_t>(clockwise(at.rank, to, d)) - 1;
      at.rank = moved(at.rank, d, coordinate(to, d));
      break;
    case DimensionKind::switched:
      if (!at.at_switch) {
        at.at_switch = true;
        at.rank = moved(at.rank, d, coordinate(to, d));
      } else {
        at.at_switch = false;
        link.number = 1;
      }
      break;
  }
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
  const std::int64_t size = dimension.size;
  switch (dimension.kind) {
    case DimensionKind::ring:
      return fmt::format("rank {} -> rank {} ({})", link.owner,
                         moved(link.owner, link.dimension, (here + (link.number == 0 ? 1 : size - 1)) % size),
                         dimension.name);
    case DimensionKind::fully_connected:
      return fmt::format("rank {} -> rank {} ({})", link.owner,
                         moved(link.owner, link.dimension, (here + 1 + link.number) % size), dimension.name);
    case DimensionKind::switched:
      return link.number == 0 ? fmt::format("rank {} -> switch ({})", link.owner, dimension.name)
                              : fmt::format("switch -> rank {} ({})", link.owner, dimension.name);
  }
  return {};
}

}  // namespace armilla
