// The packets under way, and the queues that they wait in. Nothing is allocated once there have been as many.
#pragma once

#include <cstdint>
#include <vector>

#include "base/huge_pages.h"
#include "network/packet/transport/congestion.h"

namespace armilla::packets {

inline constexpr std::uint32_t kNone = UINT32_MAX;

enum class PacketKind : std::uint8_t { data, ack, nack, pull, request, pause, resume };

struct alignas(64) Packet {
  std::uint32_t next = kNone;  // in the queue that it waits in
  std::uint32_t flow = 0;      // of pause and resume: unused
  std::uint64_t sequence = 0;  // of data: its first byte; of acknowledgements: the next byte awaited
  std::uint64_t repeat = 0;    // of acknowledgements: what arrived, or did not, out of order; by transport
  std::uint64_t pull = 0;      // up to where the sender was pulled, or, in data, wants to be
  std::int64_t sent_ns = 0;    // of data and what answers it: when the data left
  std::uint32_t port = 0;      // where it arrives next, then where it arrived
  std::uint32_t step = 0;      // in the store of ways: the port that it leaves by next
  std::uint32_t size = 0;      // bytes on the wire
  std::uint16_t payload = 0;   // of data
  std::uint16_t path = 0;      // by name, of transports that spray
  PacketKind kind = PacketKind::data;
  std::uint8_t priority = 0;
  bool marked = false;   // by a switch
  bool echo = false;     // of acknowledgements: the data had been marked
  bool trimmed = false;  // data whose payload a switch cut off
  bool asks = false;     // to be answered even if it arrived before; of the answer: that it was
};

struct Queue {
  std::uint32_t head = kNone, tail = kNone;
};

class PacketPool {
 public:
  // Whether switches write into packets.
  explicit PacketPool(bool has_telemetry) : has_telemetry_(has_telemetry) {}

  Packet& operator[](std::uint32_t packet) { return packets_[packet]; }
  const Packet& operator[](std::uint32_t packet) const { return packets_[packet]; }
  std::size_t size() const { return packets_.size(); }
  Telemetry& telemetry(std::uint32_t packet) { return telemetry_[packet]; }

  // Places of others may move.
  std::uint32_t make() {
    if (free_ != kNone) {
      const std::uint32_t packet = free_;
      free_ = packets_[packet].next;
      if (free_ != kNone) __builtin_prefetch(&packets_[free_], 1);
      packets_[packet] = {};
      return packet;
    }
    packets_.emplace_back();
    if (has_telemetry_) telemetry_.emplace_back();
    return static_cast<std::uint32_t>(packets_.size() - 1);
  }
  // Of a flow: by Flows::free_packet, which counts.
  void release(std::uint32_t packet) {
    packets_[packet].next = free_;
    free_ = packet;
  }

  void append(Queue& queue, std::uint32_t packet) {
    packets_[packet].next = kNone;
    if (queue.head == kNone) {
      queue.head = packet;
    } else {
      packets_[queue.tail].next = packet;
    }
    queue.tail = packet;
  }
  std::uint32_t take(Queue& queue) {
    const std::uint32_t packet = queue.head;
    queue.head = packets_[packet].next;
    if (queue.head != kNone)
      __builtin_prefetch(&packets_[queue.head], 1);  // in long queues it was touched long ago
    return packet;
  }

 private:
  HugeVector<Packet> packets_;
  std::vector<Telemetry> telemetry_;  // per packet, where there is any
  std::uint32_t free_ = kNone;
  const bool has_telemetry_;
};

}  // namespace armilla::packets
