#include "sim/engine/remote_memory.h"

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {

RemoteMemories::RemoteMemories(const RunContext& context, const RemoteMemory& memory)
    : context_(context), memory_(memory), target_(context.queue.add_handler(*this)) {
  const std::int64_t ranks = context.graph.ranks;
  if (memory.kind == RemoteMemoryKind::pool) servers_.resize(1);
  if (memory.kind == RemoteMemoryKind::per_node)
    servers_.resize(static_cast<std::size_t>((ranks + memory.npus_per_node - 1) / memory.npus_per_node));
}

void RemoteMemories::access(std::int32_t rank, std::int32_t real_rank, Bytes bytes, Notice done) {
  const Access access{rank, bytes, done};
  if (memory_.kind == RemoteMemoryKind::none) {
    throw Error(fmt::format("rank {}", real_rank), "loads from or stores to remote memory, and there is none",
                "choose another memory-type than NO_MEMORY_EXPANSION");
  }
  // Memory of each rank's own: accesses of one rank do not wait for each other.
  if (servers_.empty()) {
    serve(SIZE_MAX, access);
    return;
  }
  const std::size_t server = memory_.kind == RemoteMemoryKind::pool
                                 ? 0
                                 : static_cast<std::size_t>(real_rank / memory_.npus_per_node);
  if (servers_[server].busy) {
    servers_[server].waiting.push_back(access);
  } else {
    serve(server, access);
  }
}

void RemoteMemories::serve(std::size_t server, const Access& access) {
  // The latency is a whole number for ASTRA-sim; the transfer is truncated on its own.
  const double transfer = static_cast<double>(access.bytes.value) / memory_.bytes_per_ns;
  const double limit = static_cast<double>(kEndOfTime.value / 2000);
  Time duration = kEndOfTime;
  if (transfer < limit && memory_.latency_ns < limit)
    duration =
        nanoseconds(static_cast<std::int64_t>(memory_.latency_ns) + static_cast<std::int64_t>(transfer));
  const Time end = later(context_.queue.now(), duration);
  context_.order.schedule(access.rank, end, access.done.target, access.done.argument);
  if (server == SIZE_MAX) return;
  servers_[server].busy = true;
  // Behind the notice: the access is over before the next one begins.
  context_.order.schedule(access.rank, end, target_, server);
}

void RemoteMemories::handle(std::uint64_t server) {
  Server& here = servers_[server];
  here.busy = false;
  if (here.waiting.empty()) return;
  const Access next = here.waiting.front();
  here.waiting.pop_front();
  serve(server, next);
}

}  // namespace armilla
