// Switches: shared buffers with priority flow control (IEEE 802.1Qbb) and ECN marking, or that drop, or that
// cut packets to their headers, as the transport expects. Eight queues a port; the first one goes before all
// others and cannot be paused, the others take turns.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/huge_pages.h"
#include "network/packet/failures.h"
#include "network/packet/flows.h"

namespace armilla::packets {

// What a switch keeps per port and priority.
struct alignas(32) Shares {
  std::uint32_t arrived = 0;   // bytes held that came in here, but those in headroom
  std::uint32_t headroom = 0;  // bytes held in headroom
  std::uint32_t leaving = 0;   // bytes held that leave here
  Queue queue;                 // of packets that leave here
  bool pausing = false;        // the peer was told to be silent
};

struct Switch {
  std::uint32_t buffer_left = 0;  // beyond reserves and headroom
  std::uint32_t shared_used = 0;
  std::uint32_t calm = 0;  // no port pauses its peer as long as each holds less of what came in there
  bool joins = false;      // what shares no port shares its buffer: it came near to pausing a peer
};

class Switches {
 public:
  // Throws Error for buffers that are too small.
  Switches(Core& core, Links& links, const WayFinder& ways, const Flows& flows, Losses& losses);

  Switch& operator[](std::uint32_t node) { return switches_[node]; }
  const Switch& operator[](std::uint32_t node) const { return switches_[node]; }
  using PortShares = std::array<Shares, kPriorities>;
  PortShares& shares(std::uint32_t port) { return shares_[port]; }
  const PortShares& shares(std::uint32_t port) const { return shares_[port]; }
  // Whether what came in at a switch's port may soon make it pause its peer, or does.
  bool is_crowded(const Port& port, const Shares& in) const {
    return in.pausing || in.headroom > 0 || in.arrived >= kReserve + switches_[port.node].calm;
  }

  // A packet has arrived at one.
  void forward(std::uint32_t packet);
  // Sends what is next at the port, if it is free.
  void serve(std::uint32_t port);
  // What the port sent has left: telemetry tells of it as it is now (Traits::told_when_sent).
  void tell_again(std::uint32_t port);
  // The port's link has failed.
  void drop_queues(std::uint32_t port);

 private:
  void leave(std::uint32_t port, std::uint32_t packet, std::uint8_t queue);
  void pause_peer(std::uint32_t port, int priority, bool pause);
  bool trim(std::uint32_t packet, std::uint32_t exit);
  bool is_beyond_port_queue(std::int64_t held);  // TCP over ports with queues of their own
  std::uint32_t threshold(const Port& port) const {
    const Switch& here = switches_[port.node];
    return std::min((here.buffer_left - here.shared_used) >> port.threshold_shift, most_before_pause_);
  }

  // Beyond a port's own reserve, whatever room there is; and how much less lets the peer go on.
  const std::uint32_t most_before_pause_, resume_offset_;
  Core& core_;
  Links& links_;
  const WayFinder& ways_;
  const Flows& flows_;
  Losses& losses_;
  const bool watches_crowds_;
  HugeVector<PortShares> shares_;                                  // per port, of switches
  std::vector<Switch> switches_;                                   // per node
  std::int64_t trim_limit_ = 0;                                    // bytes of data at a port
  std::int64_t port_limit_ = INT64_MAX, port_random_ = INT64_MAX;  // bytes: all is dropped above, a tenth
  std::uint64_t coins_;                                            // thrown for who is trimmed
};

}  // namespace armilla::packets
