// Links: the ports at their ends, what leaves by them and when it arrives, what is lost on the way, and how
// long ports are paused by those they send to. Both directions of a cable are ports with numbers that differ
// in the last bit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/huge_pages.h"
#include "network/links/link_samples.h"
#include "network/packet/core.h"
#include "network/packet/wire.h"

namespace armilla::packets {

inline constexpr int kPriorities = 8;

struct alignas(64) Port {
  std::uint32_t node = 0;
  std::uint32_t nic = kNone;  // of hosts
  bool at_switch = false, up = true, busy = false;
  std::uint8_t paused = 0;   // bit per priority: told to be silent
  std::uint8_t waiting = 0;  // of switches, bit per priority: packets wait
  std::uint8_t last_served = 0;
  std::uint8_t threshold_shift = 3;  // the share of the free buffer beyond which it pauses: 2^-shift
  const std::int64_t* transmission_ps = nullptr;  // by size
  std::int64_t delay_ns = 0;
  std::int32_t carry_ps = 0;      // of the last transmission, beyond whole nanoseconds
  std::uint32_t sending = kNone;  // of a port that is busy: the packet
  Queue acknowledgements;         // of hosts
  std::uint32_t queued = 0;       // of switches: bytes
  std::uint32_t headroom_limit = 0;
  std::uint32_t loss_stream = kNone;  // into Links::losses_, where what arrives may be lost
  // What is needed less often.
  std::int64_t carried_bytes = 0, busy_ps = 0, frames = 0;
  double loss = 0;
  EcnThresholds ecn;
  std::int64_t rate = 0;
};
static_assert(sizeof(Port) == 128);

class Links {
 public:
  struct Pauses {  // of a port
    std::array<std::int64_t, kPriorities> since_ns = {};
    std::int64_t sum_ns = 0;  // all priorities
  };

  explicit Links(Core& core);

  Port& operator[](std::uint32_t port) { return ports_[port]; }
  const Port& operator[](std::uint32_t port) const { return ports_[port]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ports_.size()); }
  std::uint32_t nics() const { return nics_; }
  std::span<const std::uint32_t> of_node(std::uint32_t node) const {
    return std::span(node_ports_).subspan(first_ports_[node], first_ports_[node + 1] - first_ports_[node]);
  }
  const Pauses& pauses(std::uint32_t port) const { return pauses_[port]; }
  std::int64_t frames() const;

  // Sends the packet by a port that is free; returns until when that takes.
  std::int64_t transmit(std::uint32_t port, std::uint32_t packet);
  // So many bytes wait there now.
  void note_waiting(std::uint32_t port) {
    if (sampler_) sampler_->waits(port, core_.events.now(), ports_[port].queued);
  }
  // Packets that nobody played, from `start_ns` to `end_ns`.
  void note_carried(std::uint32_t port, std::int64_t start_ns, std::int64_t end_ns, std::int64_t bytes) {
    if (sampler_)
      sampler_->carries(port, static_cast<double>(start_ns), static_cast<double>(end_ns),
                        static_cast<double>(bytes));
  }
  bool is_sampled() const { return sampler_.has_value(); }

  // Whether what has just arrived there is lost: on a link that failed, or by chance. One draw for everything
  // that comes over a link that loses some, pauses and acknowledgements included.
  bool loses(const Port& port) {
    return !port.up || (port.loss_stream != kNone && losses_[port.loss_stream].next() < port.loss);
  }

  // A frame of PFC has arrived.
  void pause(std::uint32_t port, std::size_t priority);
  void resume(std::uint32_t port, std::size_t priority);
  // The time of a pause that nobody ended is over, unless it is not the latest one any more; returns
  // whether it ended.
  bool pause_is_over(std::uint32_t port, std::size_t priority);

  // At the end: how long ports were paused, and what the links did over time.
  void sum_pauses(std::int64_t end_ns);
  void take_samples(std::int64_t end_ns);

 private:
  void end_pause(std::uint32_t port, std::size_t priority, std::int64_t now_ns);

  Core& core_;
  HugeVector<Port> ports_;
  std::vector<Pauses> pauses_;              // per port
  std::vector<std::uint32_t> first_ports_;  // per node, into node_ports_
  std::vector<std::uint32_t> node_ports_;
  std::uint32_t nics_ = 0;
  std::vector<std::vector<std::int64_t>> transmission_;  // ps by class of rate and size
  std::vector<RandomStream> losses_;
  std::optional<LinkSampler> sampler_;  // where the job is to be sampled
};

inline std::int64_t Links::transmit(std::uint32_t index, std::uint32_t packet) {
  Port& port = ports_[index];
  port.busy = true;
  port.sending = packet;
  Packet& leaving = core_.packets[packet];
  // Packets leave to the picosecond though events are whole nanoseconds: what is left over is carried to the
  // next one, so that a full link is exactly as fast as it is.
  const std::int64_t takes_ps = port.transmission_ps[leaving.size];
  const std::int64_t sent = core_.events.now() + (takes_ps + port.carry_ps) / 1000;
  port.carry_ps = static_cast<std::int32_t>((takes_ps + port.carry_ps) % 1000);
  ++port.frames;
  port.carried_bytes += leaving.size;
  port.busy_ps += takes_ps;
  note_carried(index, core_.events.now(), sent, leaving.size);
  leaving.port = index ^ 1;
  core_.events.schedule(sent, kSent, index);
  core_.events.schedule(sent + port.delay_ns, kArrived, packet);
  return sent;
}

}  // namespace armilla::packets
