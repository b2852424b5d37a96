#include "network/astra_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "network/topology.h"

namespace armilla {
namespace {

constexpr double kBytesPerGigabyte = 1 << 30;

// Truncates to whole nanoseconds, as a conversion to uint64_t does; absurd values saturate.
Time whole_nanoseconds(double ns) {
  if (!(ns < static_cast<double>(kEndOfTime.value / 1000))) return kEndOfTime;
  return nanoseconds(static_cast<std::int64_t>(ns));
}

double effective_links(const StreamDimension& dimension) {
  // ASTRA-sim 1.0's network.hh: of an odd number of links one is not used round a ring; among all others each
  // pair has an equal number.
  switch (dimension.kind) {
    case DimensionKind::ring:
      return static_cast<double>(dimension.links - dimension.links % 2);
    case DimensionKind::fully_connected:
      return static_cast<double>(dimension.size > 1 ? dimension.links / (dimension.size - 1) : 1);
    case DimensionKind::switched:
      break;
  }
  return static_cast<double>(dimension.links);
}

// What both kinds share: the dimensions, and what crossed them.
class AstraNetwork : public Network {
 public:
  AstraNetwork(Semantics semantics, const NetworkSetup& setup)
      : queue_(setup.queue),
        semantics_(semantics),
        topology_(setup.machine),
        copies_(setup.stands_for.empty() ? 1 : topology_.ranks()),
        sent_by_first_rank_(setup.stream_dimensions.size()) {
    for (const StreamDimension& dimension : setup.stream_dimensions) {
      Level& level = levels_.emplace_back(Level{dimension});
      level.bytes_per_ns = dimension.bandwidth * kBytesPerGigabyte / 1e9;
      if (semantics_ == Semantics::astra1) level.bytes_per_ns *= effective_links(dimension);
    }
  }
  AstraNetwork(const AstraNetwork&) = delete;
  AstraNetwork& operator=(const AstraNetwork&) = delete;

  std::int64_t messages() const override { return messages_; }
  std::vector<Bytes> sent_by_first_rank() const override { return sent_by_first_rank_; }

  // All links of a dimension taken together. Where one rank stands for all, so do its links.
  std::vector<LinkUse> links() const override {
    std::vector<LinkUse> uses;
    const std::int64_t ranks = topology_.ranks();
    for (std::uint32_t d = 0; d < levels_.size(); ++d) {
      const Level& level = levels_[d];
      if (level.bytes == Bytes(0)) continue;
      const std::int64_t per_rank = topology_.links_per_rank(d);
      const std::int64_t links = ranks * per_rank;
      const Bandwidth bandwidth(level.bytes_per_ns * 1e9);
      // Every rank's share first: the sum over all may be out of range.
      const Bytes each(copies_ == ranks ? level.bytes.value / per_rank : level.bytes.value * copies_ / links);
      uses.push_back({fmt::format("average of the links of dimension {}", d), d, links, each,
                      time_to_move(each, bandwidth), bandwidth});
    }
    put_busiest_first(uses);
    return uses;
  }

 protected:
  struct Level {
    StreamDimension dimension;
    double bytes_per_ns = 0;
    // Of the message timed last: bytes, hops, when it arrives and when it has left.
    Bytes last_bytes{-1};
    std::int64_t last_hops = 0;
    Time last_arrival{}, last_departure{};
    Bytes bytes{};  // carried by all links
  };

  // The dimension that a message is charged for.
  std::uint32_t level_of(const Message& message) const {
    const auto differ = [&](std::uint32_t d) {
      return topology_.coordinate(message.source, d) != topology_.coordinate(message.destination, d);
    };
    std::uint32_t d = 0;
    if (levels_.size() == 1) return d;
    if (semantics_ == Semantics::astra1) {
      // Charged for one dimension alone: ASTRA-sim 1.0 for the outermost, 2 for the innermost in which the
      // ends differ.
      for (d = topology_.dimensions() - 1; d > 0 && !differ(d);) --d;
    } else {
      while (d + 1 < topology_.dimensions() && !differ(d)) ++d;
    }
    return d;
  }

  void count_sent(const Message& message, std::uint32_t d) {
    ++messages_;
    if (message.source == 0) sent_by_first_rank_[d] = saturating_add(sent_by_first_rank_[d], message.bytes);
  }

  EventQueue& queue_;
  Semantics semantics_;
  Topology topology_;
  std::vector<Level> levels_;

 private:
  std::int64_t copies_;
  std::vector<Bytes> sent_by_first_rank_;
  std::int64_t messages_ = 0;
};

class AstraUnaware final : public AstraNetwork {
 public:
  AstraUnaware(Semantics semantics, const NetworkSetup& setup)
      : AstraNetwork(semantics, setup), ways_(topology_.ranks()) {}

  Time send(const Message& message) override {
    const Way& way = ways_.of(message, [&](Way& found) { found = way_of(message); });
    count_sent(message, way.level);
    Level& level = levels_[way.level];
    level.bytes =
        saturating_add(level.bytes, message.copies == 1 ? message.bytes
                                                        : saturating_multiply(message.bytes, message.copies));
    if (way.hops != level.last_hops || message.bytes != level.last_bytes) {
      level.last_hops = way.hops;
      level.last_bytes = message.bytes;
      level.last_arrival = time_of(level, way.hops, message.bytes);
    }
    const Time arrival = later(queue_.now(), level.last_arrival);
    if (message.target != kNobody) queue_.schedule(arrival, message.target, message.argument);
    return arrival;
  }

 private:
  struct Way {
    std::uint32_t level = 0;
    std::int32_t hops = 0;  // in its dimension
  };

  Way way_of(const Message& message) const {
    const std::uint32_t d = level_of(message);
    return {d, hops(topology_.dimension(d), topology_.coordinate(message.source, d),
                    topology_.coordinate(message.destination, d))};
  }

  Time time_of(const Level& level, std::int64_t crossed, Bytes bytes) const {
    const StreamDimension& dimension = level.dimension;
    const auto size = static_cast<double>(bytes.value);
    const double latency = static_cast<double>(crossed) * dimension.latency_ns;
    if (semantics_ != Semantics::astra1) return whole_nanoseconds(latency + size / level.bytes_per_ns);
    // Truncated after every term, since it sums them up in integers.
    double ns = std::trunc(latency);
    ns = std::trunc(ns + size / level.bytes_per_ns);
    ns = std::trunc(ns + 2 * dimension.nic_latency_ns);
    if (dimension.kind == DimensionKind::switched) ns = std::trunc(ns + dimension.router_latency_ns);
    // The slower of the network and of the memory that takes what arrives.
    if (dimension.memory_scale > 0)
      ns = std::max(
          ns, (dimension.memory_latency_ns + size / dimension.memory_bandwidth) * dimension.memory_scale);
    return ns < static_cast<double>(kEndOfTime.value / 1000) ? Time(std::llround(ns * 1000)) : kEndOfTime;
  }

  LatestWays<Way> ways_;
};

class AstraCounted final : public AstraNetwork {
 public:
  AstraCounted(Semantics semantics, std::unique_ptr<Network> network, const NetworkSetup& setup)
      : AstraNetwork(semantics, setup), network_(std::move(network)) {}

  Time send(const Message& message) override {
    count_sent(message, level_of(message));
    return network_->send(message);
  }
  std::vector<LinkUse> links() const override { return network_->links(); }
  std::vector<std::string> notes() const override { return network_->notes(); }

 private:
  std::unique_ptr<Network> network_;
};

// A link has two events per message, its arrival at the other end and, after it, the moment the link is free
// again, in that order. The arrival over the last link is an event of the receiver.
class AstraAware final : public EventHandler, public AstraNetwork {
 public:
  explicit AstraAware(const NetworkSetup& setup)
      : AstraNetwork(Semantics::astra2_aware, setup),
        target_(queue_.add_handler(*this)),
        first_links_(topology_.ranks()) {
    for (std::uint32_t d = 0; d < topology_.dimensions(); ++d) {
      first_link_.push_back(static_cast<std::uint32_t>(links_.size()));
      links_.resize(links_.size() +
                    static_cast<std::size_t>(topology_.ranks() * topology_.links_per_rank(d)));
    }
  }

  Time send(const Message& message) override {
    const FirstLink& first =
        first_links_.of(message, [&](FirstLink& found) { find_first_link(message, found); });
    count_sent(message, first.level);
    if (first.crossing.at.hops_left == 0 && !links_[first.crossing.link].busy) {
      // Over its last link, which is free, it needs no flight: the receiver's event is all that is left of
      // it.
      transmit(first.crossing, message, message.target, message.argument);
    } else {
      cross(new_flight({message, first.crossing}));
    }
    return kEndOfTime;
  }

  void handle(std::uint64_t argument) override {
    const auto number = static_cast<std::uint32_t>(argument);
    if (argument & kLinkFree) {
      become_free(number);
    } else {
      move_on(flights_[number].message, flights_[number].crossing);
      cross(number);
    }
  }

 private:
  static constexpr std::uint64_t kLinkFree = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Crossing {
    std::uint32_t link = 0, dimension = 0;
    Position at;  // beyond the link
  };
  struct FirstLink {
    Crossing crossing;
    std::uint32_t level = 0;  // of the whole way
  };
  struct Flight {
    Message message;
    Crossing crossing;  // of the link it is on or waits for
    std::uint32_t next = kNone;
  };
  struct Link {
    std::uint32_t first_waiting = kNone, last_waiting = kNone;
    bool busy = false;
  };

  // To the next link.
  void move_on(const Message& message, Crossing& crossing) const {
    const LinkId id = topology_.advance(message, crossing.at);
    crossing.dimension = id.dimension;
    crossing.link = first_link_[id.dimension] +
                    static_cast<std::uint32_t>(id.owner * topology_.links_per_rank(id.dimension) + id.number);
  }
  void find_first_link(const Message& message, FirstLink& found) const {
    found.level = level_of(message);
    found.crossing.at = topology_.start(message);
    move_on(message, found.crossing);
  }

  std::uint32_t new_flight(const Flight& flight) {
    if (free_flight_ == kNone) {
      flights_.push_back(flight);
      return static_cast<std::uint32_t>(flights_.size() - 1);
    }
    const std::uint32_t slot = std::exchange(free_flight_, flights_[free_flight_].next);
    flights_[slot] = flight;
    return slot;
  }

  void cross(std::uint32_t slot) {
    Link& link = links_[flights_[slot].crossing.link];
    if (!link.busy) {
      begin(slot);
      return;
    }
    (link.first_waiting == kNone ? link.first_waiting : flights_[link.last_waiting].next) = slot;
    link.last_waiting = slot;
  }

  // Its link is free.
  void begin(std::uint32_t slot) {
    Flight& flight = flights_[slot];
    if (flight.crossing.at.hops_left > 0) {
      transmit(flight.crossing, flight.message, target_, slot);
    } else {
      transmit(flight.crossing, flight.message, flight.message.target, flight.message.argument);
      flight.next = std::exchange(free_flight_, slot);
    }
  }

  void transmit(const Crossing& crossing, const Message& message, std::uint32_t target,
                std::uint64_t argument) {
    links_[crossing.link].busy = true;
    Level& level = levels_[crossing.dimension];
    level.bytes = saturating_add(level.bytes, message.bytes);
    if (message.bytes != level.last_bytes) {
      level.last_bytes = message.bytes;
      const double serialization = static_cast<double>(message.bytes.value) / level.bytes_per_ns;
      level.last_arrival = whole_nanoseconds(level.dimension.latency_ns + serialization);
      level.last_departure = whole_nanoseconds(serialization);
    }
    queue_.schedule(later(queue_.now(), level.last_arrival), target, argument);
    queue_.schedule(later(queue_.now(), level.last_departure), target_, kLinkFree | crossing.link);
  }

  void become_free(std::uint32_t id) {
    Link& link = links_[id];
    link.busy = false;
    if (link.first_waiting == kNone) return;
    const std::uint32_t slot = link.first_waiting;
    link.first_waiting = std::exchange(flights_[slot].next, kNone);
    begin(slot);
  }

  std::uint32_t target_;
  LatestWays<FirstLink> first_links_;
  std::vector<std::uint32_t> first_link_;  // per dimension
  std::vector<Link> links_;
  std::vector<Flight> flights_;
  std::uint32_t free_flight_ = kNone;
};

}  // namespace

std::unique_ptr<Network> make_astra1(const NetworkSetup& setup, const ParameterValues&) {
  return std::make_unique<AstraUnaware>(Semantics::astra1, setup);
}

std::unique_ptr<Network> make_astra2_unaware(const NetworkSetup& setup, const ParameterValues&) {
  return std::make_unique<AstraUnaware>(Semantics::astra2_unaware, setup);
}

std::unique_ptr<Network> make_astra2_aware(const NetworkSetup& setup, const ParameterValues&) {
  return std::make_unique<AstraAware>(setup);
}

std::unique_ptr<Network> make_counted(Semantics semantics, std::unique_ptr<Network> network,
                                      const NetworkSetup& setup) {
  return std::make_unique<AstraCounted>(semantics, std::move(network), setup);
}

double astra1_bandwidth(const StreamDimension& dimension) {
  std::int64_t links = dimension.links;
  if (dimension.kind == DimensionKind::ring) links -= links % 2;
  if (dimension.kind == DimensionKind::fully_connected && dimension.size > 1)
    links -= links % (dimension.size - 1);
  return dimension.bandwidth * static_cast<double>(links);
}

}  // namespace armilla
