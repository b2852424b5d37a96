// The state of every link of a machine: when it is free, what it has carried, how fast it is.
//
// A rank's links are allocated when the first of them is used, so an idle machine costs little. Where ranks
// are folded, those of one rank stand for those of its whole class.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/result.h"
#include "ir/what_if.h"
#include "network/topology.h"

namespace armilla {

struct Link {
  Time free;  // when it has served everything that came so far
  Time busy;
  Bytes bytes;
  Time shared_time;          // LinkUse::shared
  std::int32_t senders = 0;  // LinkUse::senders
  std::uint32_t round = 0;   // the last in which a message reached it, and how many did
  std::uint32_t meeting = 0;
  std::uint32_t shared = 0;  // its number, from 1, among those of its kind that several senders share
};

struct LinkSpeed {
  Bandwidth bandwidth;
  Time latency;
};

class LinkTable {
 public:
  // `topology` and `stands_for` must outlive the table.
  LinkTable(const Topology& topology, std::span<const std::int32_t> stands_for,
            std::span<const SlowLinks> slow);

  // Stays where it is.
  Link& at(const LinkId& id) {
    std::vector<Link>& block = blocks_[id.dimension][static_cast<std::size_t>(owner_of(id))];
    if (block.empty()) open(id.dimension, owner_of(id));
    return block[static_cast<std::size_t>(id.number)];
  }
  const LinkSpeed& speed(const LinkId& id) const {
    const std::vector<LinkSpeed>& speeds = speeds_[id.dimension];
    return speeds.size() == 1 ? speeds.front() : speeds[static_cast<std::size_t>(id.owner)];
  }
  Bandwidth largest_bandwidth() const;
  // Of a link on a message's way: between members joined by cables, those that join its ends. Of messages
  // that say what share of the dimension's bandwidth they get, that of the dimension.
  const LinkSpeed& speed(const LinkId& id, const Message& message) const {
    if (pair_speeds_[id.dimension].empty() || message.share > 0) [[likely]]
      return speed(id);
    return pair_speed(id, message);
  }

  // When links are free that are not by `floor`, before which nobody will ask for them; seen from `now`.
  void add_state(StateDigest& state, Time floor, Time now) const;
  std::vector<NetworkSums::Carried> sums() const;
  void repeat(const NetworkSums& from, const NetworkSums& until, std::int64_t times);

  // Those that carried something, the busiest first.
  std::vector<LinkUse> used() const;

 private:
  void open(std::uint32_t dimension, std::int32_t owner);
  const LinkSpeed& pair_speed(const LinkId& id, const Message& message) const;
  Bandwidth whole_bandwidth(const LinkId& id) const;
  std::int32_t owner_of(const LinkId& id) const {
    return stands_for_.empty() ? id.owner : stands_for_[static_cast<std::size_t>(id.owner)];
  }

  const Topology& topology_;
  std::span<const std::int32_t> stands_for_;
  std::vector<std::vector<std::vector<Link>>> blocks_;  // [dimension][rank][number]
  std::vector<std::pair<std::uint32_t, std::int32_t>>
      opened_;                                       // blocks with links, in the order of their first use
  std::vector<std::vector<LinkSpeed>> speeds_;       // [dimension][rank], or one for all
  std::vector<std::vector<LinkSpeed>> pair_speeds_;  // [dimension][rank x size + coordinate of the other end]
};

}  // namespace armilla
