#include "network/analytical.h"

#include <algorithm>

#include "network/topology.h"

namespace armilla {
namespace {

struct Link {
  Time free;  // when it has served everything that came so far
  Time busy;
  Bytes bytes;
};

// Links of every dimension and rank; a rank's are allocated when it first uses one, so an idle machine costs
// little.
class Links {
 public:
  Links(const Topology& topology, Fold fold)
      : topology_(topology), fold_(fold), blocks_(topology.dimensions()) {
    for (auto& blocks : blocks_)
      blocks.resize(fold == Fold::all ? 1 : static_cast<std::size_t>(topology.ranks()));
  }

  Link& at(const LinkId& id) {
    std::vector<Link>& block =
        blocks_[id.dimension][fold_ == Fold::all ? 0 : static_cast<std::size_t>(id.owner)];
    if (block.empty()) block.resize(static_cast<std::size_t>(topology_.links_per_rank(id.dimension)));
    return block[static_cast<std::size_t>(id.number)];
  }

  std::vector<LinkUse> used() const {
    std::vector<LinkUse> uses;
    for (std::uint32_t d = 0; d < topology_.dimensions(); ++d) {
      for (std::size_t owner = 0; owner < blocks_[d].size(); ++owner) {
        for (std::size_t number = 0; number < blocks_[d][owner].size(); ++number) {
          const Link& link = blocks_[d][owner][number];
          if (link.bytes == Bytes(0)) continue;
          const LinkId id{d, static_cast<std::int32_t>(owner), static_cast<std::int32_t>(number)};
          uses.push_back({topology_.link_name(id), d, fold_ == Fold::all ? topology_.ranks() : 1, link.bytes,
                          link.busy, topology_.dimension(d).bandwidth});
        }
      }
    }
    std::stable_sort(uses.begin(), uses.end(),
                     [](const LinkUse& a, const LinkUse& b) { return a.busy > b.busy; });
    return uses;
  }

 private:
  const Topology& topology_;
  Fold fold_;
  std::vector<std::vector<std::vector<Link>>> blocks_;  // [dimension][rank][number]
};

// Bookkeeping that both variants share: a pool of messages in flight, addressed by event arguments.
template <class Flight>
class AnalyticalBase : public Network, public EventHandler {
 public:
  AnalyticalBase(const Machine& machine, Fold fold, EventQueue& queue, MessageSink& sink)
      : topology_(machine),
        links_(topology_, fold),
        queue_(queue),
        sink_(sink),
        target_(queue.add_handler(*this)) {}
  AnalyticalBase(const AnalyticalBase&) = delete;
  AnalyticalBase& operator=(const AnalyticalBase&) = delete;

  std::vector<LinkUse> links() const override { return links_.used(); }
  std::int64_t messages() const override { return messages_; }

 protected:
  std::uint32_t add(const Flight& flight) {
    ++messages_;
    if (free_.empty()) {
      flights_.push_back(flight);
      return static_cast<std::uint32_t>(flights_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    flights_[slot] = flight;
    return slot;
  }

  void deliver(std::uint32_t slot) {
    const Message message = flights_[slot].message;  // the sink may send, and the pool grow
    free_.push_back(slot);
    sink_.delivered(message);
  }

  void wake(std::uint32_t slot, Time time) { queue_.schedule(time, target_, slot); }

  Topology topology_;
  Links links_;
  EventQueue& queue_;
  std::vector<Flight> flights_;

 private:
  MessageSink& sink_;
  std::uint32_t target_;
  std::vector<std::uint32_t> free_;
  std::int64_t messages_ = 0;
};

struct SharedFlight {
  enum class State : std::uint8_t {
    underway,  // the event is its last byte at a node in between
    arriving,  // the event is its last byte at the destination if the last link is free for it
    arrived,
  };
  Message message;
  Position at;
  Time head, tail;  // first and last byte at `at`
  State state = State::underway;
};

class Analytical final : public AnalyticalBase<SharedFlight> {
 public:
  Analytical(const Machine& machine, bool stores, Fold fold, EventQueue& queue, MessageSink& sink)
      : AnalyticalBase(machine, fold, queue, sink), stores_(stores) {}

  void send(const Message& message) override {
    SharedFlight flight;
    flight.message = message;
    flight.at = topology_.start(message);
    flight.head = flight.tail = queue_.now();
    cross(flight);
    const std::uint32_t slot = add(flight);
    wait_for_next(slot);
  }

  void handle(std::uint64_t argument) override {
    const auto slot = static_cast<std::uint32_t>(argument);
    SharedFlight& flight = flights_[slot];
    if (flight.state == SharedFlight::State::arrived) {
      deliver(slot);
      return;
    }
    const bool was_arriving = flight.state == SharedFlight::State::arriving;
    cross(flight);
    if (was_arriving && flight.tail == queue_.now()) {
      deliver(slot);
    } else {
      wait_for_next(slot);
    }
  }

 private:
  // Reserves the next link, at the earliest from the moment the first byte is there.
  void cross(SharedFlight& flight) {
    const LinkId id = topology_.advance(flight.message, flight.at);
    const Dimension& dimension = topology_.dimension(id.dimension);
    Link& link = links_.at(id);
    const Time service = time_to_move(flight.message.bytes, dimension.bandwidth);
    const Time begin = std::max(flight.head, link.free);
    const Time end = std::max(later(begin, service), flight.tail);
    link.free = end;
    link.busy = later(link.busy, service);
    link.bytes = saturating_add(link.bytes, flight.message.bytes);
    flight.tail = later(end, dimension.latency);
    flight.head = stores_ ? flight.tail : later(begin, dimension.latency);
  }

  // A last hop needs no event of its own when the link turns out to be free: it is reserved at the moment of
  // arrival. All messages of a link come through here with the same latency, so that they are served in the
  // order in which they reached it.
  void wait_for_next(std::uint32_t slot) {
    SharedFlight& flight = flights_[slot];
    if (flight.at.hops_left == 0) {
      flight.state = SharedFlight::State::arrived;
      wake(slot, flight.tail);
    } else if (flight.at.hops_left == 1) {
      Position next = flight.at;
      const Dimension& dimension = topology_.dimension(topology_.advance(flight.message, next).dimension);
      const Time end =
          std::max(later(flight.head, time_to_move(flight.message.bytes, dimension.bandwidth)), flight.tail);
      flight.state = SharedFlight::State::arriving;
      wake(slot, later(end, dimension.latency));
    } else {
      flight.state = SharedFlight::State::underway;
      wake(slot, flight.tail);
    }
  }

  bool stores_;  // whole messages, at every node between
};

struct LoneFlight {
  Message message;
};

class AnalyticalUnshared final : public AnalyticalBase<LoneFlight> {
 public:
  using AnalyticalBase::AnalyticalBase;

  void send(const Message& message) override {
    Position at = topology_.start(message);
    Time latency, service;
    while (at.hops_left > 0) {
      const LinkId id = topology_.advance(message, at);
      const Dimension& dimension = topology_.dimension(id.dimension);
      const Time here = time_to_move(message.bytes, dimension.bandwidth);
      Link& link = links_.at(id);
      link.busy = later(link.busy, here);
      link.bytes = saturating_add(link.bytes, message.bytes);
      latency = later(latency, dimension.latency);
      service = std::max(service, here);
    }
    wake(add({message}), later(later(queue_.now(), latency), service));
  }

  void handle(std::uint64_t argument) override { deliver(static_cast<std::uint32_t>(argument)); }
};

}  // namespace

std::unique_ptr<Network> make_analytical(const Machine& machine, const ParameterValues& values, Fold fold,
                                         EventQueue& queue, MessageSink& sink) {
  const bool stores = values.choice("switching") == "store-and-forward";
  return std::make_unique<Analytical>(machine, stores, fold, queue, sink);
}

std::unique_ptr<Network> make_analytical_unshared(const Machine& machine, const ParameterValues&, Fold fold,
                                                  EventQueue& queue, MessageSink& sink) {
  return std::make_unique<AnalyticalUnshared>(machine, fold, queue, sink);
}

}  // namespace armilla
