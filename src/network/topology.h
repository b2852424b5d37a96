// The links of a machine's dimensions and the way of a message over them.
//
// Dimensions are crossed in ascending order, each by its own rule (ir/machine.h): a Ring neighbour by
// neighbour the shorter way round (clockwise, towards higher coordinates, when both are equal),
// FullyConnected in one hop, Switch up and down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/machine.h"
#include "network/network.h"

namespace armilla {

// A directed link, numbered among those of the rank that owns it in the dimension:
//   Ring 0: to the next, 1: to the previous; FullyConnected i: to the rank i+1 further; Switch 0: up, 1:
//   down.
struct LinkId {
  std::uint32_t dimension = 0;
  std::int32_t owner = 0;
  std::int32_t number = 0;
};

// Where a message is on its way.
struct Position {
  std::int32_t rank = 0;        // the node it is at, or below the switch it is at
  std::uint32_t dimension = 0;  // being crossed
  bool at_switch = false;
};

class Topology {
 public:
  explicit Topology(const Machine& machine);

  std::uint32_t dimensions() const { return static_cast<std::uint32_t>(dimensions_.size()); }
  const Dimension& dimension(std::uint32_t d) const { return dimensions_[d]; }
  std::int64_t ranks() const { return ranks_; }

  // Links on the way of `message`: a Ring counts its hops. O(dimensions).
  std::int64_t hops(const Message& message) const;
  Position start(const Message& message) const;
  // The next link, and `at` moved across it. Only while links are left.
  LinkId advance(const Message& message, Position& at) const;

  std::int32_t links_per_rank(std::uint32_t d) const;
  std::string link_name(const LinkId& link) const;  // "rank 0 -> rank 1 (nvlink)"

 private:
  std::int64_t coordinate(std::int32_t rank, std::uint32_t d) const {
    return rank / strides_[d] % dimensions_[d].size;
  }
  std::int32_t moved(std::int32_t rank, std::uint32_t d, std::int64_t coordinate_to) const;
  bool crosses(const Message& message, std::uint32_t d) const;
  std::int64_t clockwise(std::int32_t from, std::int32_t to, std::uint32_t d) const;

  std::vector<Dimension> dimensions_;
  std::vector<std::int64_t> strides_;
  std::int64_t ranks_;
};

}  // namespace armilla
