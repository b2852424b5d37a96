#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/slots.h"
#include "base/sorted.h"
#include "base/units_text.h"
#include "network/flit.h"
#include "network/flit/flit_engine.h"
#include "network/flit/flit_graph.h"
#include "network/links/own_clock.h"
#include "network/links/senders_on_links.h"
#include "network/rough_time.h"
#include "network/routing/least_loaded.h"
#include "network/routing/ways.h"

namespace armilla {
namespace {

// Of one core: where many flits meet, roughly, and what none plays more than (rings of 2 to 16 GPUs play 4e7
// to 5e7).
constexpr double kFlitHopsPerSecond = 8e6, kFastestFlitHops = 6e7;
constexpr double kMostFlitHops = 2e10;
constexpr double kMostBufferedFlits = 1 << 28;
constexpr std::string_view kNetwork = "network flit";  // where errors of a run are

// What the parameters say, and what follows from the links where they do not.
struct FlitSettings {
  FlitSettings(Ways& ways, const ParameterValues& values);

  std::int64_t flit_bytes = 0, packet_flits = 0;
  double payload_bytes = 0;  // of a flit
  FlitFabric fabric;
  FlitRouter router;
  std::int64_t fewer_round_trips = 0;  // that Garnet's channels are for, as more would be too many; 0: all
};

FlitFabric fabric_of(const Ways& ways, const ParameterValues& values, std::int64_t flit_bytes,
                     std::int64_t pipeline) {
  double fastest = 0;
  for (const DirectedLink& link : ways.links()) fastest = std::max(fastest, link.figures.bandwidth.value);
  FlitFabric fabric;
  fabric.flit_bytes = static_cast<double>(flit_bytes);
  // Without links no flit ever moves.
  if (fastest == 0) fastest = static_cast<double>(flit_bytes) * 1e9;
  fabric.cycle_ps = 1e12 * (values.is_set("clock") ? 1 / values.frequency("clock").value
                                                   : static_cast<double>(flit_bytes) / fastest);
  fabric.pipeline = pipeline;
  fabric.whole_periods = values.choice("router") == "garnet";
  constexpr double kShortest = 1, kLongest = 1e9;  // ps
  if (!(fabric.cycle_ps >= kShortest) || fabric.cycle_ps > kLongest)
    throw Error("network flit", fmt::format("a cycle would take {:.3g} ns", fabric.cycle_ps / 1000),
                "from 0.001 ns to 1 ms");
  return fabric;
}

std::int64_t in_range(const ParameterValues& values, std::string_view name, std::int64_t least,
                      std::int64_t most) {
  const bool bytes = name == "flit-width" || name == "packet";
  const std::int64_t value = bytes ? values.bytes(name).value : values.count(name);
  if (value < least || value > most)
    throw Error(values.where(name), fmt::format("{} is out of range", value),
                fmt::format("from {} to {}{}", least, most, bytes ? " bytes" : ""));
  return value;
}

FlitSettings::FlitSettings(Ways& ways, const ParameterValues& values) {
  constexpr std::int64_t kWidest = 1 << 20, kLongestPacket = 1 << 16;
  flit_bytes = in_range(values, "flit-width", 1, kWidest);
  const std::int64_t packet = in_range(values, "packet", 1, kWidest << 4);
  packet_flits = (packet + flit_bytes - 1) / flit_bytes;
  if (packet_flits > kLongestPacket)
    throw Error(values.where("packet"), fmt::format("packets of {} flits", packet_flits),
                fmt::format("at most {}", kLongestPacket));
  const double share = values.fraction("payload");
  if (!(share > 0))
    throw Error(values.where("payload"), "no part of a flit is payload", "more than 0, at most 1");
  payload_bytes = static_cast<double>(flit_bytes) * share;

  const bool garnet = values.choice("router") == "garnet";
  const std::int64_t delay = values.is_set("router-latency")
                                 ? in_range(values, "router-latency", garnet ? 1 : 2, 1000)
                                 : (garnet ? 1 : 2);
  router.one_step = router.atomic_vcs = garnet;
  router.routing_delay = garnet ? delay - 1 : delay - 2;
  router.credit_delay = garnet ? 1 : 0;
  fabric = fabric_of(ways, values, flit_bytes, delay);
}

// Virtual channels and buffers: where they are not given, as many as keep the longest link busy. Of Garnet's,
// whose packets hold a channel until the credit of their tail is back, n times the round trip's keep it n /
// (n + 1) busy when flits of all of them take turns.
void choose_buffers(FlitSettings& settings, const ParameterValues& values, const FlitGraph& graph) {
  constexpr std::int64_t kMostVcs = 4096, kDeepest = 32768, kRoundTrips = 8;
  FlitRouter& router = settings.router;
  const std::int64_t layers = graph.layers(), round_trip = graph.longest_round_trip();
  const auto needed_for = [&](std::int64_t round_trips) {
    return router.one_step ? layers * (round_trips * round_trip / settings.packet_flits + 2)
                           : std::max<std::int64_t>(4, layers);
  };
  std::int64_t round_trips = kRoundTrips;
  while (round_trips > 1 && needed_for(round_trips) > kMostVcs) --round_trips;
  const std::int64_t needed = needed_for(round_trips);
  settings.fewer_round_trips = !values.is_set("vcs") && round_trips < kRoundTrips ? round_trips : 0;
  const std::int64_t deep = router.one_step ? settings.packet_flits : round_trip + settings.packet_flits;
  if (!values.is_set("vcs") && needed > kMostVcs)
    throw Error("network flit", fmt::format("{} virtual channels would keep its longest link busy", needed),
                "longer packets or wider flits take fewer; vcs= chooses a number");
  if (!values.is_set("buffer") && deep > kDeepest)
    throw Error("network flit", fmt::format("buffers of {} flits would keep its longest link busy", deep),
                "wider flits take fewer; buffer= chooses a number");
  router.virtual_channels = values.is_set("vcs") ? in_range(values, "vcs", 1, kMostVcs) : needed;
  router.buffer = values.is_set("buffer") ? in_range(values, "buffer", 1, INT32_MAX) : deep;
  // Only one packet is ever in a virtual channel.
  if (router.atomic_vcs) router.buffer = std::min(router.buffer, settings.packet_flits);
  if (router.buffer > kDeepest)
    throw Error(values.where("buffer"), fmt::format("{} is out of range", router.buffer),
                fmt::format("from 1 to {}", kDeepest));
  const double all = static_cast<double>(graph.network().ports()) *
                     static_cast<double>(router.virtual_channels) * static_cast<double>(router.buffer);
  if (all > kMostBufferedFlits)
    throw Error("network flit", fmt::format("the buffers of the network hold {:.3g} flits together", all),
                fmt::format("at most {:.3g}: wider flits, or fewer virtual channels (vcs) and buffers",
                            kMostBufferedFlits));
}

PlayTime check_effort(const FlitSettings& settings, const FlitGraph& graph, const Foreseen& foreseen) {
  const double flits = std::max(foreseen.messages, foreseen.bytes / settings.payload_bytes);
  const double hops = flits * (graph.mean_links() + 1);
  if (hops <= kMostFlitHops) return {hops / kFastestFlitHops, hops / kFlitHopsPerSecond};
  throw Error(
      "network flit",
      fmt::format("the messages are {:.2g} flits, which would pass {:.2g} routers and take about {} (at "
                  "most {:.0e} are simulated)",
                  flits, hops, rough_time(hops / kFlitHopsPerSecond), kMostFlitHops),
      "--network flow takes a time that does not depend on the bytes; a larger flit-width makes fewer "
      "flits");
}

// Messages over flits: each is cut into packets, which wait at the interface by whose link their way begins,
// and it has arrived when the tails of all have. At an interface senders take turns, packet by packet.
class MessageFlits final : public Network, public OwnClock {
 public:
  MessageFlits(const NetworkSetup& setup, const ParameterValues& values)
      : OwnClock(setup.queue),
        ways_(setup.machine, setup.slow_links, values.choice("routing"), setup.damage),
        settings_(ways_, values),
        graph_(ways_, settings_.fabric),
        packets_before_(ways_.links().size()),
        carried_(ways_.links().size()) {
    foreseen_time_ = check_effort(settings_, graph_, setup.foreseen);
    if (setup.shared_dimensions != 0) {
      senders_.emplace(carried_.size());
      shared_.resize(carried_.size());
    }
    choose_buffers(settings_, values, graph_);
    graph_.divide(settings_.router.virtual_channels, settings_.router.atomic_vcs);
    engine_.emplace(graph_.network(), settings_.router, random_);
    interfaces_.resize(graph_.network().nodes);
    waiting_.resize((graph_.network().nodes + 63) / 64);
  }

  Time send(const Message& message) override {
    ++messages_;
    const std::uint32_t number = flights_.add({message, packets_of(message.bytes)});
    const std::int64_t at = first_cycle_from(queue().now());
    starts_.push_back({at, number});
    wake_at(at);
    return kEndOfTime;
  }

  std::vector<LinkUse> links() const override {
    std::vector<NetworkSums::Carried> carried, shared = shared_;
    if (senders_) senders_->bring_up(shared, queue().now());
    for (std::size_t link = 0; link < carried_.size(); ++link) {
      const double seconds = static_cast<double>(carried_[link].flits) *
                             static_cast<double>(settings_.flit_bytes) /
                             ways_.links()[link].figures.bandwidth.value;
      carried.push_back({from_seconds(seconds), carried_[link].bytes});
      if (!senders_) continue;
      carried.back().shared = shared[link].shared;
      carried.back().senders = shared[link].senders;
    }
    return ways_.used(carried);
  }
  std::int64_t messages() const override { return messages_; }
  std::int64_t messages_under_way() const override { return static_cast<std::int64_t>(flights_.taken()); }
  // Over three links counts three.
  std::int64_t packets_over_links() const { return packets_over_links_; }
  std::int64_t flit_hops() const { return engine_->flit_hops(); }
  // Of the message's one way while nothing else is under way, if its packets follow each other without a gap;
  // 0: it may take several.
  double least_s(const Message& message) {
    const Alternatives& found = alternatives_of(message);
    if (found.count > 1) return 0;
    const FlitFabric& fabric = settings_.fabric;
    double cycles = static_cast<double>(fabric.pipeline + 2), longest_period = 1;
    for (const std::uint32_t link : known_ways_[found.begin].links) {
      const LinkFigures& figures = ways_.links()[link].figures;
      const double period =
          std::max(1.0, fabric.flit_bytes / figures.bandwidth.value * 1e12 / fabric.cycle_ps);
      const double whole = std::ceil(period - 1e-9);
      cycles += static_cast<double>(std::max<std::int64_t>(
                    std::llround(static_cast<double>(figures.latency.value) / fabric.cycle_ps),
                    fabric.pipeline + 1)) +
                whole - 1;
      longest_period = std::max(longest_period, fabric.whole_periods ? whole : period);
    }
    cycles += static_cast<double>(flits_of_message(message.bytes) - 1) * longest_period;
    return cycles * fabric.cycle_ps / 1e12;
  }
  PlayTime foreseen_time() const override { return foreseen_time_; }
  std::string routers() const {
    const FlitRouter& router = settings_.router;
    const std::int64_t trips = settings_.fewer_round_trips;
    const std::string for_fewer =
        trips > 0 ? fmt::format(" (which keep its longest link {} / {} busy)", trips, trips + 1) : "";
    return fmt::format(
        "{}routers of {} at {}, {} of {}; packets of up to {} of {}{}", router.one_step ? "Garnet's " : "",
        counted(settings_.fabric.pipeline, "cycle"), to_text(Frequency(1e12 / settings_.fabric.cycle_ps)),
        counted(router.virtual_channels, "virtual channel") + for_fewer, counted(router.buffer, "flit"),
        counted(settings_.packet_flits, "flit"), to_text(Bytes(settings_.flit_bytes)),
        settings_.payload_bytes < static_cast<double>(settings_.flit_bytes)
            ? fmt::format(", {:.4g} bytes of each payload", settings_.payload_bytes)
            : "");
  }
  std::string collision_note() const { return ways_.collision_note(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = {
        fmt::format("network flit: {}; every rank is simulated, as flits meet in routers, not on links alone",
                    routers())};
    if (std::string collision = collision_note(); !collision.empty()) notes.push_back(std::move(collision));
    return notes;
  }

 private:
  struct Flight {
    Message message;
    std::int64_t packets_left = 0;
  };
  struct Start {
    std::int64_t cycle = 0;
    std::uint32_t flight = 0;
  };
  struct KnownWay {
    Ways::Way links;
    FlitGraph::Entry entry;
  };
  // All ways of a pair of devices.
  struct Alternatives {
    std::uint32_t begin = 0, count = 0;  // in ways_known_
    std::uint32_t packets_spread = 0;
    std::vector<std::uint32_t> links{};  // of all that are taken, where senders_ are
  };
  // Packets of one message that wait for their interface: of the way's.
  struct Waiting {
    std::uint32_t flight = 0, way = 0;
    std::int64_t bytes = 0;  // that are left; of the last packet perhaps none
    std::int64_t packets = 0;
  };
  // Senders with packets here, of whom the first is next.
  struct Interface {
    std::deque<std::uint16_t> turns;
    std::unordered_map<std::uint16_t, std::deque<Waiting>> packets;  // by sender
  };
  struct Sums {
    Bytes bytes;
    std::int64_t flits = 0;
  };

  std::int64_t bytes_of_packet() const {
    return std::max<std::int64_t>(
        static_cast<std::int64_t>(settings_.payload_bytes * static_cast<double>(settings_.packet_flits)), 1);
  }
  std::int64_t flits_of(std::int64_t bytes) const {
    const auto flits =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) / settings_.payload_bytes));
    return std::clamp<std::int64_t>(flits, 1, settings_.packet_flits);
  }

  // Ticks are cycles.
  Time time_of(std::int64_t cycle) const override {
    const double ps = static_cast<double>(cycle) * settings_.fabric.cycle_ps;
    return ps < static_cast<double>(kEndOfTime.value) ? Time(std::llround(ps)) : kEndOfTime;
  }
  std::int64_t last_tick_by(Time time) const override {
    auto cycle = static_cast<std::int64_t>(static_cast<double>(time.value) / settings_.fabric.cycle_ps);
    // The quotient may be rounded either way; only `time_of` says when a cycle is.
    while (time_of(cycle) > time) --cycle;
    while (time_of(cycle + 1) <= time) ++cycle;
    return cycle;
  }
  std::int64_t first_cycle_from(Time time) const {
    const std::int64_t cycle = last_tick_by(time);
    return time_of(cycle) < time ? cycle + 1 : cycle;
  }
  bool any_under_way() const override { return !flights_.empty(); }
  std::int64_t current_tick() const override { return engine_->now(); }
  std::int64_t next_tick() const override { return engine_->now() + (received_ ? 1 : 0); }
  void explain_standstill() const override {
    throw Error(std::string(kNetwork),
                fmt::format("nothing moves any more after {}", to_text(queue().now())));
  }

  // A cycle's arrivals are told before its nodes send, so that what receivers send goes in the same cycle.
  bool play_until(std::int64_t end) override {
    while (arrived_.empty()) {
      if (!received_) {
        if (engine_->now() > end) return false;
        if (!any_waiting()) {
          const std::int64_t next = starts_.empty() ? end : std::min(end, starts_.front().cycle);
          tell_where([&] { engine_->skip_until(next); });
        }
        receive();
        continue;
      }
      if (engine_->now() >= end) return false;
      nodes_send();
      tell_where([&] { engine_->step(); });
      received_ = false;
    }
    return engine_->now() <= end;
  }

  // A deadlock, in the words of the study.
  template <class Verb>
  void tell_where(const Verb& verb) const {
    try {
      verb();
    } catch (const Error& error) {
      const std::int64_t vcs = settings_.router.virtual_channels;
      throw Error(std::string(kNetwork),
                  fmt::format("at {}: {}", to_text(time_of(engine_->now())), error.message),
                  vcs < graph_.layers()
                      ? fmt::format("vcs={} are too few: ways here take {} to be free of such circles", vcs,
                                    graph_.layers())
                      : "more virtual channels (vcs=), or routing=up-down, which has no circles");
    }
  }

  bool any_waiting() const {
    return std::ranges::any_of(waiting_, [](std::uint64_t word) { return word != 0; });
  }

  void receive() {
    for (const FlitEngine::Arrival& arrival : engine_->receive()) {
      if (!arrival.tail) continue;
      const FlitPacket& packet = engine_->packet(arrival.packet);
      const std::uint32_t flight = packet.message;
      if (is_adaptive(ways_.routing().choice)) load(known_ways_[packet.way].links, -1);
      engine_->forget(arrival.packet);
      if (--flights_[flight].packets_left == 0) arrived_.push_back(flight);
    }
    received_ = true;
  }

  void nodes_send() {
    for (; !starts_.empty() && starts_.front().cycle <= engine_->now(); starts_.pop_front())
      begin(starts_.front().flight);
    for (std::size_t word = 0; word < waiting_.size(); ++word) {
      for (std::uint64_t left = waiting_[word]; left != 0; left &= left - 1) {
        const auto node =
            static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(std::countr_zero(left));
        if (engine_->idle(node)) send_packet(node);
      }
    }
  }

  void begin(std::uint32_t flight) {
    const Message& message = flights_[flight].message;
    Alternatives& found = alternatives_of(message);
    if (senders_) senders_->enter(found.links, message.sender, queue().now(), shared_);
    if (ways_.routing().choice == WayChoice::first) {
      wait_at({flight, found.begin, message.bytes.value, flights_[flight].packets_left});
      return;
    }
    std::int64_t left = message.bytes.value;
    // Each packet chooses for itself, by what those before it have taken.
    for (std::int64_t packets = flights_[flight].packets_left; packets > 0; --packets) {
      const std::int64_t bytes = std::min(left, bytes_of_packet());
      wait_at({flight, choose(found), bytes, 1});
      left -= bytes;
    }
  }

  Alternatives& alternatives_of(const Message& message) {
    const auto [found, fresh] = known_.try_emplace(ends_of(message));
    if (!fresh) return found->second;
    found->second.begin = static_cast<std::uint32_t>(known_ways_.size());
    for (const Ways::Way& way : ways_.ways(message)) known_ways_.push_back({way, graph_.add(way)});
    found->second.count = static_cast<std::uint32_t>(known_ways_.size()) - found->second.begin;
    if (senders_) keep_links(found->second);
    return found->second;
  }

  void keep_links(Alternatives& pair) const {
    for (const KnownWay& way : std::span(known_ways_).subspan(pair.begin, pair.count))
      pair.links.insert(pair.links.end(), way.links.begin(), way.links.end());
    sort_unique(pair.links);
  }

  // A link's load is what the packets that have it before them take.
  std::uint32_t choose(Alternatives& found) {
    if (ways_.routing().choice == WayChoice::spread)
      return found.begin + found.packets_spread++ % found.count;
    const auto wait = [&](std::uint32_t link) {
      return static_cast<double>(packets_before_[link] + 1) / ways_.links()[link].figures.bandwidth.value;
    };
    const auto ways = std::span<const KnownWay>(known_ways_).subspan(found.begin, found.count);
    const std::size_t best = least_loaded(ways, &KnownWay::links, wait);
    load(ways[best].links, 1);
    return found.begin + static_cast<std::uint32_t>(best);
  }

  void load(std::span<const std::uint32_t> way, std::int64_t packets) {
    for (const std::uint32_t link : way) packets_before_[link] += packets;
  }

  void wait_at(const Waiting& packets) {
    const std::uint32_t node = known_ways_[packets.way].entry.node;
    const std::uint16_t sender = flights_[packets.flight].message.sender;
    Interface& interface = interfaces_[node];
    const auto [own, fresh] = interface.packets.try_emplace(sender);
    if (fresh) interface.turns.push_back(sender);
    own->second.push_back(packets);
    waiting_[node / 64] |= std::uint64_t{1} << node % 64;
  }

  void send_packet(std::uint32_t node) {
    Interface& interface = interfaces_[node];
    const auto next = interface.packets.find(interface.turns.front());
    std::deque<Waiting>& packets = next->second;
    Waiting& first = packets.front();
    const KnownWay& way = known_ways_[first.way];
    const std::int64_t bytes = std::min(first.bytes, bytes_of_packet());
    FlitPacket packet;
    packet.source = node;
    packet.destination =
        graph_.network().outputs[graph_.network().steps[way.entry.step + way.links.size()].port].node;
    packet.flits = static_cast<std::uint32_t>(flits_of(bytes));
    packet.created = engine_->now();
    packet.message = first.flight;
    packet.way = first.way;
    packet.step = way.entry.step;
    engine_->send(node, packet);
    add_up(way.links, Bytes(bytes));
    first.bytes -= bytes;
    if (--first.packets == 0) packets.pop_front();
    if (packets.empty()) {
      interface.packets.erase(next);
      interface.turns.pop_front();
      if (interface.turns.empty()) waiting_[node / 64] &= ~(std::uint64_t{1} << node % 64);
    } else if (interface.turns.size() > 1) {
      // The other senders' turn.
      interface.turns.push_back(interface.turns.front());
      interface.turns.pop_front();
    }
  }

  std::int64_t packets_of(Bytes bytes) const {
    return std::max<std::int64_t>((bytes.value + bytes_of_packet() - 1) / bytes_of_packet(), 1);
  }
  std::int64_t flits_of_message(Bytes bytes) const {
    const std::int64_t whole = packets_of(bytes) - 1;
    return whole * settings_.packet_flits + flits_of(bytes.value - whole * bytes_of_packet());
  }

  void add_up(std::span<const std::uint32_t> way, Bytes bytes) {
    const std::int64_t flits = flits_of_message(bytes);
    packets_over_links_ += packets_of(bytes) * static_cast<std::int64_t>(way.size());
    for (const std::uint32_t link : way) {
      carried_[link].bytes = saturating_add(carried_[link].bytes, bytes);
      carried_[link].flits += flits;
    }
  }

  void deliver() override {
    // Taken out first: who is told may send at once.
    for (const std::uint32_t number : std::exchange(arrived_, {})) {
      const Message& message = flights_[number].message;
      if (senders_) senders_->leave(alternatives_of(message).links, message.sender, queue().now(), shared_);
      const std::uint32_t target = message.target;
      const std::uint64_t argument = message.argument;
      flights_.release(number);
      queue().handler(target).handle(argument);
    }
  }

  Ways ways_;
  FlitSettings settings_;
  FlitGraph graph_;
  LaggedRandom random_{LaggedRandom::Kind::integers, 1};  // asked by no router here
  std::optional<FlitEngine> engine_;
  std::unordered_map<std::uint64_t, Alternatives> known_;  // by source and destination
  std::vector<KnownWay> known_ways_;
  std::vector<Interface> interfaces_;
  std::vector<std::int64_t>
      packets_before_;  // of links: that will cross it and are not there; for adaptive routings
  std::vector<std::uint64_t> waiting_;  // interfaces with packets, one bit each
  std::deque<Start> starts_;            // sent, in the order of their cycles
  Slots<Flight> flights_;
  std::vector<std::uint32_t> arrived_;
  std::vector<Sums> carried_;
  std::optional<SendersOnLinks> senders_;     // where there are several
  std::vector<NetworkSums::Carried> shared_;  // and how long links were shared
  PlayTime foreseen_time_;
  std::int64_t messages_ = 0, packets_over_links_ = 0;
  bool received_ = false;  // of this cycle
};

// Flows alone: each is a message. A device's take turns, packet by packet.
class FlitFlows final : public MessageLabels, public EventHandler {
 public:
  FlitFlows(const FlowJob& job, const Machine& machine, std::span<const DamagedLink> damage,
            const ParameterValues& values)
      : job_(job), target_(queue_.add_handler(*this)), done_(job.flows.size(), Time(-1)) {
    NetworkSetup setup{machine, queue_, *this};
    setup.damage = damage;
    setup.foreseen.messages = static_cast<double>(job.flows.size());
    for (const TrafficFlow& flow : job.flows) setup.foreseen.bytes += static_cast<double>(flow.bytes);
    bytes_ = setup.foreseen.bytes;
    std::vector<std::int64_t> of_host(static_cast<std::size_t>(job.graph.nodes()));
    for (const TrafficFlow& flow : job.flows) {
      std::int64_t& flows = of_host[static_cast<std::size_t>(flow.source)];
      senders_.push_back(static_cast<std::uint16_t>(flows++));
      most_of_a_host_ = std::max(most_of_a_host_, flows);
    }
    network_.emplace(setup, values);
  }

  TrafficResult run() {
    job_.progress->begin("simulating flits");
    for (std::size_t i = 0; i < job_.flows.size(); ++i)
      queue_.schedule(Time(job_.flows[i].start_ns * 1000), target_, i);
    try {
      queue_.run();
    } catch (const Error& error) {
      if (error.where != kNetwork) throw;
      // Flits that wait for each other.
      const auto finished = std::ranges::count_if(done_, [](Time time) { return time >= Time(0); });
      throw Error(error.where,
                  fmt::format("{}; {} of {} had finished", error.message, with_separators(finished),
                              counted(static_cast<std::int64_t>(done_.size()), "flow")),
                  error.hint);
    }
    FlowsResult flows;
    for (std::size_t i = 0; i < job_.flows.size(); ++i) {
      const TrafficFlow& flow = job_.flows[i];
      const auto start_s = static_cast<double>(flow.start_ns) / 1e9;
      flows.flows.push_back({flow.source, flow.destination, flow.bytes, start_s,
                             static_cast<double>(done_[i].value - flow.start_ns * 1000) / 1e12, true,
                             network_->least_s(message_of(i))});
    }
    flows.packets = network_->packets_over_links();
    flows.events = network_->flit_hops();
    TrafficResult result;
    const std::int64_t switches = std::count(job_.graph.is_switch.begin(), job_.graph.is_switch.end(), true);
    result.title = fmt::format("{} over routers of flits: {}, {}, {}", counted(job_.flows.size(), "flow"),
                               counted(job_.graph.nodes() - switches, "host"), counted(switches, "switch"),
                               counted(job_.graph.links.size(), "link"));
    result.outcome = std::move(flows);
    result.facts.emplace_back("played by", network_->routers());
    if (std::string collision = network_->collision_note(); !collision.empty())
      result.notes.push_back(std::move(collision));
    if (most_of_a_host_ > kMostSenders) {
      result.notes.push_back(
          fmt::format("a host has {} flows, of which {} take turns: the others go behind one of those",
                      with_separators(most_of_a_host_), with_separators(kMostSenders)));
    }
    return result;
  }

  void handle(std::uint64_t argument) override {
    if (argument < job_.flows.size()) {
      network_->send(message_of(argument));
      return;
    }
    const std::uint64_t flow = argument - job_.flows.size();
    done_[flow] = queue_.now();
    bytes_done_ += static_cast<double>(job_.flows[flow].bytes);
    job_.progress->update(bytes_done_ / bytes_);
  }

 private:
  static constexpr std::int64_t kMostSenders = 1 << 16;  // what Message::sender can tell apart

  Message message_of(std::uint64_t flow) const {
    const TrafficFlow& asked = job_.flows[flow];
    Message message;
    message.source = static_cast<std::int32_t>(asked.source);
    message.destination = static_cast<std::int32_t>(asked.destination);
    message.bytes = Bytes(asked.bytes);
    message.target = target_;
    message.argument = job_.flows.size() + flow;
    message.sender = senders_[flow];
    return message;
  }

  const FlowJob& job_;
  EventQueue queue_;
  std::uint32_t target_;
  std::vector<Time> done_;
  std::vector<std::uint16_t> senders_;  // by flow: flows of a host take turns
  std::int64_t most_of_a_host_ = 0;
  std::optional<MessageFlits> network_;
  double bytes_ = 0, bytes_done_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_flit_network(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<MessageFlits>(setup, values);
}

TrafficResult flit_traffic(const FlowJob& job, const Machine& machine, std::span<const DamagedLink> damage,
                           const ParameterValues& values) {
  if (job.sampled)
    throw Error("network flit", "keeps no figures of links over time",
                "--network packet and flow do; omit --over-time, --links-csv, --svg and --trace");
  return FlitFlows(job, machine, damage, values).run();
}

}  // namespace armilla
