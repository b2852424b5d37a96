#include "network/packet/event_wheel.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace armilla {
namespace {

// Against a sorted map: near and far events, some scheduled while others are handled.
TEST(EventWheel, KeepsTimeAndOrder) {
  std::mt19937_64 random(3);
  EventWheel wheel;
  std::map<std::pair<std::int64_t, std::uint32_t>, bool> expected;
  std::uint32_t number = 0;
  const auto add = [&] {
    const std::int64_t reach[] = {0, 5, 1000, 32'767, 32'768, 32'769, 100'000, 5'000'000};
    const std::int64_t after = reach[random() % 8];
    const std::int64_t time = wheel.now() + (after == 0 ? 0 : static_cast<std::int64_t>(random() % after));
    expected[{time, number}] = true;
    wheel.schedule(time, 1, number++);
  };
  for (int i = 0; i < 100; ++i) add();
  WheelEvent event;
  while (wheel.next(INT64_MAX, event)) {
    const auto first = expected.begin();
    ASSERT_EQ(wheel.now(), first->first.first);
    ASSERT_EQ(event.subject, first->first.second);
    expected.erase(first);
    for (std::uint64_t i = random() % 3; i > 0 && number < 20'000; --i) add();
    if (expected.empty() && number < 20'000) add();
  }
  EXPECT_TRUE(expected.empty());
  EXPECT_EQ(wheel.handled(), number);
}

TEST(EventWheel, StopsBeforeTheEnd) {
  EventWheel wheel;
  wheel.schedule(10, 1, 0);
  wheel.schedule(100'000, 1, 1);
  WheelEvent event;
  EXPECT_FALSE(wheel.next(9, event));
  EXPECT_TRUE(wheel.next(10, event));
  EXPECT_FALSE(wheel.next(99'999, event));
  EXPECT_TRUE(wheel.next(100'000, event));
  EXPECT_FALSE(wheel.next(INT64_MAX, event));
}

// Some events leave in the midst of others, which keep their order.
TEST(EventWheel, GivesEventsBack) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    EventWheel wheel;
    std::map<std::pair<std::int64_t, std::uint32_t>, bool> expected;
    for (std::uint32_t number = 0; number < 300; ++number) {
      const auto time = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 20 : 100'000));
      expected[{time, number}] = true;
      wheel.schedule(time, 1, number);
    }
    WheelEvent event;
    for (std::uint64_t i = random() % 200; i > 0; --i) {
      ASSERT_TRUE(wheel.next(INT64_MAX, event));
      expected.erase(expected.begin());
    }
    auto seen = expected.begin();
    wheel.for_each([&](std::int64_t time, const WheelEvent& one) {
      ASSERT_NE(seen, expected.end());
      ASSERT_EQ(seen->first, std::pair(time, one.subject));
      ++seen;
    });
    ASSERT_EQ(seen, expected.end());
    const std::uint32_t kept = static_cast<std::uint32_t>(random() % 3);
    auto next = expected.begin();
    wheel.take_out([&](const WheelEvent& one) { return one.subject % 3 != kept; },
                   [&](std::int64_t time, const WheelEvent& one) {
                     while (next->first.second % 3 == kept) ++next;
                     ASSERT_EQ(next->first, std::pair(time, one.subject));
                     next = expected.erase(next);
                   });
    while (wheel.next(INT64_MAX, event)) {
      ASSERT_FALSE(expected.empty());
      ASSERT_EQ(expected.begin()->first, std::pair(wheel.now(), event.subject));
      expected.erase(expected.begin());
    }
    ASSERT_TRUE(expected.empty());
  }
}

}  // namespace
}  // namespace armilla
