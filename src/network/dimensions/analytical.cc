#include "network/dimensions/analytical.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>
#include <tuple>

#include "base/slots.h"
#include "network/dimensions/fair_ports.h"
#include "network/flow/fluid_rings.h"
#include "network/links/link_table.h"
#include "network/routing/ways.h"
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
    topology_.for_each_link(message, [&](const LinkId& id, const Position& /*beyond*/) {
      Link& link = links_.at(id);
      link.busy = later(link.busy, saturating_multiply(time_on(links_.speed(id, message), message), times));
      link.bytes = saturating_add(link.bytes, saturating_multiply(message.bytes, times));
    });
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

// A link by which messages of several senders come to a rank. Of a row on its way there messages are booked
// when the last one is there, or when another message is: before that nobody could tell.
struct WayIn {
  Intake intake;
  std::vector<std::uint32_t> rows;  // flights, in the order in which they come
};

// A message at the near end of a link that it is about to cross; of a row of messages the first of those that
// have yet to cross it, but `tail`, which is of the last.
struct Crossing {
  Link* link = nullptr;
  WayIn* in = nullptr;               // of the link, if it is one
  const LinkSpeed* speed = nullptr;  // of it
  Time service;                      // bytes / bandwidth there
  Time head, tail;  // first and last byte at the near end; once it is crossed, at the far end
};

// A message with links still to cross, behind a port, or in rings.
struct SharedFlight {
  Message message;
  Position at;  // beyond the link, or before rings that are shared
  Crossing crossing;
  bool is_last = false;  // its link: the event is its last byte at the destination if the link is free for it
  bool is_through = false;       // no link is left: the event is its last byte at the destination
  bool at_port = false;          // or in rings, shared with other senders' messages: without an event
  std::uint32_t called_off = 0;  // events so far, of all flights of this number
  // The link has a port (network/dimensions/fair_ports.h), or kNoFairPort, or kRings; the latest port,
  // where it leads.
  std::uint32_t port = 0;
  const LinkSpeed* port_speed = nullptr;
  Position beyond_port;
};

constexpr std::uint32_t kNoFairPort = UINT32_MAX;
// No port, but the first of one or several links of rings that are shared (network/flow/fluid_rings.h).
constexpr std::uint32_t kRings = UINT32_MAX - 1;

class Analytical final : public EventHandler,
                         public AnalyticalBase,
                         public RoundObserver,
                         public FairPorts::Client,
                         public FluidRings::Client {
 public:
  Analytical(const NetworkSetup& setup, bool stores, bool is_fair)
      : AnalyticalBase(setup),
        target_(queue_.add_handler(*this)),
        first_hops_(topology_.ranks()),
        stores_(stores),
        ports_(queue_, *this) {
    queue_.add_observer(*this);
    has_ports_.resize(topology_.dimensions());
    has_rings_.resize(topology_.dimensions());
    keeps_rows_.resize(topology_.dimensions());
    for (std::uint32_t d = 0; d < std::min(topology_.dimensions(), 32U) && is_fair; ++d) {
      if ((setup.shared_dimensions >> d & 1) == 0) continue;
      const bool passes = passes_others(topology_.dimension(d));
      // On a ring a message may hold several links at once, whose rates hang together; behind a switch only
      // the first of two.
      (passes ? has_rings_ : has_ports_)[d] = true;
      if (passes && !rings_) rings_.emplace(queue_, links_.largest_bandwidth(), *this);
      // Messages of a row come at their receiver's link as fast as that serves them.
      keeps_rows_[d] = !stores && has_one_switch(topology_.dimension(d)) &&
                       std::ranges::none_of(setup.slow_links,
                                            [&](const SlowLinks& links) { return links.dimension == d; });
    }
  }

  bool keeps_rows(std::uint32_t dimension) const override {
    return dimension != kAllDimensions && keeps_rows_[dimension] != 0;
  }

  // Over a single link a message is an event of its receiver. Another is copied last: read right after it was
  // written, in other pieces, it would stall the processor.
  Time send(const Message& message) override {
    const FirstHops& way =
        first_hops_.of(message, [&](FirstHops& found) { find_first_hops(message, found); });
    if (message.row > 1 && !may_go_as_row(message, way)) {
      Message one = message;
      for (one.row = 1; one.order < message.order + message.row; ++one.order) send(one);
      return kEndOfTime;
    }
    messages_ += message.row;
    if (way.first.port != kNoFairPort) {
      const std::uint32_t slot = flights_.take();
      SharedFlight& flight = flights_[slot];
      flight.crossing.link = way.first.link;
      flight.crossing.speed = way.first.speed;
      flight.crossing.service = time_on(*way.first.speed, message);
      flight.crossing.head = flight.crossing.tail = queue_.now();
      flight.message = message;
      if (way.first.port == kRings) {
        flight.at = way.beyond_first;
        enter_rings(slot);
        return kEndOfTime;
      }
      flight.beyond_port = way.beyond_first;
      // Booked from within `ports_.join`, when nobody else is at the port: then the way is still at hand.
      flight.port = way.first.port;
      sending_ = &way;
      sent_ = slot;
      enter_port(slot);
      sending_ = nullptr;
    } else if (message.leg == Leg::from_switch) [[unlikely]] {
      // Others send over this link, too: who is first is not for the order of sending to say.
      const std::uint32_t slot = flights_.take();
      SharedFlight& flight = flights_[slot];
      flight.is_through = false;
      flight.crossing.speed = way.first.speed;
      flight.crossing.service = time_on(*way.first.speed, message);
      flight.crossing.head = flight.crossing.tail = queue_.now();
      flight.at = way.beyond_first;
      flight.message = message;
      wait_for(slot, message, way.first, flight.at.hops_left == 0);
    } else if (way.second.link == nullptr) {
      Crossing crossing;
      begin(crossing, way.first, message);
      queue_.schedule(crossing.tail, message.target, message.argument);
    } else {
      const std::uint32_t slot = flights_.take();
      SharedFlight& flight = flights_[slot];
      flight.is_through = false;
      begin(flight.crossing, way.first, message);
      wait_for(slot, message, way.second, way.beyond.hops_left == 0);
      flight.at = way.beyond;
      flight.message = message;
    }
    return kEndOfTime;
  }

  void departs(const FairPorts::Departure& departure) override {
    SharedFlight& flight = flights_[departure.flight];
    Crossing& crossing = flight.crossing;
    const Time latency = flight.port_speed->latency;
    crossing.tail = later(departure.end, latency);
    crossing.head = stores_ ? crossing.tail : later(departure.begin, latency);
    flight.at_port = false;
    if (flight.beyond_port.hops_left == 0) {
      flight.is_through = true;
      schedule(crossing.tail, departure.flight);
      return;
    }
    // Booked at once: its way is at hand.
    if (sending_ != nullptr && sent_ == departure.flight) {
      flight.at = sending_->beyond;
      wait_behind_port(departure.flight, sending_->second);
      if (flight.message.row > 1) flight.crossing.in->rows.push_back(departure.flight);
      return;
    }
    flight.at = flight.beyond_port;
    wait_behind_port(departure.flight, hop_on(flight.message, flight.at));
  }
  std::vector<std::uint32_t> taken_apart(std::uint32_t row, std::uint32_t left) override {
    std::vector<std::uint32_t> flights;
    // Those that are through at the port but not at the receiver's link stay the row.
    const std::uint32_t staying = flights_[row].message.row - left;
    for (std::uint32_t i = 0; i < left; ++i) flights.push_back(one_of_row(row, staying + i));
    SharedFlight& flight = flights_[row];
    Crossing& crossing = flight.crossing;
    flight.message.row = staying;
    crossing.tail = crossing.head + crossing.service * staying;
    const Time end = crossing.tail + crossing.speed->latency;
    // Those who could have met them in this moment have been there.
    if (staying > 0 && end <= queue_.now()) book_of_row(flight, staying);
    if (flight.message.row <= 1) std::erase(crossing.in->rows, row);
    ++flight.called_off;
    if (flight.message.row == 0) {
      flights_.release(row);
    } else {
      schedule(end, row);
    }
    return flights;
  }
  void called_off(std::uint32_t slot) override {
    SharedFlight& flight = flights_[slot];
    ++flight.called_off;
    flight.is_through = false;
    flight.at_port = true;
    flight.crossing.speed = flight.port_speed;
    flight.crossing.service = time_on(*flight.port_speed, flight.message);
  }

  void leaves_rings(std::uint32_t slot, Time begin) override {
    SharedFlight& flight = flights_[slot];
    Crossing& crossing = flight.crossing;
    crossing.tail = std::max(queue_.now(), crossing.tail);
    crossing.head = stores_ ? crossing.tail : begin;
    flight.at_port = false;
    if (flight.at.hops_left == 0) {
      deliver(slot);
    } else {
      wait_for_next(slot, flight.message, flight.at);
    }
  }

  void handle(std::uint64_t argument) override {
    const auto slot = static_cast<std::uint32_t>(argument);
    if (flights_[slot].called_off != argument >> 32) return;
    if (flights_[slot].is_through) {
      deliver(slot);
      return;
    }
    if (WayIn* const in = flights_[slot].crossing.in; in != nullptr && !in->rows.empty()) book_rows(*in);
    reach(slot);
  }

  // What is under way, and the links; of flights everything but what follows from the rest. Those on their
  // last link, once they have it, are events of their receivers.
  bool add_state(StateDigest& state) const override {
    const Time now = queue_.now();
    Time floor = now;
    const auto described = [&](const SharedFlight& flight) {
      const Message& message = flight.message;
      const Digest told = labels_.describe(message.target, message.argument);
      return digest_of(message.source, message.destination, message.bytes.value, message.dimension,
                       std::bit_cast<std::uint32_t>(message.share), message.sender,
                       labels_.label(message).parts[2], told.low, told.high);
    };
    flights_.for_each([&](const SharedFlight& flight) {
      if (flight.at_port) return;
      const Digest what = described(flight);
      floor = std::min(floor, flight.crossing.head);
      state.add('f', what.low, what.high, flight.is_last, flight.is_through, flight.at.rank,
                flight.at.dimension, flight.at.hops_left, flight.at.at_switch,
                flight.crossing.head.value - now.value, flight.crossing.tail.value - now.value,
                flight.message.row);
    });
    if (!ports_.empty()) {
      const auto at_port = [&](std::uint32_t slot) {
        const Position& beyond = flights_[slot].beyond_port;
        const Digest what = described(flights_[slot]);
        return digest_of(what.low, what.high, beyond.rank, beyond.dimension, beyond.hops_left);
      };
      ports_.add_state(state, at_port, [&](Time begun) { floor = std::min(floor, begun); });
    }
    if (rings_) {
      const auto in_rings = [&](std::uint32_t slot) {
        const SharedFlight& flight = flights_[slot];
        const Digest what = described(flight);
        return digest_of(what.low, what.high, flight.at.rank, flight.at.dimension, flight.at.hops_left,
                         std::max(Time(0), flight.crossing.tail - now).value);
      };
      rings_->add_state(state, in_rings, [&](Time begun) { floor = std::min(floor, begun); });
    }
    for (std::size_t number = 0; number < ways_in_.size(); ++number)
      ways_in_[number].intake.add_state(state, number, floor, now);
    links_.add_state(state, floor, now);
    return true;
  }

  // What has reached a link in this round crosses it now.
  void round_over() override {
    round_time_ = std::max(round_time_, queue_.now());
    if (!reaching_.empty()) cross_links();
    if (rings_) [[unlikely]]
      rings_->round_over();
  }

 private:
  void reach(std::uint32_t slot) {
    Link& link = *flights_[slot].crossing.link;
    if (link.round != round_) {
      link.round = round_;
      link.meeting = 0;
    }
    // Sorting is left out where nobody meets: in most rounds every link is reached by one message.
    any_meet_ = ++link.meeting > 1 || any_meet_;
    reaching_.push_back(slot);
  }

  void cross_links() {
    if (any_meet_) order_those_that_meet();
    for (const std::uint32_t slot : reaching_) {
      SharedFlight& flight = flights_[slot];
      if (flight.port != kNoFairPort) {
        if (flight.port == kRings) {
          enter_rings(slot);
          continue;
        }
        flight.beyond_port = flight.at;
        enter_port(slot);
        continue;
      }
      cross(flight.crossing, flight.message);
      if (flight.is_last) {
        deliver(slot);
      } else {
        wait_for_next(slot, flight.message, flight.at);
      }
    }
    reaching_.clear();
    any_meet_ = false;
    ++round_;
  }

  // Over a link of a message's way.
  struct Hop {
    Link* link = nullptr;
    const LinkSpeed* speed = nullptr;
    WayIn* in = nullptr;
    std::uint32_t port = kNoFairPort;
  };
  struct FirstHops {
    Hop first, second;  // the second without a link on a way of one
    Position beyond_first, beyond;
  };

  // The receiver may send, and the pool grow. In line for those that every message passes.
  [[gnu::always_inline]] void deliver(std::uint32_t slot) {
    const SharedFlight& flight = flights_[slot];
    const Time arrival = flight.crossing.tail;
    const std::uint32_t target = flight.message.target;
    const std::uint64_t told = flight.message.argument;
    flights_.release(slot);
    // An event would come in a later round of this moment.
    if (arrival == queue_.now()) {
      queue_.handler(target).handle(told);
    } else {
      queue_.schedule(arrival, target, told);
    }
  }

  void schedule(Time time, std::uint32_t slot) {
    queue_.schedule(time, target_, std::uint64_t{flights_[slot].called_off} << 32 | slot);
  }

  // kNoFairPort of links that lead to a rank or carry one sender's messages only.
  std::uint32_t port_of(const LinkId& id, Link& link) {
    if (!has_ports_[id.dimension] || topology_.leads_in(id)) [[likely]]
      return kNoFairPort;
    if (link.shared == 0) link.shared = ports_.open(link) + 1;
    return link.shared - 1;
  }
  // Nothing of links that lead away from a rank or carry one sender's messages only.
  WayIn* way_in_of(const LinkId& id, Link& link) {
    if (!has_ports_[id.dimension] || !topology_.leads_in(id)) [[likely]]
      return nullptr;
    if (link.shared == 0) {
      ways_in_.emplace_back();
      link.shared = static_cast<std::uint32_t>(ways_in_.size());
    }
    return &ways_in_[link.shared - 1];
  }

  // Where nobody else is at its source's port, and times are those of this world.
  bool may_go_as_row(const Message& message, const FirstHops& way) {
    const Time service = time_on(*way.first.speed, message);
    const Time all =
        later(saturating_multiply(service, message.row), saturating_multiply(way.first.speed->latency, 2));
    return service > Time(0) && later(std::max(queue_.now(), way.first.link->free), all) < kEndOfTime &&
           ports_.is_left_to(message.sender, way.first.port);
  }

  // A message of a row as a flight of its own.
  std::uint32_t one_of_row(std::uint32_t row, std::uint32_t number) {
    const std::uint32_t slot = flights_.take();
    SharedFlight& flight = flights_[slot];
    const std::uint32_t called_off = flight.called_off;
    flight = flights_[row];
    flight.called_off = called_off;
    flight.message.order += number;
    flight.message.row = 1;
    flight.crossing.head += flight.crossing.service * number;
    flight.crossing.tail = flight.crossing.head + flight.crossing.service;
    return slot;
  }

  // The first messages of a row, whom nobody has met at their receiver's link.
  void book_of_row(SharedFlight& flight, std::uint32_t messages) {
    Crossing& crossing = flight.crossing;
    Message& message = flight.message;
    crossing.in->intake.book_row(message.sender, crossing.head, crossing.service, messages);
    crossing.link->busy = later(crossing.link->busy, saturating_multiply(crossing.service, messages));
    crossing.link->bytes = saturating_add(crossing.link->bytes, saturating_multiply(message.bytes, messages));
    crossing.head += crossing.service * messages;
    message.order += messages;
    message.row -= messages;
    queue_.handler(message.target).handle_times(message.argument, messages);
  }

  // When somebody reaches the link. What has come there in a row before that was there first; what comes in
  // this very round is met. (What moves over a link is an event that was scheduled before its moment, and so
  // of the first round of it.)
  void book_rows(WayIn& in) {
    const Time now = queue_.now();
    const bool is_first_round = round_time_ < now;
    for (const std::uint32_t row : in.rows) {
      const Crossing& crossing = flights_[row].crossing;
      const Time service = crossing.service, first = crossing.head + service + crossing.speed->latency;
      if (first > now) break;
      const std::int64_t there = (now - first).value / service.value + 1;
      const bool meets = is_first_round && first + service * (there - 1) == now;
      const auto before = static_cast<std::uint32_t>(
          std::min<std::int64_t>(meets ? there - 1 : there, flights_[row].message.row - 1));
      if (before > 0) book_of_row(flights_[row], before);
      // The last one of a row has its event.
      if (!meets || flights_[row].message.row == 1) continue;
      reach(one_of_row(row, 0));
      SharedFlight& rest = flights_[row];
      rest.crossing.head += service;
      ++rest.message.order;
      --rest.message.row;
    }
    std::erase_if(in.rows, [&](std::uint32_t row) { return flights_[row].message.row == 1; });
  }

  void enter_port(std::uint32_t slot) {
    SharedFlight& flight = flights_[slot];
    Crossing& crossing = flight.crossing;
    const Message& message = flight.message;
    crossing.link->busy = later(crossing.link->busy, saturating_multiply(crossing.service, message.row));
    crossing.link->bytes =
        saturating_add(crossing.link->bytes, saturating_multiply(message.bytes, message.row));
    flight.port_speed = crossing.speed;
    flight.is_last = flight.is_through = false;
    flight.at_port = true;
    ports_.join(flight.port,
                {slot, message.sender, crossing.head, crossing.tail, crossing.service, message.row});
  }

  // Over all links of rings in a row at once, but where nodes pass on whole messages. From where rings that
  // are shared are all that lies behind, messages of one sender wait for those to the same place.
  void enter_rings(std::uint32_t slot) {
    SharedFlight& flight = flights_[slot];
    const Message& message = flight.message;
    Crossing& crossing = flight.crossing;
    Time latency;
    do {
      const LinkId id = topology_.advance(message, flight.at);
      Link& link = links_.at(id);
      crossing.speed = &links_.speed(id);
      crossing.service = time_on(*crossing.speed, message);
      link.busy = later(link.busy, crossing.service);
      link.bytes = saturating_add(link.bytes, message.bytes);
      latency = later(latency, crossing.speed->latency);
      rings_->take(link, crossing.speed->bandwidth);
    } while (!stores_ && flight.at.hops_left > 0 && leads_into_rings(message, flight.at));
    crossing.tail = later(crossing.tail, latency);
    flight.is_last = flight.is_through = false;
    flight.at_port = true;
    FluidRings::Passage passage{slot, message.sender, message.bytes};
    if (only_rings_until(message, flight.at.dimension))
      passage.ends =
          pair_key(static_cast<std::uint32_t>(message.source), static_cast<std::uint32_t>(flight.at.rank));
    rings_->enter(passage, later(queue_.now(), latency));
  }
  bool leads_into_rings(const Message& message, Position at) const {
    return has_rings_[topology_.advance(message, at).dimension];
  }
  // Whether a message has passed none but rings, so that its source and its place tell the whole way. (Behind
  // other links two messages may come to one place from one rank, and to two from another that folding takes
  // for it.)
  bool only_rings_until(const Message& message, std::uint32_t last) const {
    for (std::uint32_t d = 0; d < last; ++d) {
      if (message.dimension == kAllDimensions && !passes_others(topology_.dimension(d)) &&
          topology_.coordinate(message.source, d) != topology_.coordinate(message.destination, d))
        return false;
    }
    return true;
  }

  Hop hop_on(const Message& message, Position& at) {
    if (rings_ && leads_into_rings(message, at)) [[unlikely]] {
      Position beyond = at;
      const LinkId id = topology_.advance(message, beyond);
      return {&links_.at(id), &links_.speed(id), nullptr, kRings};
    }
    const LinkId id = topology_.advance(message, at);
    Link& link = links_.at(id);
    return {&link, &links_.speed(id, message), way_in_of(id, link), port_of(id, link)};
  }

  void find_first_hops(const Message& message, FirstHops& found) {
    found.beyond_first = topology_.start(message);
    found.first = hop_on(message, found.beyond_first);
    found.second = {};
    found.beyond = found.beyond_first;
    if (found.beyond.hops_left > 0 && found.first.port != kRings)
      found.second = hop_on(message, found.beyond);
  }

  void begin(Crossing& crossing, const Hop& hop, const Message& message) {
    crossing.link = hop.link;
    crossing.in = hop.in;
    crossing.speed = hop.speed;
    crossing.service = time_on(*hop.speed, message);
    crossing.head = crossing.tail = queue_.now();
    cross(crossing, message);
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
  void cross(Crossing& crossing, const Message& message) {
    Link& link = *crossing.link;
    const Time latency = crossing.speed->latency;
    Time begin = std::max(crossing.head, link.free);
    Time end = std::max(later(begin, crossing.service), crossing.tail);
    if (crossing.in != nullptr) [[unlikely]] {
      const Intake::Served served =
          crossing.in->intake.book(message.sender, crossing.head, crossing.tail, crossing.service);
      begin = served.begin;
      end = served.end;
    } else {
      link.free = end;
    }
    link.busy = later(link.busy, crossing.service);
    link.bytes = saturating_add(link.bytes, message.bytes);
    crossing.tail = later(end, latency);
    crossing.head = stores_ ? crossing.tail : later(begin, latency);
  }

  void wait_for_next(std::uint32_t slot, const Message& message, Position& at) {
    const Hop hop = hop_on(message, at);
    wait_for(slot, message, hop, at.hops_left == 0);
  }

  // What may be called off before its last byte has left must not enter rings earlier.
  void wait_behind_port(std::uint32_t slot, const Hop& hop) {
    SharedFlight& flight = flights_[slot];
    if (hop.port == kRings) [[unlikely]]
      flight.crossing.head = flight.crossing.tail;
    wait_for(slot, flight.message, hop, flight.at.hops_left == 0);
  }

  // A last hop needs no event of its own when the link turns out to be free: it is reserved at the moment of
  // arrival. All messages of a link come through here with the same latency, so that they are served in the
  // order in which they reached it.
  void wait_for(std::uint32_t slot, const Message& message, const Hop& hop, bool is_last) {
    SharedFlight& flight = flights_[slot];
    Crossing& crossing = flight.crossing;
    const LinkSpeed& speed = *hop.speed;
    crossing.link = hop.link;
    if (speed.bandwidth != crossing.speed->bandwidth) crossing.service = time_on(speed, message);
    crossing.speed = &speed;
    crossing.in = hop.in;
    flight.port = hop.port;
    flight.is_last = is_last && hop.port == kNoFairPort;
    Time time = crossing.tail;
    if (flight.is_last) {
      time = later(std::max(later(crossing.head, crossing.service), crossing.tail), speed.latency);
    } else if (hop.port == kRings) [[unlikely]] {
      time = std::max(queue_.now(), crossing.head);
    }
    schedule(time, slot);
  }

  std::uint32_t target_;
  Slots<SharedFlight> flights_;  // addressed by event arguments
  LatestWays<FirstHops> first_hops_;
  const FirstHops* sending_ = nullptr;   // of the flight that is entering a port from its source,
  std::uint32_t sent_ = 0;               // and its number
  bool stores_;                          // whole messages, at every node between
  std::vector<std::uint32_t> reaching_;  // flights at the near end of their link
  std::uint32_t round_ = 1;
  bool any_meet_ = false;
  FairPorts ports_;
  std::optional<FluidRings> rings_;          // that several senders use, if there are any
  std::vector<char> has_ports_, has_rings_;  // per dimension: that several senders use
  std::vector<char> keeps_rows_;             // per dimension
  std::deque<WayIn> ways_in_;
  Time round_time_ = Time(-1);  // of the latest moment that had a round
};

// The receiver's own event is all that a message takes.
class AnalyticalUnshared final : public AnalyticalBase {
 public:
  using AnalyticalBase::AnalyticalBase;

  Time send(const Message& message) override {
    ++messages_;
    Time latency, service;
    topology_.for_each_link(message, [&](const LinkId& id, const Position& /*beyond*/) {
      const LinkSpeed& speed = links_.speed(id, message);
      const Time here = time_on(speed, message);
      Link& link = links_.at(id);
      link.busy = later(link.busy, here);
      link.bytes = saturating_add(link.bytes, message.bytes);
      // Cut through: latencies of all links, and the bytes once, over the slowest.
      latency = later(latency, speed.latency);
      service = std::max(service, here);
    });
    const Time arrival = later(later(queue_.now(), latency), service);
    if (message.target != kNobody) queue_.schedule(arrival, message.target, message.argument);
    return arrival;
  }

  // Its messages are events of their receivers.
  bool add_state(StateDigest&) const override { return true; }
};

}  // namespace

std::unique_ptr<Network> make_analytical(const NetworkSetup& setup, const ParameterValues& values) {
  return std::make_unique<Analytical>(setup, values.choice("switching") == "store-and-forward",
                                      values.choice("sharing") == "fair");
}

std::unique_ptr<Network> make_analytical_unshared(const NetworkSetup& setup, const ParameterValues&) {
  return std::make_unique<AnalyticalUnshared>(setup);
}

}  // namespace armilla
