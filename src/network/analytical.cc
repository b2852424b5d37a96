#include "network/analytical.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/slots.h"
#include "network/link_table.h"
#include "network/topology.h"

namespace armilla {
namespace {

// What both variants share: the links, and what they carried.
class AnalyticalBase : public Network {
 public:
  explicit AnalyticalBase(const NetworkSetup& setup)
      : topology_(setup.machine),
        links_(topology_, setup.stands_for, setup.slow_links),
        queue_(setup.queue),
        labels_(setup.labels) {}
  AnalyticalBase(const AnalyticalBase&) = delete;
  AnalyticalBase& operator=(const AnalyticalBase&) = delete;

  std::vector<LinkUse> links() const override { return links_.used(); }
  std::int64_t messages() const override { return messages_; }

  NetworkSums sums() const override { return {links_.sums(), messages_}; }
  void repeat(const NetworkSums& from, const NetworkSums& until, std::int64_t times) override {
    links_.repeat(from, until, times);
    messages_ += (until.messages - from.messages) * times;
  }

  void count(const Message& message, std::int64_t times) override {
    messages_ += times;
    Position at = topology_.start(message);
    while (at.hops_left > 0) {
      const LinkId id = topology_.advance(message, at);
      Link& link = links_.at(id);
      link.busy = later(link.busy, saturating_multiply(time_on(links_.speed(id, message), message), times));
      link.bytes = saturating_add(link.bytes, saturating_multiply(message.bytes, times));
    }
  }

 protected:
  // Most messages are as long as the one before.
  Time time_on(const LinkSpeed& speed, const Message& message) {
    Bandwidth bandwidth = speed.bandwidth;
    if (message.share > 0) [[unlikely]]
      bandwidth.value *= static_cast<double>(message.share);
    if (message.bytes != last_bytes_ || bandwidth != last_bandwidth_) {
      last_bytes_ = message.bytes;
      last_bandwidth_ = bandwidth;
      last_time_ = time_to_move(message.bytes, bandwidth);
    }
    return last_time_;
  }

  Topology topology_;
  LinkTable links_;
  EventQueue& queue_;
  const MessageLabels& labels_;
  std::int64_t messages_ = 0;

 private:
  Bytes last_bytes_{-1};
  Bandwidth last_bandwidth_;
  Time last_time_;
};

// A message at the near end of a link that it is about to cross.
struct Crossing {
  Link* link = nullptr;
  const LinkSpeed* speed = nullptr;  // of it
  Time service;                      // bytes / bandwidth there
  Time head, tail;  // first and last byte at the near end; once it is crossed, at the far end
};

// A message with links still to cross.
struct SharedFlight {
  Message message;
  Position at;  // beyond the link
  Crossing crossing;
  bool is_last = false;  // its link: the event is its last byte at the destination if the link is free for it
};

class Analytical final : public EventHandler, public AnalyticalBase, public RoundObserver {
 public:
  Analytical(const NetworkSetup& setup, bool stores)
      : AnalyticalBase(setup),
        target_(queue_.add_handler(*this)),
        first_links_(topology_.ranks()),
        stores_(stores) {
    queue_.add_observer(*this);
  }

  // Over a single link a message is an event of its receiver. Another is copied last: read right after it was
  // written, in other pieces, it would stall the processor.
  Time send(const Message& message) override {
    ++messages_;
    const FirstLinks& way =
        first_links_.of(message, [&](FirstLinks& found) { find_first_links(message, found); });
    if (way.next == nullptr) {
      Crossing crossing;
      begin(crossing, way, message);
      queue_.schedule(crossing.tail, message.target, message.argument);
    } else {
      const std::uint32_t slot = flights_.take();
      SharedFlight& flight = flights_[slot];
      begin(flight.crossing, way, message);
      flight.is_last = way.beyond.hops_left == 0;
      wait_for(slot, message, *way.next, *way.next_speed);
      flight.at = way.beyond;
      flight.message = message;
    }
    return kEndOfTime;
  }

  void handle(std::uint64_t argument) override {
    const auto slot = static_cast<std::uint32_t>(argument);
    Link& link = *flights_[slot].crossing.link;
    if (link.round != round_) {
      link.round = round_;
      link.meeting = 0;
    }
    any_meet_ = ++link.meeting > 1 || any_meet_;
    reaching_.push_back(slot);
  }

  // What is under way, and the links; of flights everything but what follows from the rest. Those on their
  // last link, once they have it, are events of their receivers.
  bool add_state(StateDigest& state) const override {
    const Time now = queue_.now();
    Time floor = now;
    flights_.for_each([&](const SharedFlight& flight) {
      const Message& message = flight.message;
      const Digest told = labels_.describe(message.target, message.argument);
      floor = std::min(floor, flight.crossing.head);
      state.add('f', message.source, message.destination, message.bytes.value, message.dimension,
                std::bit_cast<std::uint32_t>(message.share), labels_.label(message).parts[2], told.low,
                told.high, flight.is_last, flight.at.rank, flight.at.dimension, flight.at.hops_left,
                flight.at.at_switch, flight.crossing.head.value - now.value,
                flight.crossing.tail.value - now.value);
    });
    links_.add_state(state, floor, now);
    return true;
  }

  // What has reached a link in this round crosses it now.
  void round_over() override {
    if (reaching_.empty()) return;
    if (any_meet_) order_those_that_meet();
    for (const std::uint32_t slot : reaching_) {
      SharedFlight& flight = flights_[slot];
      cross(flight.crossing, flight.message.bytes);
      if (!flight.is_last) {
        wait_for_next(slot, flight.message, flight.at);
        continue;
      }
      // The receiver may send, and the pool grow.
      const Time arrival = flight.crossing.tail;
      const std::uint32_t target = flight.message.target;
      const std::uint64_t told = flight.message.argument;
      flights_.release(slot);
      if (arrival == queue_.now()) {
        queue_.handler(target).handle(told);
      } else {
        queue_.schedule(arrival, target, told);
      }
    }
    reaching_.clear();
    any_meet_ = false;
    ++round_;
  }

 private:
  // Of a message's way, and where it is beyond them.
  struct FirstLinks {
    Link* link = nullptr;
    const LinkSpeed* speed = nullptr;
    Link* next = nullptr;  // none on a way of one link
    const LinkSpeed* next_speed = nullptr;
    Position beyond;
  };

  void find_first_links(const Message& message, FirstLinks& found) {
    found.beyond = topology_.start(message);
    const LinkId id = topology_.advance(message, found.beyond);
    found.link = &links_.at(id);
    found.speed = &links_.speed(id, message);
    found.next = nullptr;
    if (found.beyond.hops_left == 0) return;
    const LinkId next = topology_.advance(message, found.beyond);
    found.next = &links_.at(next);
    found.next_speed = &links_.speed(next, message);
  }

  void begin(Crossing& crossing, const FirstLinks& way, const Message& message) {
    crossing.link = way.link;
    crossing.speed = way.speed;
    crossing.service = time_on(*way.speed, message);
    crossing.head = crossing.tail = queue_.now();
    cross(crossing, message.bytes);
  }

  // Those alone at their link commute with all others.
  void order_those_that_meet() {
    const auto meeting = std::partition(reaching_.begin(), reaching_.end(), [&](std::uint32_t slot) {
      return flights_[slot].crossing.link->meeting == 1;
    });
    using Key = std::tuple<MessageLabel, std::int32_t, std::int32_t>;
    std::vector<std::pair<Key, std::uint32_t>> keyed;
    for (auto slot = meeting; slot != reaching_.end(); ++slot) {
      const SharedFlight& flight = flights_[*slot];
      keyed.push_back({{labels_.label(flight.message), flight.at.hops_left, flight.message.source}, *slot});
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::transform(keyed.begin(), keyed.end(), meeting, [](const auto& entry) { return entry.second; });
  }

  // Reserves the link, at the earliest from the moment the first byte is there.
  void cross(Crossing& crossing, Bytes bytes) {
    Link& link = *crossing.link;
    const Time latency = crossing.speed->latency;
    const Time begin = std::max(crossing.head, link.free);
    const Time end = std::max(later(begin, crossing.service), crossing.tail);
    link.free = end;
    link.busy = later(link.busy, crossing.service);
    link.bytes = saturating_add(link.bytes, bytes);
    crossing.tail = later(end, latency);
    crossing.head = stores_ ? crossing.tail : later(begin, latency);
  }

  void wait_for_next(std::uint32_t slot, const Message& message, Position& at) {
    const LinkId id = topology_.advance(message, at);
    flights_[slot].is_last = at.hops_left == 0;
    wait_for(slot, message, links_.at(id), links_.speed(id, message));
  }

  // A last hop needs no event of its own when the link turns out to be free: it is reserved at the moment of
  // arrival. All messages of a link come through here with the same latency, so that they are served in the
  // order in which they reached it.
  void wait_for(std::uint32_t slot, const Message& message, Link& link, const LinkSpeed& speed) {
    SharedFlight& flight = flights_[slot];
    Crossing& crossing = flight.crossing;
    crossing.link = &link;
    if (speed.bandwidth != crossing.speed->bandwidth) crossing.service = time_on(speed, message);
    crossing.speed = &speed;
    Time time = crossing.tail;
    if (flight.is_last)
      time = later(std::max(later(crossing.head, crossing.service), crossing.tail), speed.latency);
    queue_.schedule(time, target_, slot);
  }

  std::uint32_t target_;
  Slots<SharedFlight> flights_;  // addressed by event arguments
  LatestWays<FirstLinks> first_links_;
  bool stores_;                          // whole messages, at every node between
  std::vector<std::uint32_t> reaching_;  // flights at the near end of their link
  std::uint32_t round_ = 1;
  bool any_meet_ = false;
};

// The receiver's own event is all that a message takes.
class AnalyticalUnshared final : public AnalyticalBase {
 public:
  using AnalyticalBase::AnalyticalBase;

  Time send(const Message& message) override {
    ++messages_;
    Position at = topology_.start(message);
    Time latency, service;
    while (at.hops_left > 0) {
      const LinkId id = topology_.advance(message, at);
      const LinkSpeed& speed = links_.speed(id, message);
      const Time here = time_on(speed, message);
      Link& link = links_.at(id);
      link.busy = later(link.busy, here);
      link.bytes = saturating_add(link.bytes, message.bytes);
      latency = later(latency, speed.latency);
      service = std::max(service, here);
    }
    const Time arrival = later(later(queue_.now(), latency), service);
    if (message.target != kNobody) queue_.schedule(arrival, message.target, message.argument);
    return arrival;
  }

  // Its messages are events of their receivers.
  bool add_state(StateDigest&) const override { return true; }
};

}  // namespace

std::unique_ptr<Network> make_analytical(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<Analytical>(setup, values.choice("switching") == "store-and-forward");
}

std::unique_ptr<Network> make_analytical_unshared(const NetworkSetup& setup, const ParameterValues&) {
  return std::make_unique<AnalyticalUnshared>(setup);
}

}  // namespace armilla
