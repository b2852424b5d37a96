#include "network/flow/fluids.h"

#include <algorithm>

namespace armilla {

std::uint32_t Fluids::add_connection() {
  connections_.emplace_back();
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

std::uint32_t Fluids::open(std::span<const MaxMin::Use> uses, Bytes bytes, std::uint32_t connection,
                           Time time) {
  const std::uint32_t fluid = rates_.open(uses);
  if (fluid >= flights_.size()) flights_.resize(fluid + 1);
  // Numbers are used again: events of an earlier flight with this one are told apart by the generation.
  Flight& flight = flights_[fluid];
  flight = Flight(flight.generation + 1);
  flight.connection = connection;
  flight.bytes = bytes;
  flight.event = time;
  look_again(fluid);
  return fluid;
}

void Fluids::handle(std::uint64_t argument) {
  const auto fluid = static_cast<std::uint32_t>(argument);
  Flight& flight = flights_[fluid];
  const Time now = queue_.now();
  if (flight.generation != argument >> 32) return;                   // of one before it
  if (flight.state == State::closed || flight.event != now) return;  // it was to be done later, and is not
  if (flight.state == State::waiting) {
    if (flight.connection == kNoConnection || connections_[flight.connection].moving == kNone) {
      begin(fluid);
      return;
    }
    Connection& connection = connections_[flight.connection];
    flight.event = kEndOfTime;
    (connection.first == kNone ? connection.first : flights_[connection.last].next) = fluid;
    connection.last = fluid;
  } else if (flight.done > now) {  // it slowed down since
    // Events are not taken back when a rate falls: the event comes, and is put off.
    expect(fluid);
  } else {
    end(fluid);
  }
}

void Fluids::begin(std::uint32_t fluid, bool follows) {
  Flight& flight = flights_[fluid];
  flight.follows = follows;
  if (flight.connection != kNoConnection) connections_[flight.connection].moving = fluid;
  flight.state = State::moving;
  flight.left = static_cast<double>(flight.bytes.value);
  flight.begun = flight.since = queue_.now();
  begun_.push_back(fluid);
  if (flight.bytes == Bytes(0)) {
    flight.done = queue_.now();
    expect(fluid);
  } else {
    // Its end is known at the end of the round, with its rate.
    flight.event = flight.done = kEndOfTime;
  }
}

void Fluids::tell_begun() {
  client_.sort(begun_);
  for (const std::uint32_t fluid : begun_) {
    client_.begins(fluid);
    Flight& flight = flights_[fluid];
    if (flight.bytes == Bytes(0)) continue;
    if (flight.follows) {
      flight.rate = rates_.rate(fluid);
      flight.done = later(flight.since, from_seconds(flight.left / flight.rate));
      expect(fluid);
      continue;
    }
    rates_.add(fluid);
    changed_ = true;
  }
  begun_.clear();
}

void Fluids::end(std::uint32_t fluid) {
  Flight& flight = flights_[fluid];
  flight.state = State::closed;
  const std::uint32_t next =
      flight.connection == kNoConnection ? kNone : connections_[flight.connection].first;
  const bool follows = next != kNone && flight.bytes > Bytes(0) && flights_[next].bytes > Bytes(0) &&
                       !client_.chooses() && rates_.replace(fluid, next);
  if (flight.bytes > Bytes(0) && !follows) {
    rates_.remove(fluid);
    changed_ = true;
  }
  // The next of the connection goes before the receiver is told: what the receiver sends in answer comes
  // behind it.
  if (flight.connection != kNoConnection) connections_[flight.connection].moving = kNone;
  if (next != kNone) {
    connections_[flight.connection].first = flights_[next].next;
    begin(next, follows);
  }
  client_.is_through(fluid);
}

void Fluids::work_out_rates() {
  changed_ = false;
  const Time now = queue_.now();
  for (const std::uint32_t fluid : rates_.solve()) {
    Flight& flight = flights_[fluid];
    const double rate = rates_.rate(fluid);
    if (rate == flight.rate) continue;
    flight.left = std::max(0.0, flight.left - flight.rate * in_seconds(now - flight.since));
    flight.since = now;
    flight.rate = rate;
    flight.done = later(now, from_seconds(flight.left / rate));
    // Only a sooner end needs a new event; a later one is found when the old event comes.
    if (flight.done < flight.event) expect(fluid);
  }
}

void Fluids::expect(std::uint32_t fluid) {
  flights_[fluid].event = flights_[fluid].done;
  look_again(fluid);
}

void Fluids::look_again(std::uint32_t fluid) {
  const Flight& flight = flights_[fluid];
  queue_.schedule(flight.event, target_, std::uint64_t{flight.generation} << 32 | fluid);
}

}  // namespace armilla
