// The networks of ASTRA-sim's analytical backends, reproduced to the nanosecond, truncations included.
//
//   astra2-unaware, astra1  A message takes a time of its own, whatever else is under way. 2.x: hops x
//   latency
//                           + bytes / bandwidth, truncated, in the lowest dimension in which the ends differ
//                           (the others cost nothing). 1.0: in the highest; effective bandwidth from the
//                           number of links; NIC, router and memory terms; truncated after every term.
//                           (astra-network-analytical 599a047, BasicTopology.cpp, MultiDimTopology.cpp;
//                           d27635b, HierarchicalTopology.cc)
//   astra2-aware            Whole messages are stored and forwarded; each directed link carries one at a
//   time,
//                           first come first served, for bytes / bandwidth, truncated; it arrives after
//                           latency + bytes / bandwidth, truncated. Ring: the shorter way, ties clockwise.
//                           Switch: a link up and a link down per rank. The peer has one dimension only; here
//                           further dimensions are crossed one after the other, lowest first. (599a047,
//                           congestion_aware/Link.cpp)
//
// Cost per message: O(1) and one event without congestion; two events per hop with it. Units: GB/s of 2^30
// bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "event/event_queue.h"
#include "ir/formats/system_layer.h"
#include "ir/result.h"

namespace armilla {

struct StreamMessage {
  std::int32_t source = 0, destination = 0;  // ranks, different
  Bytes bytes;
  std::uint32_t target = 0;    // the event queue's handler that is told of the arrival,
  std::uint64_t argument = 0;  // with this argument
  std::int64_t copies = 1;     // it stands for so many, of other ranks
};

class StreamNetwork {
 public:
  StreamNetwork(const SystemLayer& system, EventQueue& queue);
  StreamNetwork(const StreamNetwork&) = delete;
  StreamNetwork& operator=(const StreamNetwork&) = delete;
  ~StreamNetwork();

  // Returns when the message arrives; kEndOfTime where that depends on others.
  Time send(const StreamMessage& message);
  // The same, but nobody is told of the arrival. Not with congestion.
  Time carry(const StreamMessage& message);

  // What rank 0 sent, per dimension.
  const std::vector<Bytes>& sent_by_first_rank() const { return sent_by_first_rank_; }
  std::int64_t messages() const { return messages_; }
  // Per dimension: all its links taken together, when each message stands for `copies`.
  std::vector<LinkUse> links(std::int64_t copies = 1) const;

 private:
  struct Level {
    DimensionKind kind;
    std::int64_t size, stride;
    double bytes_per_ns, latency_ns;
    double nic_latency_ns, router_latency_ns, memory_latency_ns, memory_bytes_per_ns, memory_scale;
    Bytes last_bytes{};  // of the message timed last, over so many hops, and its time
    std::int64_t last_hops = 0;
    Time last_time{};
    Bytes bytes{};  // carried by all links
    Time busy{};    // of all links together
  };
  class StoreAndForward;

  std::int64_t position(const Level& level, std::int32_t rank) const {
    return levels_.size() == 1 ? rank : rank / level.stride % level.size;
  }
  std::size_t level_of(std::int32_t source, std::int32_t destination) const;
  std::size_t count(const StreamMessage& message);  // returns its level
  std::int64_t hops(const Level& level, std::int32_t source, std::int32_t destination) const;
  Time lone_time(const Level& level, std::int64_t hops, Bytes bytes) const;
  Time lone_time_again(Level& level, std::int64_t hops, Bytes bytes) const {
    if (hops != level.last_hops || bytes != level.last_bytes) {
      level.last_hops = hops;
      level.last_bytes = bytes;
      level.last_time = lone_time(level, hops, bytes);
    }
    return level.last_time;
  }

  EventQueue& queue_;
  Semantics semantics_;
  std::vector<Level> levels_;
  std::int64_t ranks_ = 1;
  std::vector<Bytes> sent_by_first_rank_;
  std::int64_t messages_ = 0;
  std::unique_ptr<StoreAndForward> store_and_forward_;
};

}  // namespace armilla
