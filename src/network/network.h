// Networks: messages in, deliveries out. One table of models, ASTRA-sim's included; each is one source file.
//
// A message names its receiver, a handler of the run's event queue. A network schedules its own events on that
// queue and calls the receiver at the moment all of the message has arrived. It owns nothing of the run but the
// messages in flight. What it promises is in its row, and used: everything else is not assumed. Native networks
// serve messages that reach a link in the same round of events (event/event_queue.h) in the order of their
// labels, hops left and sources, whatever the order of scheduling.
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
#include "ir/formats/system_layer.h"
#include "ir/machine.h"
#include "ir/result.h"
#include "ir/what_if.h"

namespace armilla {

// Let the network route over every dimension in which the ends differ.
inline constexpr std::uint32_t kAllDimensions = UINT32_MAX;

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
};

// What a message is, whatever rank of a class sends it: equal for messages that ranks of a class send at the
// same point of their programs.
struct MessageLabel {
  std::array<std::uint64_t, 3> parts = {};
  auto operator<=>(const MessageLabel&) const = default;
};

// Who knows the labels of messages under way.
class MessageLabels {
 public:
  virtual ~MessageLabels() = default;
  virtual MessageLabel label(const Message&) const { return {}; }
};

struct NetworkPromises {
  // A message's delay depends on no other message: `send` knows when it arrives.
  bool independent_delays = false;
  // Messages go the way network/topology.h says, and delay each other only on links that they share. What
  // folding relies on.
  bool meets_on_links_only = false;
};

// What a network is made for.
struct NetworkSetup {
  const Machine& machine;
  EventQueue& queue;
  const MessageLabels& labels;
  // Per rank, the one whose links stand for its own (sim/fold/rank_classes.h); empty: every rank for itself.
  std::span<const std::int32_t> stands_for = {};
  std::span<const SlowLinks> slow_links = {};
  // The machine in ASTRA-sim's own numbers, for its networks.
  std::span<const StreamDimension> stream_dimensions = {};
};

class Network {
 public:
  virtual ~Network() = default;
  // Returns when the message arrives, or kEndOfTime where that depends on others. Only where it does not may
  // nobody be the target.
  virtual Time send(const Message& message) = 0;
  // Counts a message on the links of its way as if it had been sent so many times; takes no time and is never
  // delivered.
  virtual void count(const Message& message, std::int64_t times) = 0;
  // Links that carried something, the busiest first.
  virtual std::vector<LinkUse> links() const = 0;
  virtual std::int64_t messages() const = 0;
  // What rank 0 sent, per dimension; empty where that is not counted.
  virtual std::vector<Bytes> sent_by_first_rank() const { return {}; }
};

struct NetworkInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  NetworkPromises promises;
  std::unique_ptr<Network> (*make)(const NetworkSetup& setup, const ParameterValues& values);
};
// Those that a native study may choose from.
std::span<const NetworkInfo> networks();
// Of a native network. Throws Error for an unknown one.
NetworkPromises promises_of(const ComponentChoice& network);

// Throws Error for an unknown network, unknown parameters or bad values.
std::unique_ptr<Network> make_network(const ComponentChoice& choice, const NetworkSetup& setup);
// What the profile runs on.
std::unique_ptr<Network> make_astra_network(Semantics semantics, const NetworkSetup& setup);

}  // namespace armilla
