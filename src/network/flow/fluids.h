// Messages under way as fluids: each waits until its first byte is there, then moves over its links at its
// max-min fair rate (network/flow/max_min.h). Those of one connection move one after the other, in the order
// in which their first bytes came.
//
// Rates change only between rounds, once for all that began or ended in one, so that what happens depends
// neither on the time nor on the order of events within a moment. Times are rounded to picoseconds. Cost: two
// events a message, and the working out of rates wherever one begins or ends, but where the next one of a
// connection takes the same way.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "event/event_queue.h"
#include "event/state_digest.h"
#include "network/flow/max_min.h"

namespace armilla {

class Fluids final : public EventHandler {
 public:
  static constexpr std::uint32_t kNoConnection = UINT32_MAX;

  class Client {
   public:
    virtual ~Client() = default;
    // Puts those that began in one round in the order in which they are told, where it matters.
    virtual void sort(std::span<std::uint32_t>) const {}
    // Whether that call changes links.
    virtual bool chooses() const { return false; }
    // It began to move in the round that ends: until the call returns, its links may still be changed.
    virtual void begins(std::uint32_t fluid) = 0;
    // All of it is through. It is remembered until the client closes it.
    virtual void is_through(std::uint32_t fluid) = 0;
  };

  Fluids(EventQueue& queue, MaxMin rates, Client& client)
      : rates_(std::move(rates)), queue_(queue), client_(client), target_(queue.add_handler(*this)) {}
  Fluids(const Fluids&) = delete;
  Fluids& operator=(const Fluids&) = delete;

  // One more; kNoConnection is none, whose messages wait for nobody.
  std::uint32_t add_connection();
  // The number of a message whose first byte is there at `time`, not before now.
  std::uint32_t open(std::span<const MaxMin::Use> uses, Bytes bytes, std::uint32_t connection, Time time);
  void close(std::uint32_t fluid) { rates_.close(fluid); }

  // When the first byte of one that is through began to move.
  Time begun(std::uint32_t fluid) const { return flights_[fluid].begun; }
  MaxMin& rates() { return rates_; }
  const MaxMin& rates() const { return rates_; }

  void handle(std::uint64_t argument) override;
  // Whoever observes the rounds says so when nothing begins or ends any more in one.
  void round_over() {
    if (!begun_.empty()) tell_begun();
    if (changed_) work_out_rates();
  }

  // What is under way, and the events; `described(fluid)` is a digest of what it is and where it goes on.
  // Events that were put off are counted, too, when they are due.
  template <class Described>
  void add_state(StateDigest& state, const Described& described) const;
  // Calls `visit(fluid)`.
  template <class Visit>
  void for_each_moving(const Visit& visit) const {
    for (std::uint32_t fluid = 0; fluid < flights_.size(); ++fluid) {
      if (flights_[fluid].state == State::moving) visit(fluid);
    }
  }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  enum class State : std::uint8_t { waiting, moving, closed };
  struct Flight {
    explicit Flight(std::uint32_t before = 0) : generation(before) {}
    std::uint32_t generation;  // flights that had the number before it
    std::uint32_t connection = kNoConnection;
    std::uint32_t next = kNone;  // that waits for the connection behind it
    Bytes bytes;
    double left = 0;  // bytes, at `since`
    double rate = 0;  // bytes per second, from then on
    Time begun, since;
    Time done;   // at this rate
    Time event;  // when it is looked at again, not after `done`
    State state = State::waiting;
    bool follows = false;  // has its place among the rates from the one before it
  };
  struct Connection {
    std::uint32_t moving = kNone;
    std::uint32_t first = kNone, last = kNone;  // of those whose first bytes are there
  };

  void begin(std::uint32_t fluid, bool follows = false);
  void end(std::uint32_t fluid);
  void tell_begun();
  void expect(std::uint32_t fluid);
  void look_again(std::uint32_t fluid);
  void work_out_rates();

  MaxMin rates_;
  EventQueue& queue_;
  Client& client_;
  std::vector<Connection> connections_;
  std::vector<Flight> flights_;       // by their number among the rates
  std::vector<std::uint32_t> begun_;  // in this round
  std::uint32_t target_;
  bool changed_ = false;
};

template <class Described>
void Fluids::add_state(StateDigest& state, const Described& described) const {
  // What counts are distances from now: two states are alike if all that is to come is, whenever it is.
  const Time now = queue_.now();
  const auto from_now = [&](Time time) { return time == kEndOfTime ? INT64_MAX : (time - now).value; };
  std::vector<bool> has_place(flights_.size());
  const auto add = [&](std::uint32_t fluid, std::int64_t place) {
    const Flight& flight = flights_[fluid];
    const Digest what = described(fluid);
    const bool moves = flight.state == State::moving;
    state.add('f', what.low, what.high, static_cast<int>(flight.state), place,
              std::bit_cast<std::uint64_t>(flight.left), std::bit_cast<std::uint64_t>(flight.rate),
              moves ? from_now(flight.begun) : 0, moves ? from_now(flight.since) : 0,
              moves ? from_now(flight.done) : 0, from_now(flight.event));
  };
  // Places in the line of a connection are told, since numbers of flights are not: those are handed out anew
  // and mean nothing.
  for (const Connection& connection : connections_) {
    std::int64_t place = 0;
    for (std::uint32_t fluid = connection.first; fluid != kNone; fluid = flights_[fluid].next) {
      add(fluid, ++place);
      has_place[fluid] = true;
    }
  }
  for (std::uint32_t fluid = 0; fluid < flights_.size(); ++fluid) {
    if (flights_[fluid].state != State::closed && !has_place[fluid]) add(fluid, 0);
  }
  queue_.for_each_pending([&](const Event& event) {
    if (event.target != target_) return;
    const auto fluid = static_cast<std::uint32_t>(event.argument);
    const Flight& flight = flights_[fluid];
    const bool is_meant = flight.generation == event.argument >> 32 && flight.state != State::closed &&
                          flight.event == event.time;
    if (is_meant) {
      const Digest what = described(fluid);
      state.add('e', what.low, what.high, static_cast<int>(flight.state), from_now(event.time));
    } else {
      state.add('s', from_now(event.time));
    }
  });
}

}  // namespace armilla
