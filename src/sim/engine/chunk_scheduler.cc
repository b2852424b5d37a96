#include "sim/engine/chunk_scheduler.h"

#include <algorithm>
#include <tuple>

namespace armilla {
namespace {

// True when `a` goes after `b`: the heap keeps the one that goes first on top.
struct GoesAfter {
  ChunkOrder order;

  bool operator()(const WaitingChunk& a, const WaitingChunk& b) const {
    if (order == ChunkOrder::priority && a.priority != b.priority) return a.priority < b.priority;
    if (order == ChunkOrder::lifo && a.issued != b.issued) return a.issued < b.issued;
    return std::tie(a.issued, a.chunk, a.phase) > std::tie(b.issued, b.chunk, b.phase);
  }
};

}  // namespace

ChunkScheduler::ChunkScheduler(std::size_t ranks, std::int64_t active_limit, ChunkOrder order)
    : active_limit_(active_limit), order_(order), ranks_(ranks) {}

std::uint32_t ChunkScheduler::queue(std::int32_t rank, std::uint32_t name) {
  RankQueues& known = ranks_[static_cast<std::size_t>(rank)];
  // A rank uses the queues of the few dimensions that its groups span, so that a sorted list is smaller and
  // quicker than a table of all.
  const auto found = std::ranges::lower_bound(
      known.by_name, name, {}, [&](std::uint32_t number) { return known.queues[number].name; });
  if (found != known.by_name.end() && known.queues[*found].name == name) return *found;
  const auto number = static_cast<std::uint32_t>(known.queues.size());
  known.by_name.insert(found, number);
  known.queues.push_back({name, {}, 0});
  return number;
}

void ChunkScheduler::add(std::int32_t rank, std::uint32_t queue, const WaitingChunk& chunk) {
  change(rank, queue, [&](Queue& here) {
    here.waiting.push_back(chunk);
    std::push_heap(here.waiting.begin(), here.waiting.end(), GoesAfter{order_});
  });
}

std::optional<WaitingChunk> ChunkScheduler::next(std::int32_t rank, std::uint32_t queue) {
  if (!has_next(rank, queue)) return std::nullopt;
  std::optional<WaitingChunk> chunk;
  change(rank, queue, [&](Queue& here) {
    std::pop_heap(here.waiting.begin(), here.waiting.end(), GoesAfter{order_});
    chunk = here.waiting.back();
    here.waiting.pop_back();
    ++here.active;
  });
  return chunk;
}

void ChunkScheduler::add_state(StateDigest& state) const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    // What waits is told by the runner, which knows where in its program each chunk stands.
    for (const Queue& queue : ranks_[rank].queues) state.add('s', rank, queue.name, queue.active);
  }
}

}  // namespace armilla
