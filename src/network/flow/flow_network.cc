#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "network/flow.h"
#include "network/flow/fluid_ways.h"
#include "network/flow/max_min.h"
#include "network/routing/ways.h"

namespace armilla {
namespace {

std::vector<double> capacities_of(const Ways& ways, double factor) {
  std::vector<double> capacities;
  for (const DirectedLink& link : ways.links())
    capacities.push_back(link.figures.bandwidth.value * factor);  // bytes per second
  return capacities;
}

// Messages from one device to another keep their order, as on a connection of a collective library.
// Rates change only between rounds, once for all that began or ended in one.
class FlowNetwork final : public Network, public EventHandler, public RoundObserver {
 public:
  FlowNetwork(const NetworkSetup& setup, const ParameterValues& values)
      : queue_(setup.queue),
        ways_(setup.machine, setup.slow_links, values.choice("routing"), setup.damage),
        factor_(values.fraction("bandwidth-factor")),
        rates_(capacities_of(ways_, factor_)),
        carried_(ways_.links().size()),
        target_(queue_.add_handler(*this)) {
    queue_.add_observer(*this);
  }
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  Time send(const Message& message) override {
    const std::vector<MaxMin::Use> uses = choose_ways(ways_.ways(message), ways_.routing().choice, rates_);
    add_up(uses, message.bytes, 1);
    const std::uint32_t number = rates_.open(uses);
    if (number >= flights_.size()) flights_.resize(number + 1);
    Flight& flight = flights_[number];
    flight = {};
    flight.message = message;
    flight.connection = connection_of(message);
    flight.event = later(queue_.now(), latency_of(uses));
    queue_.schedule(flight.event, target_, number);
    return kEndOfTime;
  }

  void handle(std::uint64_t argument) override {
    const auto number = static_cast<std::uint32_t>(argument);
    Flight& flight = flights_[number];
    const Time now = queue_.now();
    if (flight.state == State::closed || flight.event != now) return;  // it was to be done later, and is not
    if (flight.state == State::waiting) {
      Connection& connection = connections_[flight.connection];
      if (connection.flowing == kNone) {
        begin(number);
      } else {
        flight.event = kEndOfTime;
        (connection.first == kNone ? connection.first : flights_[connection.last].next) = number;
        connection.last = number;
      }
    } else if (flight.done > now) {  // it slowed down since
      expect(number);
    } else {
      end(number);
    }
  }

  void round_over() override {
    if (!changed_) return;
    changed_ = false;
    const Time now = queue_.now();
    for (const std::uint32_t number : rates_.solve()) {
      Flight& flight = flights_[number];
      const double rate = rates_.rate(number);
      if (rate == flight.rate) continue;
      flight.left = std::max(0.0, flight.left - flight.rate * in_seconds(now - flight.since));
      flight.since = now;
      flight.rate = rate;
      flight.done = later(now, from_seconds(flight.left / rate));
      if (flight.done < flight.event) expect(number);
    }
  }

  void count(const Message& message, std::int64_t times) override {
    add_up(choose_ways(ways_.ways(message), ways_.routing().choice, rates_), message.bytes, times);
  }
  std::vector<LinkUse> links() const override { return ways_.used(carried_); }
  std::int64_t messages() const override { return messages_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class State : std::uint8_t { waiting, flowing, closed };
  struct Flight {
    Message message;
    std::uint32_t connection = 0;
    std::uint32_t next = kNone;  // that waits for the connection behind it
    double left = 0;             // bytes, at `since`
    double rate = 0;             // bytes per second, from then on
    Time since;
    Time done;   // at this rate
    Time event;  // when the network looks at it again, not after `done`
    State state = State::waiting;
  };

  // From one device to another: its messages flow one after the other.
  struct Connection {
    std::uint32_t flowing = kNone;
    std::uint32_t first = kNone, last = kNone;  // of those whose latency is over
  };

  std::uint32_t connection_of(const Message& message) {
    const auto [found, fresh] =
        connection_numbers_.try_emplace(ends_of(message), static_cast<std::uint32_t>(connections_.size()));
    if (fresh) connections_.emplace_back();
    return found->second;
  }

  void begin(std::uint32_t number) {
    Flight& flight = flights_[number];
    connections_[flight.connection].flowing = number;
    flight.state = State::flowing;
    flight.left = static_cast<double>(flight.message.bytes.value);
    flight.since = queue_.now();
    if (flight.message.bytes == Bytes(0)) {
      flight.done = queue_.now();
      expect(number);
      return;
    }
    flight.event = flight.done = kEndOfTime;
    rates_.add(number);
    changed_ = true;
  }

  void end(std::uint32_t number) {
    const Flight& flight = flights_[number];
    Connection& connection = connections_[flight.connection];
    if (flight.message.bytes > Bytes(0)) {
      rates_.remove(number);
      changed_ = true;
    }
    connection.flowing = kNone;
    if (const std::uint32_t next = connection.first; next != kNone) {
      connection.first = flights_[next].next;
      begin(next);
    }
    deliver(number);
  }

  // Of the way, or of all ways on the average, as each carries its share.
  Time latency_of(std::span<const MaxMin::Use> uses) const {
    Time sum;
    double shared = 0;
    for (const MaxMin::Use& use : uses) {
      const Time latency = ways_.links()[use.link].figures.latency;
      if (use.share == 1) {
        sum = later(sum, latency);
      } else {
        shared += use.share * in_seconds(latency);
      }
    }
    return later(sum, from_seconds(shared));
  }

  void add_up(std::span<const MaxMin::Use> uses, Bytes whole, std::int64_t times) {
    messages_ += times;
    for (const MaxMin::Use& use : uses) {
      NetworkSums::Carried& sum = carried_[use.link];
      const Bandwidth bandwidth = ways_.links()[use.link].figures.bandwidth;
      const Bytes bytes =
          use.share == 1 ? whole : Bytes(std::llround(static_cast<double>(whole.value) * use.share));
      sum.busy = later(sum.busy, saturating_multiply(time_to_move(bytes, bandwidth), times));
      sum.bytes = saturating_add(sum.bytes, saturating_multiply(bytes, times));
    }
  }

  void expect(std::uint32_t number) {
    flights_[number].event = flights_[number].done;
    queue_.schedule(flights_[number].done, target_, number);
  }

  // The receiver may send, and the flights move in memory.
  void deliver(std::uint32_t number) {
    Flight& flight = flights_[number];
    flight.state = State::closed;
    const std::uint32_t target = flight.message.target;
    const std::uint64_t argument = flight.message.argument;
    rates_.close(number);
    queue_.handler(target).handle(argument);
  }

  EventQueue& queue_;
  Ways ways_;
  double factor_;
  MaxMin rates_;
  std::unordered_map<std::uint64_t, std::uint32_t> connection_numbers_;  // by the two ends
  std::vector<Connection> connections_;
  std::vector<Flight> flights_;  // by their number among the rates
  std::vector<NetworkSums::Carried> carried_;
  std::int64_t messages_ = 0;
  std::uint32_t target_;
  bool changed_ = false;
};

}  // namespace

std::unique_ptr<Network> make_flow_network(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<FlowNetwork>(setup, values);
}

}  // namespace armilla
