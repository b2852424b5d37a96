#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "network/flow.h"
#include "network/flow/fluid_ways.h"
#include "network/flow/max_min.h"
#include "network/routes.h"
#include "network/routing/switch_trees.h"
#include "network/routing/ways.h"
#include "network/senders_on_links.h"

namespace armilla {
namespace {

std::vector<double> capacities_of(const Ways& ways, double factor) {
  std::vector<double> capacities;
  for (const DirectedLink& link : ways.links())
    capacities.push_back(link.figures.bandwidth.value * factor);  // bytes per second
  return capacities;
}

// Messages of one sender from one device to another keep their order; those of several share links.
// Rates change only between rounds, once for all that began or ended in one.
class FlowNetwork final : public Network, public EventHandler, public RoundObserver {
 public:
  FlowNetwork(const NetworkSetup& setup, const ParameterValues& values)
      : queue_(setup.queue),
        labels_(setup.labels),
        ways_(setup.machine, setup.slow_links, values.choice("routing"), setup.damage),
        trees_(ways_.link_graph()),
        adaptive_(is_adaptive(ways_.routing().choice)),
        factor_(values.fraction("bandwidth-factor")),
        rates_(capacities_of(ways_, factor_)),
        carried_(ways_.links().size()),
        classes_(setup.link_classes),
        target_(queue_.add_handler(*this)) {
    queue_.add_observer(*this);
    if (setup.shared_dimensions != 0) senders_.emplace(carried_.size());
    if (!folds()) return;
    rank_sizes_.resize(setup.stands_for.size());
    for (const std::int32_t rank : setup.stands_for) ++rank_sizes_[static_cast<std::size_t>(rank)];
  }
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  std::uint32_t switch_tree(std::span<const std::int32_t> members, CollectiveKind kind) override {
    return trees_.find(members, kind);
  }

  Time send(const Message& message) override {
    std::vector<MaxMin::Use> uses;
    Time latency;
    if (message.tree != kNoTree) {
      SwitchTrees::Branch branch =
          trees_.branch(message.tree, message.leg, message.source, message.destination);
      latency = branch.latency;
      uses = std::move(branch.links);
    } else {
      // One that may choose does so when it begins to move, and waits for the latencies of the first way.
      uses = choose_ways(ways_.ways(message), adaptive_ ? WayChoice::first : ways_.routing().choice, rates_);
      latency = latency_of(uses);
    }
    if (folds()) uses = folded(uses, message.source);
    if (!adapts(message)) add_up(uses, message.bytes, 1);
    const std::uint32_t number = rates_.open(uses);
    if (number >= flights_.size()) flights_.resize(number + 1);
    // Numbers are used again: events of an earlier flight with this one are told apart by the generation.
    Flight& flight = flights_[number];
    flight = Flight(flight.generation + 1);
    flight.message = message;
    flight.connection = connection_of(message);
    flight.event = later(queue_.now(), latency);
    look_again(number);
    // Nobody can say when: others that come may slow it down.
    return kEndOfTime;
  }

  void handle(std::uint64_t argument) override {
    const auto number = static_cast<std::uint32_t>(argument);
    Flight& flight = flights_[number];
    const Time now = queue_.now();
    if (flight.generation != argument >> 32) return;                   // of one before it
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
      // Events are not taken back when a rate falls: the event comes, and is put off.
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
      // Only a sooner end needs a new event; a later one is found when the old event comes.
      if (flight.done < flight.event) expect(number);
    }
  }

  void count(const Message& message, std::int64_t times) override {
    std::vector<MaxMin::Use> uses = choose_ways(ways_.ways(message), ways_.routing().choice, rates_);
    if (folds()) uses = folded(uses, message.source);
    add_up(uses, message.bytes, times);
  }
  // Rates depend neither on the time nor on the order in which flows came. Events that were put off are
  // counted, too, when they are due.
  bool add_state(StateDigest& state) const override {
    // What counts are distances from now: two states are alike if all that is to come is, whenever it is.
    const Time now = queue_.now();
    const auto from_now = [&](Time time) { return time == kEndOfTime ? INT64_MAX : (time - now).value; };
    std::vector<bool> has_place(flights_.size());
    const auto add = [&](const Flight& flight, std::int64_t place) {
      const Message& message = flight.message;
      const Digest told = labels_.describe(message.target, message.argument);
      state.add('f', message.source, message.destination, message.sender, message.tree, message.bytes.value,
                labels_.label(message).parts[2], told.low, told.high, static_cast<int>(flight.state), place,
                std::bit_cast<std::uint64_t>(flight.left), std::bit_cast<std::uint64_t>(flight.rate),
                flight.state == State::flowing ? from_now(flight.since) : 0, from_now(flight.done),
                from_now(flight.event));
    };
    // Places in the line of a connection are told, since numbers of flights are not: those are handed out
    // anew and mean nothing.
    for (const Connection& connection : connections_) {
      std::int64_t place = 0;
      for (std::uint32_t number = connection.first; number != kNone; number = flights_[number].next) {
        add(flights_[number], ++place);
        has_place[number] = true;
      }
    }
    for (std::uint32_t number = 0; number < flights_.size(); ++number) {
      const Flight& flight = flights_[number];
      if (flight.state == State::closed || has_place[number]) continue;
      add(flight, 0);
      if (!adapts(flight.message) || flight.state != State::flowing) continue;
      for (const MaxMin::Use& use : rates_.uses(number))
        state.add('u', flight.message.source, flight.message.destination, use.link);
    }
    queue_.for_each_pending([&](const Event& event) {
      if (event.target != target_) return;
      const auto number = static_cast<std::uint32_t>(event.argument);
      const Flight& flight = flights_[number];
      const bool is_meant = flight.generation == event.argument >> 32 && flight.state != State::closed &&
                            flight.event == event.time;
      if (is_meant) {
        state.add('e', flight.message.source, flight.message.destination, static_cast<int>(flight.state),
                  labels_.label(flight.message).parts[2], from_now(event.time));
      } else {
        state.add('s', from_now(event.time));
      }
    });
    return true;
  }
  NetworkSums sums() const override {
    NetworkSums sums{carried_, messages_};
    if (senders_) senders_->bring_up(sums.links, queue_.now());
    return sums;
  }
  void repeat(const NetworkSums& from, const NetworkSums& until, std::int64_t times) override {
    messages_ += (until.messages - from.messages) * times;
    for (std::size_t link = 0; link < carried_.size(); ++link) {
      NetworkSums::Carried& sum = carried_[link];
      const NetworkSums::Carried &before = from.links[link], &after = until.links[link];
      sum.busy = later(sum.busy, saturating_multiply(after.busy - before.busy, times));
      sum.bytes = saturating_add(sum.bytes, saturating_multiply(after.bytes - before.bytes, times));
      sum.shared = later(sum.shared, saturating_multiply(after.shared - before.shared, times));
    }
  }

  std::vector<LinkUse> links() const override { return ways_.used(carried_, classes_); }
  std::int64_t messages() const override { return messages_; }
  std::vector<std::string> notes() const override {
    std::string collision = ways_.collision_note();
    return collision.empty() ? std::vector<std::string>{} : std::vector{std::move(collision)};
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class State : std::uint8_t { waiting, flowing, closed };
  struct Flight {
    explicit Flight(std::uint32_t before = 0) : generation(before) {}
    std::uint32_t generation;  // flights that had the number before it
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

  // Its messages flow one after the other.
  struct Connection {
    std::uint32_t flowing = kNone;
    std::uint32_t first = kNone, last = kNone;  // of those whose latency is over
  };

  // Over trees, each link of a member is one: chunks go up one after the other, while others come down.
  std::uint32_t connection_of(const Message& message) {
    const bool in_tree = message.tree != kNoTree;
    auto& numbers = in_tree ? tree_connections_ : connection_numbers_;
    const std::uint64_t ends =
        in_tree ? trees_.link_of_member(message.tree, message.leg, message.source, message.destination)
                : ends_of(message);
    const auto [found, fresh] =
        numbers.try_emplace({ends, message.sender}, static_cast<std::uint32_t>(connections_.size()));
    if (fresh) connections_.emplace_back();
    return found->second;
  }

  // What goes along a tree has its way.
  bool adapts(const Message& message) const { return adaptive_ && message.tree == kNoTree; }

  void begin(std::uint32_t number) {
    Flight& flight = flights_[number];
    connections_[flight.connection].flowing = number;
    flight.state = State::flowing;
    flight.left = static_cast<double>(flight.message.bytes.value);
    flight.since = queue_.now();
    // It chooses when it begins to move, by the loads of that moment, which it could not know when it was
    // sent.
    if (adapts(flight.message)) {
      const std::vector<MaxMin::Use> uses =
          choose_ways(ways_.ways(flight.message), ways_.routing().choice, rates_);
      rates_.change(number, uses);
      add_up(uses, flight.message.bytes, 1);
    }
    if (flight.message.bytes == Bytes(0)) {
      flight.done = queue_.now();
      expect(number);
      return;
    }
    // Its end is known at the end of the round, with its rate.
    flight.event = flight.done = kEndOfTime;
    rates_.add(number);
    for (const MaxMin::Use& use : uses_of_senders(number))
      senders_->enter(use.link, flight.message.sender, queue_.now(), carried_[use.link]);
    changed_ = true;
  }

  void end(std::uint32_t number) {
    const Flight& flight = flights_[number];
    Connection& connection = connections_[flight.connection];
    if (flight.message.bytes > Bytes(0)) {
      rates_.remove(number);
      for (const MaxMin::Use& use : uses_of_senders(number))
        senders_->leave(use.link, flight.message.sender, queue_.now(), carried_[use.link]);
      changed_ = true;
    }
    connection.flowing = kNone;
    // The next of the connection goes before the receiver is told: what the receiver sends in answer comes
    // behind it.
    if (const std::uint32_t next = connection.first; next != kNone) {
      connection.first = flights_[next].next;
      begin(next);
    }
    deliver(number);
  }

  // What is looked at of a message that begins or ends.
  std::span<const MaxMin::Use> uses_of_senders(std::uint32_t number) const {
    return senders_ ? rates_.uses(number) : std::span<const MaxMin::Use>();
  }

  // Of the way, or of all ways on the average, as each carries its share.
  Time latency_of(std::span<const MaxMin::Use> uses) const {
    Time sum;
    WideProduct shared = 0;  // in picoseconds times kShareUnit, exactly: in whatever order links come
    for (const MaxMin::Use& use : uses) {
      const Time latency = ways_.links()[use.link].figures.latency;
      if (use.share == 1) {
        sum = later(sum, latency);
      } else {
        // Shares are whole multiples of kShareUnit (2^-30), so this division is exact.
        shared += static_cast<WideProduct>(use.share / kShareUnit) * latency.value;
      }
    }
    constexpr WideProduct kUnits = 1 << 30;
    const WideProduct rounded = (shared + kUnits / 2) / kUnits;
    return later(sum, Time(static_cast<std::int64_t>(std::min<WideProduct>(rounded, kEndOfTime.value))));
  }

  bool folds() const { return !classes_.stands_for.empty(); }

  // By links that stand for theirs. Every rank of the sender's class sends such a message, and every link of
  // a class carries as many of them.
  std::vector<MaxMin::Use> folded(std::span<const MaxMin::Use> uses, std::int32_t source) const {
    std::vector<MaxMin::Use> together;
    for (const MaxMin::Use& use : uses) {
      const std::uint32_t link = classes_.stands_for[use.link];
      const auto known = std::ranges::find_if(
          together, [&](const MaxMin::Use& other) { return other.link == link && other.share == use.share; });
      if (known == together.end()) {
        together.push_back({.link = link, .share = use.share});
      } else {
        ++known->copies;
      }
    }
    for (MaxMin::Use& use : together) {
      const std::int64_t all = use.copies * rank_sizes_[static_cast<std::size_t>(source)];
      use.copies = static_cast<std::uint32_t>(all / classes_.sizes[use.link]);
    }
    return together;
  }

  void add_up(std::span<const MaxMin::Use> uses, Bytes whole, std::int64_t times) {
    messages_ += times;
    for (const MaxMin::Use& use : uses) {
      NetworkSums::Carried& sum = carried_[use.link];
      const Bandwidth bandwidth = ways_.links()[use.link].figures.bandwidth;
      const Bytes bytes =
          use.share == 1 ? whole : Bytes(std::llround(static_cast<double>(whole.value) * use.share));
      const std::int64_t all = times * use.copies;
      sum.busy = later(sum.busy, saturating_multiply(time_to_move(bytes, bandwidth), all));
      sum.bytes = saturating_add(sum.bytes, saturating_multiply(bytes, all));
    }
  }

  void expect(std::uint32_t number) {
    flights_[number].event = flights_[number].done;
    look_again(number);
  }
  void look_again(std::uint32_t number) {
    const Flight& flight = flights_[number];
    queue_.schedule(flight.event, target_, std::uint64_t{flight.generation} << 32 | number);
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
  const MessageLabels& labels_;
  Ways ways_;
  SwitchTrees trees_;
  bool adaptive_;
  double factor_;
  MaxMin rates_;
  std::unordered_map<ConnectionKey, std::uint32_t, ConnectionHash> connection_numbers_;
  std::unordered_map<ConnectionKey, std::uint32_t, ConnectionHash> tree_connections_;
  std::vector<Connection> connections_;
  std::vector<Flight> flights_;  // by their number among the rates
  std::vector<NetworkSums::Carried> carried_;
  std::optional<SendersOnLinks> senders_;  // where there are several
  const LinkClasses& classes_;
  std::vector<std::int64_t> rank_sizes_;  // of classes, per rank that stands for others
  std::int64_t messages_ = 0;
  std::uint32_t target_;
  bool changed_ = false;
};

class FlowLinks final : public MessageLinks {
 public:
  FlowLinks(const Machine& machine, const WhatIf& what_if, std::string_view routing)
      : ways_(machine, what_if.links, routing, what_if.damage) {}
  bool are_fixed() const override { return !is_adaptive(ways_.routing().choice); }
  std::uint32_t links() const override { return static_cast<std::uint32_t>(ways_.links().size()); }
  std::tuple<std::uint32_t, double, std::int64_t> kind(std::uint32_t link) const override {
    const DirectedLink& it = ways_.links()[link];
    return {it.dimension, it.figures.bandwidth.value, it.figures.latency.value};
  }
  bool any_by_chance() const override { return ways_.any_by_chance(); }
  std::vector<LinkShare> used(std::int32_t source, std::int32_t destination) override {
    if (std::exchange(destination_, destination) != destination) ways_.forget_some();
    std::span<const Ways::Way> ways = ways_.ways({.source = source, .destination = destination, .bytes = {}});
    if (ways_.routing().choice == WayChoice::first) ways = ways.first(1);
    return shares_of(ways);
  }

 private:
  Ways ways_;
  std::int32_t destination_ = -1;  // that was asked for last
};

}  // namespace

std::unique_ptr<MessageLinks> flow_links(const Machine& machine, const WhatIf& what_if,
                                         const ParameterValues& values) {
  return std::make_unique<FlowLinks>(machine, what_if, values.choice("routing"));
}

std::unique_ptr<Network> make_flow_network(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<FlowNetwork>(setup, values);
}

}  // namespace armilla
