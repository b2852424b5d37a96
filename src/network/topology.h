// The links of a machine's dimensions and the way of a message over them.
//
// Dimensions are crossed in ascending order, each by its own rule (ir/machine.h): a Ring neighbour by
// neighbour the shorter way round (clockwise, towards higher coordinates, when both are equal),
// FullyConnected in one hop, Switch up and down.
//
// This is the one place that knows what a kind of dimension means for messages. Whoever plans, folds or
// evaluates asks here what they meet on their way; a new kind answers these questions and its steps in
// `Topology::advance`. Which cables it is made of is for links_of (ir/machine.h) to say, which numbers them,
// and for Ways::number_of (network/routing/ways.h), which finds them again.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/machine.h"
#include "network/network.h"

namespace armilla {

// Links that a message crosses in a dimension, between two coordinates.
std::int32_t hops(const Dimension& dimension, std::int32_t here, std::int32_t there);
// Messages cross links of ranks that are neither their source nor their destination, and share them with
// those. Otherwise a message crosses its source's link, and at most one of its destination that carries
// nothing but what comes in.
bool passes_others(const Dimension& dimension);
// Every rank has a link of its own to every other; otherwise all that it sends one way shares a link.
bool links_every_pair(const Dimension& dimension);
// One switch joins all members, in which messages may end and begin (Message::leg).
bool has_one_switch(const Dimension& dimension);

// A directed link, numbered among those of the rank that owns it in the dimension:
//   Ring 0: to the next, 1: to the previous; FullyConnected i: to the rank i+1 further; Switch 0: up, 1:
//   down. Where cables join the members of a Switch, 0 and 1 lead to and from PCIe, for those that no cable
//   leads to, and 2 (i+1) and 2 (i+1) + 1 are the cables to and from the member at coordinate i, or the rings
//   that lead there where none joins the two.
struct LinkId {
  std::uint32_t dimension = 0;
  std::int32_t owner = 0;
  std::int32_t number = 0;
};

// Where a message is on its way.
struct Position {
  std::int32_t rank = 0;             // the node it is at, or below the switch it is at
  std::uint32_t dimension = 0;       // being crossed
  std::int32_t here = 0, there = 0;  // coordinates in it, now and at the destination
  std::int32_t hops_left = 0;        // links to the destination; a Ring counts its hops
  bool at_switch = false;
};

// What was found out about the ways of a source's latest messages: most messages take the way of one of
// these, and need not ask again.
template <class Found>
class LatestWays {
 public:
  explicit LatestWays(std::int64_t ranks)
      : ways_(std::min(std::bit_ceil(static_cast<std::size_t>(ranks)), kMost)) {}

  // `find(found)` finds out about a message with other ends, dimension, leg or share than the one before.
  template <class Find>
  const Found& of(const Message& message, const Find& find) {
    Way& way = ways_[place(message) & (ways_.size() - 1)];
    if (way.source == message.source && way.destination == message.destination &&
        way.dimension == message.dimension && way.leg == message.leg && way.share == message.share) [[likely]]
      return way.found;
    way.source = message.source;
    way.destination = message.destination;
    way.dimension = message.dimension;
    way.leg = message.leg;
    way.share = message.share;
    find(way.found);
    return way.found;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  // Equal distances keep sources apart; those that a source sends over are spread.
  static std::size_t place(const Message& message) {
    constexpr std::uint32_t kSpread = 0x9e3779b1;
    const auto source = static_cast<std::uint32_t>(message.source);
    const std::uint32_t distance = static_cast<std::uint32_t>(message.destination) - source;
    return source + (distance * kSpread >> 20);
  }

  struct Way {
    std::int32_t source = -1, destination = -1;
    std::uint32_t dimension = 0;
    Leg leg = Leg::whole;
    float share = 0;
    Found found = {};
  };
  std::vector<Way> ways_;  // by the last bits of their places
};

class Topology {
 public:
  explicit Topology(const Machine& machine);

  std::uint32_t dimensions() const { return static_cast<std::uint32_t>(dimensions_.size()); }
  const Dimension& dimension(std::uint32_t d) const { return dimensions_[d]; }
  std::int64_t ranks() const { return ranks_; }
  Bandwidth host_bandwidth() const { return host_bandwidth_; }  // of a device

  // O(1) when the message names its dimension, else O(dimensions).
  Position start(const Message& message) const;
  // The next link, and `at` moved across it. Only while links are left.
  LinkId advance(const Message& message, Position& at) const;
  // Calls visit(link, position beyond it) for every link of its way.
  template <class Visit>
  void for_each_link(const Message& message, const Visit& visit) const {
    Position at = start(message);
    while (at.hops_left > 0) {
      const LinkId link = advance(message, at);
      visit(link, std::as_const(at));
    }
  }

  // Leads to its owner, from a switch or over cables.
  bool leads_in(const LinkId& link) const {
    return dimensions_[link.dimension].kind == DimensionKind::switched && link.number % 2 == 1;
  }
  // Of cables, the coordinate of the member at their other end; of PCIe, of its owner itself.
  std::int32_t other_end(const LinkId& cables) const {
    return cables.number > 1 ? cables.number / 2 - 1 : coordinate(cables.owner, cables.dimension);
  }

  std::int32_t links_per_rank(std::uint32_t d) const;
  std::string link_name(const LinkId& link) const;  // "rank 0 -> rank 1 (nvlink)"

  // Divisions are the dearest part of a message, so the outermost and innermost dimension do without theirs.
  std::int32_t coordinate(std::int32_t rank, std::uint32_t d) const {
    std::uint32_t value = static_cast<std::uint32_t>(rank);
    if (d > 0) value /= static_cast<std::uint32_t>(strides_[d]);
    if (d + 1 < dimensions_.size()) value %= static_cast<std::uint32_t>(dimensions_[d].size);
    return static_cast<std::int32_t>(value);
  }
  // Bit d: the ranks differ in dimension d, of the first 32.
  std::uint32_t differing(std::int32_t rank, std::int32_t other) const {
    std::uint32_t differing = 0;
    for (std::uint32_t d = 0; d < std::min(dimensions(), 32U); ++d) {
      if (coordinate(rank, d) != coordinate(other, d)) differing |= 1U << d;
    }
    return differing;
  }

 private:
  // LinkId::number of a Switch's link of the member at `here`, on the way to or from that at `there`.
  bool takes_rings(std::uint32_t d, std::int32_t here, std::int32_t there, const Message& message) const;
  std::int32_t switch_link(std::uint32_t d, std::int32_t here, std::int32_t there, bool in,
                           const Message& message) const;
  // Sets dimension and coordinates to the first one from `d` on that has to be crossed.
  void enter(const Message& message, std::uint32_t d, Position& at) const;

  std::vector<Dimension> dimensions_;
  Bandwidth host_bandwidth_;
  std::vector<std::int64_t> strides_;
  std::vector<std::vector<bool>> joined_;  // [dimension][here x size + there], of those with cables
  std::int64_t ranks_;
};

}  // namespace armilla
