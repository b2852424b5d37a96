#include "sim/engine/remote_memory.h"

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {

RemoteMemories::RemoteMemories(const RemoteMemory& memory, std::int64_t ranks, RankAgenda* agenda,
                               EventQueue& queue)
    : memory_(memory), agenda_(agenda), queue_(queue), target_(queue.add_handler(*this)) {
  if (memory.kind == RemoteMemoryKind::pool) servers_.resize(1);
  if (memory.kind == RemoteMemoryKind::per_node)
    servers_.resize(static_cast<std::size_t>((ranks + memory.npus_per_node - 1) / memory.npus_per_node));
}

void RemoteMemories::schedule(std::int32_t rank, Time time, std::uint32_t target, std::uint64_t argument) {
  if (agenda_) {
    agenda_->schedule(rank, time, target, argument);
  } else {
    queue_.schedule(time, target, argument);
  }
}

void RemoteMemories::access(std::int32_t rank, std::int32_t real_rank, Bytes bytes, std::uint32_t target,
                            std::uint64_t argument) {
  const Access access{rank, bytes, target, argument};
  if (memory_.kind == RemoteMemoryKind::none) {
    throw Error(fmt::format("rank {}", real_rank), "loads from or stores to remote memory, and there is none",
                "choose another memory-type than NO_MEMORY_EXPANSION");
  }
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
  // The latency is a whole number for the peer; the transfer is truncated on its own.
  const double transfer = static_cast<double>(access.bytes.value) / memory_.bytes_per_ns;
  const double limit = static_cast<double>(kEndOfTime.value / 2000);
  Time duration = kEndOfTime;
  if (transfer < limit && memory_.latency_ns < limit)
    duration =
        nanoseconds(static_cast<std::int64_t>(memory_.latency_ns) + static_cast<std::int64_t>(transfer));
  const Time end = later(queue_.now(), duration);
  schedule(access.rank, end, access.target, access.argument);
  if (server == SIZE_MAX) return;
  servers_[server].busy = true;
  schedule(access.rank, end, target_, server);
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
