// Networks: messages in, deliveries out. One table of models; each is one source file.
//
// A network schedules its own events on the run's queue and calls the sink at the moment a message has wholly
// arrived. It owns nothing of the run but the messages in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "event/event_queue.h"
#include "ir/machine.h"
#include "ir/result.h"

namespace armilla {

// Let the network route over every dimension in which the ends differ.
inline constexpr std::uint32_t kAllDimensions = UINT32_MAX;

struct Message {
  std::int32_t source = 0, destination = 0;  // ranks, different
  Bytes bytes;                               // may be 0: pure latency
  std::uint32_t dimension = kAllDimensions;  // the one in which the ends differ, when the sender knows
  std::uint64_t tag = 0;                     // the sender's own
};

class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void delivered(const Message& message) = 0;
};

struct NetworkPromises {
  // A message's delay depends on no other message.
  bool independent_delays = false;
  // Messages on one dimension meet only those with the same source or the same destination, in first-come
  // order: what folding of symmetric collectives on the dimension relies on. Rings keep this promise between
  // neighbours only.
  bool contention_at_ends_only = false;
};

class Network {
 public:
  virtual ~Network() = default;
  virtual void send(const Message& message) = 0;
  virtual NetworkPromises promises() const = 0;
  // Links that carried something, the busiest first.
  virtual std::vector<LinkUse> links() const = 0;
  virtual std::int64_t messages() const = 0;
};

struct NetworkInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  std::unique_ptr<Network> (*make)(const Machine& machine, const ParameterValues& values, EventQueue& queue,
                                   MessageSink& sink);
};
std::span<const NetworkInfo> networks();

std::unique_ptr<Network> make_network(const ComponentChoice& choice, const Machine& machine,
                                      EventQueue& queue, MessageSink& sink);

}  // namespace armilla
