#include "network/links/link_table.h"

#include <algorithm>

namespace armilla {
namespace {

std::vector<LinkSpeed> speeds_of(const Dimension& dimension, std::uint32_t d, std::int64_t ranks,
                                 std::span<const SlowLinks> slow) {
  std::vector<LinkSpeed> speeds = {{dimension.bandwidth, dimension.latency}};
  for (const SlowLinks& links : slow) {
    if (links.dimension != d) continue;
    // One speed for all unless some are slow: a table per rank is only made where ranks differ.
    speeds.resize(static_cast<std::size_t>(ranks), speeds.front());
    for (std::int64_t rank = std::max<std::int64_t>(links.ranks.first, 0);
         rank <= std::min(links.ranks.last, ranks - 1); ++rank) {
      LinkSpeed& speed = speeds[static_cast<std::size_t>(rank)];
      speed.bandwidth.value *= links.bandwidth;
      speed.latency = from_seconds(in_seconds(speed.latency) * links.latency);
    }
  }
  return speeds;
}

}  // namespace

LinkTable::LinkTable(const Topology& topology, std::span<const std::int32_t> stands_for,
                     std::span<const SlowLinks> slow)
    : topology_(topology), stands_for_(stands_for), blocks_(topology.dimensions()) {
  for (auto& blocks : blocks_) blocks.resize(static_cast<std::size_t>(topology.ranks()));
  for (std::uint32_t d = 0; d < topology.dimensions(); ++d)
    speeds_.push_back(speeds_of(topology.dimension(d), d, topology.ranks(), slow));
  pair_speeds_.resize(topology.dimensions());
  for (std::uint32_t d = 0; d < topology.dimensions(); ++d) {
    const Dimension& dimension = topology.dimension(d);
    // Where cables differ from pair to pair, a rank's link to each other has its share of the whole.
    if (dimension.cables.empty()) continue;
    for (std::int32_t rank = 0; rank < topology.ranks(); ++rank) {
      const LinkSpeed& whole = speed({d, rank, 0});
      for (std::int32_t other = 0; other < dimension.size; ++other) {
        const double share =
            pair_bandwidth(dimension, topology.coordinate(rank, d), other, topology.host_bandwidth()).value /
            dimension.bandwidth.value;
        pair_speeds_[d].push_back({Bandwidth(whole.bandwidth.value * share), whole.latency});
      }
    }
  }
}

const LinkSpeed& LinkTable::pair_speed(const LinkId& id, const Message& message) const {
  const std::uint32_t d = id.dimension;
  const std::int32_t source = topology_.coordinate(message.source, d),
                     destination = topology_.coordinate(message.destination, d);
  // A link may belong to the one that sends or the one that receives; the other end tells which pair it is.
  const std::int32_t other = topology_.coordinate(id.owner, d) == source ? destination : source;
  return pair_speeds_[d][static_cast<std::size_t>(id.owner * topology_.dimension(d).size + other)];
}

Bandwidth LinkTable::largest_bandwidth() const {
  Bandwidth largest;
  for (const std::vector<LinkSpeed>& speeds : speeds_) {
    for (const LinkSpeed& speed : speeds) largest = std::max(largest, speed.bandwidth);
  }
  return largest;
}

// Of all cables that the link stands for, or of PCIe.
Bandwidth LinkTable::whole_bandwidth(const LinkId& id) const {
  const Dimension& dimension = topology_.dimension(id.dimension);
  if (dimension.cables.empty()) return speed(id).bandwidth;
  // Nobody leads to itself, but over PCIe.
  const std::int32_t here = topology_.coordinate(id.owner, id.dimension), there = topology_.other_end(id);
  if (id.number > 1 && cables_between(dimension, here, there) == 0) return speed(id).bandwidth;
  return pair_speeds_[id.dimension][static_cast<std::size_t>(id.owner * dimension.size + there)].bandwidth;
}

void LinkTable::open(std::uint32_t dimension, std::int32_t owner) {
  blocks_[dimension][static_cast<std::size_t>(owner)].resize(
      static_cast<std::size_t>(topology_.links_per_rank(dimension)));
  opened_.emplace_back(dimension, owner);
}

void LinkTable::add_state(StateDigest& state, Time floor, Time now) const {
  for (const auto& [dimension, owner] : opened_) {
    const std::vector<Link>& block = blocks_[dimension][static_cast<std::size_t>(owner)];
    // Links that are free by `floor` are alike to all that comes: when they got free says nothing.
    for (std::size_t number = 0; number < block.size(); ++number) {
      if (block[number].free > floor)
        state.add('l', dimension, owner, number, block[number].free.value - now.value);
    }
  }
}

std::vector<NetworkSums::Carried> LinkTable::sums() const {
  std::vector<NetworkSums::Carried> sums;
  for (const auto& [dimension, owner] : opened_) {
    for (const Link& link : blocks_[dimension][static_cast<std::size_t>(owner)])
      sums.push_back({link.busy, link.bytes, link.shared_time, link.senders});
  }
  return sums;
}

void LinkTable::repeat(const NetworkSums& from, const NetworkSums& until, std::int64_t times) {
  std::size_t next = 0;
  for (const auto& [dimension, owner] : opened_) {
    for (Link& link : blocks_[dimension][static_cast<std::size_t>(owner)]) {
      const std::size_t at = next++;
      // Links that were opened since have carried nothing in what is repeated.
      if (at >= until.links.size()) return;
      const NetworkSums::Carried before = at < from.links.size() ? from.links[at] : NetworkSums::Carried{};
      link.busy = later(link.busy, saturating_multiply(until.links[at].busy - before.busy, times));
      link.bytes =
          saturating_add(link.bytes, saturating_multiply(until.links[at].bytes - before.bytes, times));
      link.shared_time =
          later(link.shared_time, saturating_multiply(until.links[at].shared - before.shared, times));
    }
  }
}

std::vector<LinkUse> LinkTable::used() const {
  std::vector<std::int64_t> copies(static_cast<std::size_t>(topology_.ranks()), stands_for_.empty() ? 1 : 0);
  for (const std::int32_t owner : stands_for_) ++copies[static_cast<std::size_t>(owner)];
  std::vector<LinkUse> uses;
  for (std::uint32_t d = 0; d < topology_.dimensions(); ++d) {
    for (std::size_t owner = 0; owner < blocks_[d].size(); ++owner) {
      for (std::size_t number = 0; number < blocks_[d][owner].size(); ++number) {
        const Link& link = blocks_[d][owner][number];
        if (link.bytes == Bytes(0)) continue;
        const LinkId id{d, static_cast<std::int32_t>(owner), static_cast<std::int32_t>(number)};
        uses.push_back({topology_.link_name(id), d, copies[owner], link.bytes, link.busy, whole_bandwidth(id),
                        link.shared_time, link.senders});
      }
    }
  }
  put_busiest_first(uses);
  return uses;
}

}  // namespace armilla
