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
  // On Switch and FullyConnected dimensions, and between neighbours of a Ring, messages meet only those of
  // the same source or the same destination, first come first served. Ranks that do the same at the same time
  // then stay together: what folding relies on.
  bool meets_at_ends_only = false;
};

// How many ranks the network carries messages for.
enum class Fold : std::uint8_t {
  none,  // all of them
  all,   // one that stands for all: every source and destination uses that rank's links
};

class Network {
 public:
  virtual ~Network() = default;
  virtual void send(const Message& message) = 0;
  // Links that carried something, the busiest first.
  virtual std::vector<LinkUse> links() const = 0;
  virtual std::int64_t messages() const = 0;
};

struct NetworkInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  NetworkPromises promises;
  std::unique_ptr<Network> (*make)(const Machine& machine, const ParameterValues& values, Fold fold,
                                   EventQueue& queue, MessageSink& sink);
};
std::span<const NetworkInfo> networks();

// Throws Error for an unknown network, unknown parameters or bad values.
std::unique_ptr<Network> make_network(const ComponentChoice& choice, const Machine& machine, Fold fold,
                                      EventQueue& queue, MessageSink& sink);

}  // namespace armilla
