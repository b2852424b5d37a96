// Remote memory behind every rank, every node of ranks, or all of them: an access takes latency + bytes /
// bandwidth, truncated to whole nanoseconds; a memory shared by several ranks serves one access at a time,
// first come first served. Source: astra-sim/astra-memory-analytical, AnalyticalRemoteMemory.cc.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "event/event_queue.h"
#include "ir/formats/system_layer.h"
#include "sim/engine/run_context.h"

namespace armilla {

// Whether ranks wait for each other there.
inline bool shares_memory(const RemoteMemory& memory) {
  return memory.kind == RemoteMemoryKind::pool ||
         (memory.kind == RemoteMemoryKind::per_node && memory.npus_per_node > 1);
}

class RemoteMemories final : public EventHandler {
 public:
  RemoteMemories(const RunContext& context, const RemoteMemory& memory);
  RemoteMemories(const RemoteMemories&) = delete;
  RemoteMemories& operator=(const RemoteMemories&) = delete;

  // The notice is given when the access is over. Throws Error where there is no remote memory. `rank` is its
  // number in the order, `real_rank` decides which memory is its own.
  void access(std::int32_t rank, std::int32_t real_rank, Bytes bytes, Notice done);

  void handle(std::uint64_t memory) override;

 private:
  struct Access {
    std::int32_t rank;
    Bytes bytes;
    Notice done;
  };
  struct Server {
    bool busy = false;
    std::deque<Access> waiting;
  };

  void serve(std::size_t server, const Access& access);

  RunContext context_;
  RemoteMemory memory_;
  std::uint32_t target_;
  std::vector<Server> servers_;  // none where every rank has its own
};

}  // namespace armilla
