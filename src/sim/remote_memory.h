// Remote memory behind every rank, every node of ranks, or all of them: an access takes latency + bytes /
// bandwidth, truncated to whole nanoseconds; a memory shared by several ranks serves one access at a time,
// first come first served. Source: astra-sim/astra-memory-analytical, AnalyticalRemoteMemory.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "event/event_queue.h"
#include "ir/system_layer.h"
#include "sim/rank_agenda.h"

namespace armilla {

class RemoteMemories final : public EventHandler {
 public:
  RemoteMemories(const RemoteMemory& memory, std::int64_t ranks, RankAgenda& agenda, EventQueue& queue);
  RemoteMemories(const RemoteMemories&) = delete;
  RemoteMemories& operator=(const RemoteMemories&) = delete;

  // `target` is called with `argument` when the access is over. Throws Error where there is no remote memory.
  void access(std::int32_t rank, Bytes bytes, std::uint32_t target, std::uint64_t argument);

  void handle(std::uint64_t memory) override;

 private:
  struct Access {
    std::int32_t rank;
    Bytes bytes;
    std::uint32_t target;
    std::uint64_t argument;
  };
  struct Server {
    bool busy = false;
    std::deque<Access> waiting;
  };

  void serve(std::size_t server, const Access& access);

  RemoteMemory memory_;
  RankAgenda& agenda_;
  EventQueue& queue_;
  std::uint32_t target_;
  std::vector<Server> servers_;  // none where every rank has its own
};

}  // namespace armilla
