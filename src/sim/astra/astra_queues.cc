#include "sim/astra/astra_queues.h"

#include <algorithm>

namespace armilla {

AstraQueues::AstraQueues(const SystemLayer& system, std::size_t ranks, std::size_t levels,
                         const Blocks<AstraStream>& streams)
    : system_(system),
      streams_(streams),
      // A dimension's active chunks are divided among its queues, rounded up.
      running_limit_((system.active_chunks + system.queues_per_dimension - 1) / system.queues_per_dimension),
      ranks_(ranks) {
  const auto queues = static_cast<std::int32_t>(system.queues_per_dimension);
  for (Rank& rank : ranks_) {
    rank.queues.resize(levels * static_cast<std::size_t>(queues));
    rank.allocators.assign(levels, {0, 0, queues / 2});
  }
}

std::optional<std::uint32_t> AstraQueues::next(std::int32_t rank, std::uint32_t q) {
  Queue& queue = at(rank, q);
  if (queue.running >= running_limit_ || queue.running >= static_cast<std::int64_t>(queue.streams.size()))
    return std::nullopt;
  // Those that run are the first of their queue: the next to start stands behind them.
  return queue.streams[static_cast<std::size_t>(queue.running++)];
}

void AstraQueues::take_out(std::int32_t rank, std::uint32_t queue, std::uint32_t id) {
  std::vector<std::uint32_t>& streams = at(rank, queue).streams;
  streams.erase(std::find(streams.begin(), streams.end(), id));
}

std::int32_t AstraQueues::priority_of(std::int32_t r, const CollectiveCall& call) {
  std::int32_t& next = ranks_[static_cast<std::size_t>(r)].priority;
  const bool ignored = system_.tutorial_release && call.preference != ChunkPreference::highest;
  // Higher goes first: who comes later goes before, or behind, all that came earlier.
  switch (ignored ? ChunkPreference::policy : call.preference) {
    case ChunkPreference::lifo:
      return next++;
    case ChunkPreference::fifo:
      return next--;
    // A number that no count of collectives reaches: before all others.
    case ChunkPreference::highest:
      return 100'000'000;
    case ChunkPreference::policy:
      break;
  }
  switch (system_.scheduling) {
    case ChunkOrder::lifo:
      return next++;
    case ChunkOrder::fifo:
      return next--;
    case ChunkOrder::priority:
      break;
  }
  return call.priority;
}

// A queue of the level, and whether its messages go anticlockwise.
std::pair<std::uint32_t, bool> AstraQueues::allocate(std::int32_t rank, const AstraPhase& phase) {
  const auto queues = static_cast<std::int32_t>(system_.queues_per_dimension);
  Allocator& allocator =
      ranks_[static_cast<std::size_t>(rank)].allocators[static_cast<std::size_t>(phase.queue_level())];
  std::int32_t number = 0;
  bool reversed = false;
  switch (phase.share) {
    case QueueShare::any:
      // The first half of a level's queues sends one way around, the second the other.
      reversed = queues > 1 && allocator.any >= queues / 2;
      number = allocator.any;
      allocator.any = (allocator.any + 1) % queues;
      break;
    case QueueShare::first:
      number = allocator.first++;
      if (allocator.first >= queues / 2) allocator.first = 0;
      break;
    case QueueShare::second:
      reversed = true;
      number = allocator.second++;
      if (allocator.second >= queues) allocator.second = queues / 2;
      break;
  }
  return {static_cast<std::uint32_t>(phase.queue_level() * queues + number), reversed};
}

// Whether a waiting stream keeps its place before one that comes.
bool AstraQueues::goes_before(const AstraStream& waiting, const AstraStream& stream) const {
  const AstraChunk& a = *waiting.chunk;
  const AstraChunk& b = *stream.chunk;
  const AstraPhase& phase = b.phases[stream.phase];
  const bool plain = phase.kind == CollectiveKind::all_to_all || phase.kind == CollectiveKind::all_reduce;
  const auto size = [](const AstraPhase& p) { return std::max(p.bytes, final_bytes(p)); };
  const bool smallest_first = !plain && system_.intra_dimension == IntraDimensionOrder::smallest_first;
  if (smallest_first && system_.tutorial_release) return a.phases[waiting.phase].bytes < phase.bytes;
  if (smallest_first)
    return b.phases.size() - stream.phase == 2 || size(a.phases[waiting.phase]) < size(phase);
  if (!plain && system_.intra_dimension == IntraDimensionOrder::less_remaining_phase_first)
    return a.phases.size() - waiting.phase < b.phases.size() - stream.phase;
  return waiting.priority >= stream.priority;
}

void AstraQueues::add(std::uint32_t id) {
  const AstraStream& stream = streams_[id];
  Queue& queue = at(stream.rank, stream.queue);
  const CollectiveKind kind = stream.current->kind;
  const bool alternates = system_.intra_dimension == IntraDimensionOrder::rg &&
                          kind != CollectiveKind::all_to_all && kind != CollectiveKind::all_reduce;
  std::size_t place = 0;
  if (!alternates) {
    while (place < queue.streams.size() && (streams_[queue.streams[place]].state == StreamState::running ||
                                            goes_before(streams_[queue.streams[place]], stream)))
      ++place;
  } else {
    // "RG": a reduce-scatter and an all-gather that stand next to each other are not torn apart.
    const auto kind_at = [&](std::size_t i) { return streams_[queue.streams[i]].current->kind; };
    const auto runs = [&](std::size_t i) { return streams_[queue.streams[i]].state == StreamState::running; };
    const auto opposite = [](CollectiveKind a, CollectiveKind b) {
      return (a == CollectiveKind::reduce_scatter && b == CollectiveKind::all_gather) ||
             (a == CollectiveKind::all_gather && b == CollectiveKind::reduce_scatter);
    };
    bool has_last = false, has_one_before = false;
    CollectiveKind last{}, one_before{};
    while (place < queue.streams.size()) {
      has_one_before = has_last;
      one_before = last;
      has_last = true;
      last = kind_at(place);
      if (runs(place)) {
        ++place;
        if (place < queue.streams.size() && !runs(place)) {
          has_one_before = true;
          one_before = last;
          last = kind_at(place);
          ++place;
        }
      } else if (streams_[queue.streams[place]].priority > stream.priority ||
                 (has_one_before && opposite(last, one_before))) {
        ++place;
      } else {
        break;
      }
    }
  }
  queue.streams.insert(queue.streams.begin() + static_cast<std::ptrdiff_t>(place), id);
}

}  // namespace armilla
