#include "network/stream_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace armilla {
namespace {

constexpr double kBytesPerGigabyte = 1 << 30;

// Truncates to whole nanoseconds, as a conversion to uint64_t does; absurd values saturate.
Time whole_nanoseconds(double ns) {
  if (!(ns < static_cast<double>(kEndOfTime.value / 1000))) return kEndOfTime;
  return nanoseconds(static_cast<std::int64_t>(ns));
}

double effective_links(const StreamDimension& dimension) {
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

}  // namespace

// Links of ASTRA-sim 2's congestion-aware backend. A link has two events per message, its arrival at the
// other end and, after it, the moment the link is free again, in that order.
class StreamNetwork::StoreAndForward final : public EventHandler {
 public:
  StoreAndForward(StreamNetwork& network, EventQueue& queue)
      : network_(network), queue_(queue), target_(queue.add_handler(*this)) {
    for (const Level& level : network.levels_) {
      first_link_.push_back(static_cast<std::uint32_t>(links_.size()));
      links_.resize(links_.size() + static_cast<std::size_t>(network.ranks_ * links_per_rank(level)));
    }
  }

  void send(const StreamMessage& message) {
    const std::uint32_t slot = new_flight();
    flights_[slot].message = message;
    flights_[slot].at = message.source;
    flights_[slot].at_switch = false;
    cross(slot);
  }

  void handle(std::uint64_t argument) override {
    if (argument & kLinkFree) {
      become_free(static_cast<std::uint32_t>(argument));
    } else {
      arrive(static_cast<std::uint32_t>(argument));
    }
  }

 private:
  static constexpr std::uint64_t kLinkFree = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Flight {
    StreamMessage message;
    std::int32_t at = 0;
    bool at_switch = false;  // between the two links of a Switch
    std::int8_t level = -1;  // of the link it is on
    std::uint32_t next = kNone;
  };
  struct Link {
    std::uint32_t first_waiting = kNone, last_waiting = kNone;
    bool busy = false;
  };

  static std::int64_t links_per_rank(const Level& level) {
    switch (level.kind) {
      case DimensionKind::ring:
        return 2;
      case DimensionKind::fully_connected:
        return level.size;
      case DimensionKind::switched:
        break;
    }
    return 2;
  }

  std::uint32_t new_flight() {
    if (free_flight_ == kNone) {
      flights_.emplace_back();
      return static_cast<std::uint32_t>(flights_.size() - 1);
    }
    const std::uint32_t slot = free_flight_;
    free_flight_ = flights_[slot].next;
    flights_[slot].next = kNone;
    return slot;
  }

  // Chooses the next link of the message and where it leads to.
  std::uint32_t advance(Flight& flight) {
    const std::size_t d = network_.level_of(flight.at, flight.message.destination);
    const Level& level = network_.levels_[d];
    flight.level = static_cast<std::int8_t>(d);
    const std::int64_t here = network_.position(level, flight.at);
    const std::int64_t there = network_.position(level, flight.message.destination);
    const auto moved = [&](std::int64_t position) {
      return static_cast<std::int32_t>(flight.at + (position - here) * level.stride);
    };
    std::int32_t owner = flight.at;
    std::int64_t number = 0;
    switch (level.kind) {
      case DimensionKind::ring: {
        const std::int64_t clockwise = there - here + (there < here ? level.size : 0);
        number = level.size - clockwise < clockwise ? 1 : 0;
        const std::int64_t next = here + (number == 0 ? 1 : -1);
        flight.at = moved(next < 0 ? level.size - 1 : next == level.size ? 0 : next);
        break;
      }
      case DimensionKind::fully_connected:
        number = there;
        flight.at = moved(there);
        break;
      case DimensionKind::switched:
        if (flight.at_switch) {
          flight.at = moved(there);
          owner = flight.at;
          number = 1;
        }
        flight.at_switch = !flight.at_switch;
        break;
    }
    return first_link_[d] + static_cast<std::uint32_t>(owner * links_per_rank(level) + number);
  }

  void cross(std::uint32_t slot) {
    const std::uint32_t id = advance(flights_[slot]);
    Link& link = links_[id];
    if (!link.busy) {
      transmit(id, slot);
      return;
    }
    if (link.first_waiting == kNone) {
      link.first_waiting = slot;
    } else {
      flights_[link.last_waiting].next = slot;
    }
    link.last_waiting = slot;
  }

  void transmit(std::uint32_t id, std::uint32_t slot) {
    links_[id].busy = true;
    Level& level = network_.levels_[static_cast<std::size_t>(flights_[slot].level)];
    const Bytes bytes = flights_[slot].message.bytes;
    const double serialization = static_cast<double>(bytes.value) / level.bytes_per_ns;
    const Time service = whole_nanoseconds(serialization);
    level.bytes = saturating_add(level.bytes, bytes);
    level.busy = later(level.busy, service);
    queue_.schedule(later(queue_.now(), whole_nanoseconds(level.latency_ns + serialization)), target_, slot);
    queue_.schedule(later(queue_.now(), service), target_, kLinkFree | id);
  }

  void become_free(std::uint32_t id) {
    Link& link = links_[id];
    link.busy = false;
    if (link.first_waiting == kNone) return;
    const std::uint32_t slot = link.first_waiting;
    link.first_waiting = flights_[slot].next;
    flights_[slot].next = kNone;
    transmit(id, slot);
  }

  void arrive(std::uint32_t slot) {
    if (flights_[slot].at_switch || flights_[slot].at != flights_[slot].message.destination) {
      cross(slot);
      return;
    }
    const StreamMessage message = flights_[slot].message;
    flights_[slot].next = free_flight_;
    free_flight_ = slot;
    queue_.handler(message.target).handle(message.argument);
  }

  StreamNetwork& network_;
  EventQueue& queue_;
  std::uint32_t target_;
  std::vector<std::uint32_t> first_link_;  // per level
  std::vector<Link> links_;
  std::vector<Flight> flights_;
  std::uint32_t free_flight_ = kNone;
};

StreamNetwork::StreamNetwork(const SystemLayer& system, EventQueue& queue)
    : queue_(queue), semantics_(system.semantics), sent_by_first_rank_(system.dimensions.size()) {
  for (const StreamDimension& dimension : system.dimensions) {
    double bytes_per_ns = dimension.bandwidth * kBytesPerGigabyte / 1e9;
    if (semantics_ == Semantics::astra1) bytes_per_ns *= effective_links(dimension);
    levels_.push_back({dimension.kind, dimension.size, ranks_, bytes_per_ns, dimension.latency_ns,
                       dimension.nic_latency_ns, dimension.router_latency_ns, dimension.memory_latency_ns,
                       dimension.memory_bandwidth, dimension.memory_scale});
    ranks_ *= dimension.size;
  }
  if (semantics_ == Semantics::astra2_aware)
    store_and_forward_ = std::make_unique<StoreAndForward>(*this, queue);
}

StreamNetwork::~StreamNetwork() = default;

std::size_t StreamNetwork::level_of(std::int32_t source, std::int32_t destination) const {
  if (levels_.size() == 1) return 0;
  const auto differs = [&](const Level& level) {
    return position(level, source) != position(level, destination);
  };
  if (semantics_ == Semantics::astra1)
    return static_cast<std::size_t>(std::find_if(levels_.rbegin(), levels_.rend(), differs).base() -
                                    levels_.begin() - 1);
  return static_cast<std::size_t>(std::find_if(levels_.begin(), levels_.end(), differs) - levels_.begin());
}

std::int64_t StreamNetwork::hops(const Level& level, std::int32_t source, std::int32_t destination) const {
  switch (level.kind) {
    case DimensionKind::ring: {
      const std::int64_t distance = std::abs(position(level, source) - position(level, destination));
      return std::min(distance, level.size - distance);
    }
    case DimensionKind::fully_connected:
      return 1;
    case DimensionKind::switched:
      break;
  }
  return 2;
}

Time StreamNetwork::lone_time(const Level& level, std::int64_t hops, Bytes bytes) const {
  const auto size = static_cast<double>(bytes.value);
  if (semantics_ != Semantics::astra1)
    return whole_nanoseconds(static_cast<double>(hops) * level.latency_ns + size / level.bytes_per_ns);
  double ns = std::trunc(static_cast<double>(hops) * level.latency_ns);
  ns = std::trunc(ns + size / level.bytes_per_ns);
  ns = std::trunc(ns + 2 * level.nic_latency_ns);
  if (level.kind == DimensionKind::switched) ns = std::trunc(ns + level.router_latency_ns);
  if (level.memory_scale > 0)
    ns = std::max(ns, (level.memory_latency_ns + size / level.memory_bytes_per_ns) * level.memory_scale);
  return ns < static_cast<double>(kEndOfTime.value / 1000) ? Time(std::llround(ns * 1000)) : kEndOfTime;
}

std::size_t StreamNetwork::count(const StreamMessage& message) {
  ++messages_;
  const std::size_t d = level_of(message.source, message.destination);
  if (message.source == 0) sent_by_first_rank_[d] = saturating_add(sent_by_first_rank_[d], message.bytes);
  return d;
}

Time StreamNetwork::carry(const StreamMessage& message) {
  Level& level = levels_[count(message)];
  Bytes bytes;
  if (__builtin_mul_overflow(message.bytes.value, message.copies, &bytes.value)) bytes.value = INT64_MAX;
  level.bytes = saturating_add(level.bytes, bytes);
  const Time time = lone_time_again(level, hops(level, message.source, message.destination), message.bytes);
  return later(queue_.now(), time);
}

Time StreamNetwork::send(const StreamMessage& message) {
  if (store_and_forward_) {
    count(message);
    store_and_forward_->send(message);
    return kEndOfTime;
  }
  const Time arrival = carry(message);
  queue_.schedule(arrival, message.target, message.argument);
  return arrival;
}

std::vector<LinkUse> StreamNetwork::links(std::int64_t copies) const {
  std::vector<LinkUse> uses;
  for (std::size_t d = 0; d < levels_.size(); ++d) {
    const Level& level = levels_[d];
    if (level.bytes == Bytes(0)) continue;
    const std::int64_t per_rank = level.kind == DimensionKind::fully_connected ? level.size - 1 : 2;
    const std::int64_t links = ranks_ * per_rank;
    const Bandwidth bandwidth(level.bytes_per_ns * 1e9);
    // Every rank's share first: the sum over all may be out of range.
    const Bytes each(copies == ranks_ ? level.bytes.value / per_rank : level.bytes.value * copies / links);
    uses.push_back({fmt::format("average of the links of dimension {}", d), static_cast<std::uint32_t>(d),
                    links, each, time_to_move(each, bandwidth), bandwidth});
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.busy > b.busy; });
  return uses;
}

}  // namespace armilla
