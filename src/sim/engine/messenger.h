// Point-to-point messages: matches sends and receives and tells both ends when they are done.
//
// Matching: the k-th send of (space, source, destination, tag, bytes) with the k-th receive of the same. A
// send is done when its message has arrived, whether or not it is received; a receive when it is posted and
// the message is here. With rendezvous, the receiver first sends `kHandshakeBytes` to the sender, which waits
// for them. Source of these rules: astra-sim 2.x, CommonNetworkApi.cc, Sys::rendezvous_sim_send. Cost: a hash
// look-up per send, receive and arrival.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/slots.h"
#include "event/event_queue.h"
#include "event/state_digest.h"
#include "sim/engine/run_context.h"

namespace armilla {

inline constexpr Bytes kHandshakeBytes = Bytes(8192);

struct Channel {
  std::uint32_t space = 0;  // keeps users with their own tags apart
  std::int32_t source = 0, destination = 0;
  std::uint32_t tag = 0;
  Bytes bytes;
  bool operator==(const Channel&) const = default;
};

class Messenger final : public EventHandler {
 public:
  // Ranks of one class are one to the matching.
  Messenger(const RunContext& context, bool rendezvous);
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  // Notices come at the moment itself, from within the event, never from within these calls.
  void send(const Channel& channel, Notice done);
  void receive(const Channel& channel, Notice done);
  // A message that is not matched: who gets the notice knows what it is.
  void send_unmatched(std::int32_t source, std::int32_t destination, Bytes bytes, Notice arrived) {
    context_.network.send({.source = source,
                           .destination = destination,
                           .bytes = bytes,
                           .order = sent_[static_cast<std::size_t>(source)]++,
                           .target = arrived.target,
                           .argument = arrived.argument});
  }

  void handle(std::uint64_t argument) override;

  // Who waits for what, and what an event's argument means; `told(notice)` describes notices.
  template <class Told>
  void add_state(StateDigest& state, const Told& told) const;
  template <class Told>
  Digest describe(std::uint64_t argument, const Told& told) const {
    const Flight& flight = flights_[argument];
    const Digest channel = describe(flight.channel), notice = told(flight.notice);
    return digest_of(static_cast<int>(flight.kind), channel.low, channel.high, notice.low, notice.high);
  }

  // Messages that have arrived on a channel and are not received yet; who waits for one, by channel and place
  // in its queue.
  std::int64_t arrived(const Channel& channel) const {
    const auto found = messages_.find(matched(channel));
    return found == messages_.end() ? 0 : found->second.arrived;
  }
  template <class Visit>
  void for_each_waiting(const Visit& visit) const {
    for (const auto& [channel, waiting] : messages_) {
      std::int64_t place = 0;
      for (std::uint32_t post = waiting.first; post != kNone; post = posts_[post].next)
        visit(channel, place++, posts_[post].notice);
    }
  }
  // The rank that an event tells of a message that had arrived, or -1.
  std::int32_t late_receiver(std::uint64_t argument) const {
    const Flight& flight = flights_[argument];
    return flight.kind == Kind::late_receive ? flight.channel.destination : -1;
  }

  // What its messages are received by. Of one under way, by the argument it carries: the one that `send` was
  // given, and whose it is.
  std::uint32_t target() const { return target_; }
  std::uint64_t sender_argument(std::uint64_t argument) const { return flights_[argument].notice.argument; }
  std::uint32_t space(std::uint64_t argument) const { return flights_[argument].channel.space; }

 private:
  struct Hash {
    std::size_t operator()(const Channel& channel) const;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  // Those who wait on a channel, in order, as a list in `posts_`; or how many messages wait for them.
  struct Waiting {
    std::uint32_t first = kNone, last = kNone;
    std::int64_t arrived = 0;
  };
  struct Post {
    Notice notice;
    std::uint32_t next = kNone;
  };
  using Matches = std::unordered_map<Channel, Waiting, Hash>;
  enum class Kind : std::uint8_t { message, handshake, late_receive, late_send };
  struct Flight {
    Kind kind = Kind::message;
    Channel channel;
    Notice notice;
  };

  static Digest describe(const Channel& channel) {
    return digest_of(channel.space, channel.source, channel.destination, channel.tag, channel.bytes.value);
  }
  Channel matched(const Channel& channel) const;
  // Returns true when a message is here already and was taken.
  bool post(Matches& matches, const Channel& channel, Notice notice);
  std::optional<Notice> arrive(Matches& matches, const Channel& channel);
  void transmit(const Channel& channel, Notice done);
  void accept(const Channel& channel, Notice done);
  void tell(Notice notice) { context_.queue.handler(notice.target).handle(notice.argument); }

  RunContext context_;
  bool rendezvous_;
  std::uint32_t target_;
  std::vector<std::uint32_t> sent_;  // per rank, how many messages
  Matches messages_, handshakes_;
  Slots<Post> posts_;
  Slots<Flight> flights_;
};

template <class Told>
void Messenger::add_state(StateDigest& state, const Told& told) const {
  for (const Matches* const matches : {&messages_, &handshakes_}) {
    for (const auto& [channel, waiting] : *matches) {
      const Digest which = describe(channel);
      state.add('m', matches == &messages_, which.low, which.high, waiting.arrived);
      std::int64_t place = 0;
      for (std::uint32_t post = waiting.first; post != kNone; post = posts_[post].next) {
        const Digest notice = told(posts_[post].notice);
        state.add('p', matches == &messages_, which.low, which.high, place++, notice.low, notice.high);
      }
    }
  }
}

}  // namespace armilla
