// A flow of a packet simulation, or a connection (queue pair) that messages are posted to.
#pragma once

#include <algorithm>
#include <cstdint>

#include "network/packet/packet_pool.h"
#include "network/routing/routes.h"

namespace armilla::packets {

// What every packet needs of its flow first, what losses and starts need last.
struct alignas(64) Flow : RateState {
  std::uint64_t size = 0, acknowledged = 0;
  std::int64_t next_send_ns = 0;
  std::uint32_t port = 0, exit = 0;             // of the NICs of its source and of its destination
  std::uint32_t way_there = 0, way_back = 0;    // beyond them, in the store of ways
  std::uint32_t turn = kNone;                   // at its source's NIC
  std::uint32_t last_size = 0;                  // on the wire
  std::uint64_t expected = 0;                   // by the receiver
  std::uint64_t highest = 0;                    // sequence number ever sent
  std::uint32_t ways = 1;                       // how many
  std::uint32_t ways_there = 0, ways_back = 0;  // where there are several: lists there
  std::uint8_t priority = 0;
  bool started = false, finished = false, timer = false;
  bool ask = false;  // with the next packet whether the one before was lost, or its acknowledgement
  std::uint32_t packets_spread = 0;
  std::uint32_t under_way = 0;  // packets, where flows are forgotten
  FlowAddress address;
  std::uint32_t increase_stamp = 0;
  std::uint32_t life = 0;  // of a connection: how often it has started anew; of flows 0
  std::int64_t start_ns = 0;
  // Losses
  std::uint64_t last_nack = 0;
  std::int64_t next_nack_ns = 0;
  std::uint64_t timer_mark = 0;
  int retries = 0;
  bool lost_on_link = false;  // something, since the timer was set
  std::uint32_t hops = 0;

  // `least`: what acknowledgements come for, at the finest.
  bool window_full(bool follows_rate, std::uint64_t least) const {
    if (window == 0) return false;
    std::uint64_t limit = static_cast<std::uint64_t>(window);
    if (follows_rate) {
      limit = std::max<std::uint64_t>(
          1, limit * static_cast<std::uint64_t>(rate) / static_cast<std::uint64_t>(line_rate));
    }
    return next - acknowledged >= std::max(limit, least);
  }
};

}  // namespace armilla::packets
