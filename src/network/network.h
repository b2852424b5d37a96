// Networks: messages in, deliveries out. One table of models, ASTRA-sim's included; each a source or a room.
//
// A message names its receiver, a handler of the run's event queue. A network schedules its own events on
// that queue and calls the receiver at the moment all of the message has arrived. It owns nothing of the run
// but the messages in flight. What it promises is in its row, and used: everything else is not assumed.
// Native networks serve messages that reach a link in the same round of events (event/event_queue.h) in the
// order of their labels, hops left and sources, whatever the order of scheduling.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "event/event_queue.h"
#include "event/state_digest.h"
#include "ir/formats/system_layer.h"
#include "ir/machine.h"
#include "ir/play_time.h"
#include "ir/result.h"
#include "ir/what_if.h"
#include "network/message_links.h"

namespace armilla {

// Let the network route over every dimension in which the ends differ.
inline constexpr std::uint32_t kAllDimensions = UINT32_MAX;

// No tree: a message goes from one end to the other, or in a dimension to its switch.
inline constexpr std::uint32_t kNoTree = UINT32_MAX;

// No handler: nobody is told of the arrival.
inline constexpr std::uint32_t kNobody = UINT32_MAX;

struct Message {
  std::int32_t source = 0, destination = 0;  // ranks, different
  Bytes bytes;                               // may be 0: pure latency
  std::uint32_t dimension = kAllDimensions;  // the one in which the ends differ, when the sender knows
  std::uint32_t order = 0;                   // the sender's own; for labels
  std::uint32_t target = kNobody;            // the event queue's handler that is told of the arrival,
  std::uint32_t copies = 1;    // links carry it so many times: it stands for those of other ranks
  std::uint64_t argument = 0;  // what the handler is told
  Leg leg = Leg::whole;        // in its dimension, a Switch
  std::uint16_t sender = 0;    // of a rank's: its messages wait for each other, and share links with others'
  // In a dimension whose members cables join: what the message gets of `Dimension::bandwidth`, as that of a
  // ring that takes several ways at once; 0: what joins its ends.
  float share = 0;
  std::uint32_t tree =
      kNoTree;  // of switches (Network::switch_tree), whose root is where its leg ends or begins
  // So many messages alike, one behind the other, of ascending `order`, to ranks that one stands for
  // (Network::keeps_rows). The target is told of each: of the last when it arrives, of others by then.
  std::uint32_t row = 1;
};

// What a message is, whatever rank of a class sends it: equal for messages that ranks of a class send at the
// same point of their programs.
struct MessageLabel {
  std::array<std::uint64_t, 3> parts = {};
  auto operator<=>(const MessageLabel&) const = default;
};

// Who knows what messages under way are.
class MessageLabels {
 public:
  virtual ~MessageLabels() = default;
  virtual MessageLabel label(const Message&) const { return {}; }
  // What `target` is told, seen from where its ranks are now: equal when the same happens again.
  virtual Digest describe(std::uint32_t target, std::uint64_t argument) const {
    return digest_of(target, argument);
  }
};

// What was carried up to a moment.
struct NetworkSums {
  struct Carried {
    Time busy;
    Bytes bytes;
    Time shared{};             // LinkUse::shared
    std::int32_t senders = 0;  // LinkUse::senders; no sum
  };
  std::vector<Carried> links;  // in an order of the network's own, such as that of their first use
  std::int64_t messages = 0;
};

struct NetworkPromises {
  // A message's delay depends on no other message: `send` knows when it arrives.
  bool independent_delays = false;
  // Messages go the way over the dimensions of a machine that network/topology.h says, and delay each other
  // only on links that they share: what folding relies on. They may end and begin at a switch (Message::leg),
  // and take cables (Message::share).
  bool over_dimensions = false;
  // Messages may end and begin at the root of a tree of switches (Message::tree).
  bool grows_trees = false;
  // Plays every packet or flit, and says beforehand how long that takes (Network::foreseen_time).
  bool plays_bytes = false;
  bool reduces_in_switches() const { return over_dimensions || grows_trees; }
};

// What will be sent, as foreseen: of all simulated ranks. 0: nothing is.
struct Foreseen {
  double messages = 0, bytes = 0;
};

// What a network is made for.
struct NetworkSetup {
  const Machine& machine;
  EventQueue& queue;
  const MessageLabels& labels;
  // Per rank, the one whose links stand for its own (sim/plan/rank_classes.h); empty: every rank for itself.
  std::span<const std::int32_t> stands_for = {};
  std::span<const SlowLinks> slow_links = {};
  std::span<const DamagedLink> damage = {};
  // The machine in ASTRA-sim's own numbers, for its networks.
  std::span<const StreamDimension> stream_dimensions = {};
  // For the network packet, where files of ns-3 say what hosts and switches do (SystemLayer::packets).
  std::optional<PacketSettings> packets = {};
  // Networks refuse what nobody would wait for.
  Foreseen foreseen = {};
  // Bit d: links of dimension d carry messages of several senders (Message::sender).
  std::uint32_t shared_dimensions = 0;
  // As `stands_for`, of links, for networks that have MessageLinks; must outlive the network.
  const LinkClasses& link_classes = each_link_itself();
};

class Network {
 public:
  virtual ~Network() = default;
  // Returns when the message arrives, or kEndOfTime where that depends on others. Only where it does not may
  // nobody be the target.
  virtual Time send(const Message& message) = 0;
  // Whether messages within the dimension may be sent as a row. What that changes is the work that they make.
  virtual bool keeps_rows(std::uint32_t dimension) const {
    static_cast<void>(dimension);
    return false;
  }
  // The number of the trees of switches among members, for a collective of this kind. Of networks that grow
  // trees. Throws Error where no switch leads to all members.
  virtual std::uint32_t switch_tree(std::span<const std::int32_t> members, CollectiveKind kind) {
    static_cast<void>(members), static_cast<void>(kind);
    return kNoTree;
  }
  // Counts a message on the links of its way as if it had been sent so many times; takes no time and is never
  // delivered. Of networks on which collectives are memoised and ranks folded.
  virtual void count(const Message& /*message*/, std::int64_t /*times*/) {}
  // Everything that decides what will happen on its links, seen from now: equal when the same will happen
  // again. Its own events are part of that. False where the network does not know: then runs are not folded
  // in time (sim/fold/time_fold.h).
  virtual bool add_state(StateDigest& state) const {
    static_cast<void>(state);
    return false;
  }
  // Of networks that know their state.
  virtual NetworkSums sums() const { return {}; }
  // What lies between two sums, so many times more.
  virtual void repeat(const NetworkSums& from, const NetworkSums& until, std::int64_t times) {
    static_cast<void>(from), static_cast<void>(until), static_cast<void>(times);
  }
  // Links that carried something, the busiest first.
  virtual std::vector<LinkUse> links() const = 0;
  virtual std::int64_t messages() const = 0;
  // Of these, how many have yet to arrive, where most of the work is done on their way.
  virtual std::int64_t messages_under_way() const { return 0; }
  // Of what was foreseen (NetworkSetup), where that goes by the bytes.
  virtual PlayTime foreseen_time() const { return {}; }
  // What it chose for itself, a sentence each.
  virtual std::vector<std::string> notes() const { return {}; }
  // What rank 0 sent, per dimension; empty where that is not counted.
  virtual std::vector<Bytes> sent_by_first_rank() const { return {}; }
};

// For Network::links. Those that were busy for as long stay in their order, the same in every report.
void put_busiest_first(std::vector<LinkUse>& uses);

struct NetworkInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  NetworkPromises promises;
  std::unique_ptr<Network> (*make)(const NetworkSetup& setup, const ParameterValues& values);
  // What its messages use of its links, for folding.
  std::unique_ptr<MessageLinks> (*links)(const Machine& machine, const WhatIf& what_if,
                                         const ParameterValues& values) = nullptr;
};
// Those that a native study may choose from.
std::span<const NetworkInfo> networks();
// Of a native network. Throws Error for an unknown one.
NetworkPromises promises_of(const ComponentChoice& network);
// Throws Error for one that is unknown, and for parameters that it does not have.
void check_network(const ComponentChoice& network);

// Throws Error for an unknown network, unknown parameters or bad values, and for damaged links on a network
// that knows dimensions only.
std::unique_ptr<Network> make_network(const ComponentChoice& choice, const NetworkSetup& setup);
// What the profile runs on: a native network that takes its place, or, without a name, its own.
std::unique_ptr<Network> make_astra_network(Semantics semantics, const ComponentChoice& instead,
                                            const NetworkSetup& setup);

}  // namespace armilla
