#include "sim/engine/chunk_scheduler.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

WaitingChunk chunk(std::uint64_t issued, std::uint32_t index, std::int32_t priority = 0) {
  return {index, 0, 0, issued, priority, index};
}

// The order in which two chunks each of three collectives get the only slot.
std::vector<std::pair<std::uint64_t, std::uint32_t>> order_of(ChunkOrder order) {
  ChunkScheduler scheduler(1, 1, order);
  EXPECT_EQ(scheduler.queue(0, 4), 0U);
  for (const auto& [issued, priority] : {std::pair{0, 5}, std::pair{1, 9}, std::pair{2, 5}}) {
    for (std::uint32_t index = 0; index < 2; ++index)
      scheduler.add(0, 0, chunk(static_cast<std::uint64_t>(issued), index, priority));
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> started;
  while (const auto next = scheduler.next(0, 0)) {
    EXPECT_FALSE(scheduler.next(0, 0).has_value()) << "a second chunk in the only slot";
    started.emplace_back(next->issued, next->chunk);
    scheduler.finished(0, 0);
  }
  return started;
}

using Started = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

TEST(ChunkScheduler, OrdersAreWhatTheirNamesSay) {
  EXPECT_EQ(order_of(ChunkOrder::fifo), (Started{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}));
  EXPECT_EQ(order_of(ChunkOrder::lifo), (Started{{2, 0}, {2, 1}, {1, 0}, {1, 1}, {0, 0}, {0, 1}}));
  EXPECT_EQ(order_of(ChunkOrder::priority), (Started{{1, 0}, {1, 1}, {0, 0}, {0, 1}, {2, 0}, {2, 1}}));
}

TEST(ChunkScheduler, LimitsEachQueueOfEachRankByItself) {
  ChunkScheduler scheduler(2, 2, ChunkOrder::fifo);
  for (const std::int32_t rank : {0, 1}) {
    EXPECT_EQ(scheduler.queue(rank, 7), 0U);
    EXPECT_EQ(scheduler.queue(rank, 5), 1U);
    EXPECT_EQ(scheduler.queue(rank, 7), 0U);
    EXPECT_EQ(scheduler.queues(rank), 2U);
    EXPECT_EQ(scheduler.queue_at(rank, 0), 1U) << "not by name";
  }
  EXPECT_FALSE(scheduler.has_next(1));
  for (std::uint32_t i = 0; i < 3; ++i) scheduler.add(1, 1, chunk(0, i));
  EXPECT_TRUE(scheduler.has_next(1));
  EXPECT_FALSE(scheduler.has_next(0));
  scheduler.add(0, 1, chunk(0, 7));
  EXPECT_EQ(scheduler.next(1, 1)->chunk, 0U);
  EXPECT_EQ(scheduler.next(1, 1)->chunk, 1U);
  EXPECT_FALSE(scheduler.next(1, 1).has_value());
  EXPECT_FALSE(scheduler.has_next(1)) << "one waits, but there is no slot";
  EXPECT_FALSE(scheduler.next(1, 0).has_value());
  EXPECT_EQ(scheduler.next(0, 1)->chunk, 7U);
  scheduler.finished(1, 1);
  EXPECT_TRUE(scheduler.has_next(1));
  EXPECT_EQ(scheduler.next(1, 1)->chunk, 2U);
  EXPECT_FALSE(scheduler.has_next(1));
}

TEST(ChunkScheduler, AChunkStartedBeyondTheLimitDelaysTheNext) {
  ChunkScheduler scheduler(1, 1, ChunkOrder::fifo);
  scheduler.queue(0, 0);
  scheduler.add(0, 0, chunk(0, 0));
  ASSERT_TRUE(scheduler.next(0, 0).has_value());
  scheduler.start_beyond_limit(0, 0);
  scheduler.add(0, 0, chunk(1, 1));
  scheduler.finished(0, 0);
  EXPECT_FALSE(scheduler.has_next(0, 0));
  EXPECT_FALSE(scheduler.next(0, 0).has_value());
  scheduler.finished(0, 0);
  EXPECT_TRUE(scheduler.has_next(0, 0));
  EXPECT_TRUE(scheduler.next(0, 0).has_value());
  EXPECT_FALSE(scheduler.has_next(0, 0));
}

}  // namespace
}  // namespace armilla
