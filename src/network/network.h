// Networks: messages in, deliveries out. One table of models; each is one source file.
//
// A network schedules its own events on the run's queue and calls the sink at the moment a message has wholly
// arrived. It owns nothing of the run but the messages in flight. Messages that reach a link in the same
// round of events (event/event_queue.h) are served in the order of their labels, hops left and sources,
// whatever the order of scheduling.
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
#include "ir/machine.h"
#include "ir/result.h"
#include "ir/what_if.h"

namespace armilla {

// Let the network route over every dimension in which the ends differ.
inline constexpr std::uint32_t kAllDimensions = UINT32_MAX;

struct Message {
  std::int32_t source = 0, destination = 0;  // ranks, different
  Bytes bytes;                               // may be 0: pure latency
  std::uint32_t dimension = kAllDimensions;  // the one in which the ends differ, when the sender knows
  std::uint32_t order = 0;                   // the sender's own, as the tag; for labels
  std::uint64_t tag = 0;
};

// What a message is, whatever rank of a class sends it: equal for messages that ranks of a class send at the
// same point of their programs.
struct MessageLabel {
  std::array<std::uint64_t, 3> parts = {};
  auto operator<=>(const MessageLabel&) const = default;
};

class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void delivered(const Message& message) = 0;
  virtual MessageLabel label(const Message&) const { return {}; }
};

struct NetworkPromises {
  // A message's delay depends on no other message.
  bool independent_delays = false;
  // Messages go the way network/topology.h says, and delay each other only on links that they share. What
  // folding relies on.
  bool meets_on_links_only = false;
};

// What a network is made for.
struct NetworkSetup {
  const Machine& machine;
  EventQueue& queue;
  MessageSink& sink;
  // Per rank, the one whose links stand for its own (sim/fold/rank_classes.h); empty: every rank for itself.
  std::span<const std::int32_t> stands_for = {};
  std::span<const SlowLinks> slow_links = {};
};

class Network {
 public:
  virtual ~Network() = default;
  virtual void send(const Message& message) = 0;
  // Counts a message on the links of its way as if it had been sent so many times; takes no time and is never
  // delivered.
  virtual void count(const Message& message, std::int64_t times) = 0;
  // Links that carried something, the busiest first.
  virtual std::vector<LinkUse> links() const = 0;
  virtual std::int64_t messages() const = 0;
};

struct NetworkInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  NetworkPromises promises;
  std::unique_ptr<Network> (*make)(const NetworkSetup& setup, const ParameterValues& values);
};
std::span<const NetworkInfo> networks();

// Throws Error for an unknown network, unknown parameters or bad values.
std::unique_ptr<Network> make_network(const ComponentChoice& choice, const NetworkSetup& setup);

}  // namespace armilla
