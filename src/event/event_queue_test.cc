#include "event/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <string>

namespace armilla {
namespace {

struct Seen {
  std::int64_t time;
  std::uint64_t argument;
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Records what it is handed, and lets a test schedule from inside a handler.
class Recorder : public EventHandler {
 public:
  explicit Recorder(EventQueue& queue) : queue_(queue), target_(queue.add_handler(*this)) {}
  void handle(std::uint64_t argument) override {
    seen.push_back({queue_.now().value, argument});
    if (on_event) on_event(argument);
  }
  std::uint32_t target() const { return target_; }

  std::vector<Seen> seen;
  std::function<void(std::uint64_t)> on_event;

 private:
  EventQueue& queue_;
  std::uint32_t target_;
};

TEST(EventQueue, RunsInOrderOfTimeThenOfScheduling) {
  EventQueue queue;
  Recorder recorder(queue);
  queue.schedule(Time(30), recorder.target(), 1);
  queue.schedule(Time(10), recorder.target(), 2);
  queue.schedule(Time(30), recorder.target(), 3);
  queue.schedule(Time(10), recorder.target(), 4);
  queue.schedule(Time(0), recorder.target(), 5);
  EXPECT_TRUE(queue.run());
  EXPECT_EQ(recorder.seen, (std::vector<Seen>{{0, 5}, {10, 2}, {10, 4}, {30, 1}, {30, 3}}));
  EXPECT_EQ(queue.handled(), 5);
}

TEST(EventQueue, HandlersMayScheduleForThisVeryMoment) {
  EventQueue queue;
  Recorder recorder(queue);
  recorder.on_event = [&](std::uint64_t argument) {
    if (argument < 3) queue.schedule(queue.now(), recorder.target(), argument + 1);
  };
  queue.schedule(Time(7), recorder.target(), 0);
  queue.schedule(Time(7), recorder.target(), 100);
  EXPECT_TRUE(queue.run());
  EXPECT_EQ(recorder.seen, (std::vector<Seen>{{7, 0}, {7, 100}, {7, 1}, {7, 2}, {7, 3}}));
}

TEST(EventQueue, StopsBeforeTheEndAndGoesOn) {
  EventQueue queue;
  Recorder recorder(queue);
  for (const std::int64_t time : {5, 50, 500}) queue.schedule(Time(time), recorder.target(), 0);
  EXPECT_FALSE(queue.run(Time(50)));
  EXPECT_EQ(recorder.seen.size(), 1U);
  EXPECT_TRUE(queue.run());
  EXPECT_EQ(recorder.seen.size(), 3U);
  EXPECT_EQ(queue.now(), Time(500));
}

// Against the obvious implementation: a stable sort by time, with handlers that keep adding events.
TEST(EventQueue, EqualsAStableSortOnRandomRuns) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    EventQueue queue;
    Recorder recorder(queue);
    std::vector<Seen> pending;
    std::vector<Seen> expected;
    std::uint64_t next = 0;
    const auto add = [&](std::int64_t now) {
      const int shift = static_cast<int>(random() % 40);
      const std::int64_t time = now + static_cast<std::int64_t>(random() % (std::uint64_t{1} << shift));
      queue.schedule(Time(time), recorder.target(), next);
      pending.push_back({time, next++});
    };
    recorder.on_event = [&](std::uint64_t) {
      const auto first = std::min_element(pending.begin(), pending.end(),
                                          [](const Seen& a, const Seen& b) { return a.time < b.time; });
      expected.push_back(*first);
      pending.erase(first);
      if (next < 2000) {
        for (std::uint64_t i = random() % 3; i > 0; --i) add(queue.now().value);
      }
    };
    for (int i = 0; i < 50; ++i) add(0);
    ASSERT_TRUE(queue.run());
    ASSERT_EQ(recorder.seen, expected) << "seed " << seed;
    ASSERT_TRUE(pending.empty());
  }
}

// Ends fall between events that lie close together, and what is scheduled then comes before them.
TEST(EventQueue, EqualsAStableSortWhereRunsStopAnywhere) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    EventQueue queue;
    Recorder recorder(queue);
    std::vector<Seen> scheduled;
    std::int64_t end = 0;
    for (int slice = 0; slice < 60; ++slice) {
      const std::uint64_t width = std::uint64_t{1} << (random() % 12);
      for (std::uint64_t i = random() % (slice % 7 == 0 ? 100 : 6); i > 0; --i) {
        const std::int64_t time = end + static_cast<std::int64_t>(random() % width);
        queue.schedule(Time(time), recorder.target(), scheduled.size());
        scheduled.push_back({time, scheduled.size()});
      }
      end += static_cast<std::int64_t>(random() % 300);
      queue.run(Time(end));
      std::vector<Seen> expected;
      std::ranges::copy_if(scheduled, std::back_inserter(expected),
                           [&](const Seen& event) { return event.time < end; });
      std::ranges::stable_sort(expected, {}, &Seen::time);
      ASSERT_EQ(recorder.seen, expected) << "seed " << seed;
      Time next = kEndOfTime;
      for (const Seen& event : scheduled) {
        if (event.time >= end) next = std::min(next, Time(event.time));
      }
      ASSERT_EQ(queue.next_time(), next) << "seed " << seed;
    }
    queue.schedule(kEndOfTime, recorder.target(), 0);
    EXPECT_FALSE(queue.run());
    EXPECT_EQ(recorder.seen.size(), scheduled.size());
  }
}

// More than are kept sorted.
TEST(EventQueue, TakesManyCloseEventsWhileOthersAreHandled) {
  std::mt19937_64 random(1);
  EventQueue queue;
  Recorder recorder(queue);
  constexpr Time kFirst(1 << 20);
  std::vector<Seen> expected = {{kFirst.value, 0}};
  recorder.on_event = [&](std::uint64_t argument) {
    if (argument != 0) return;
    for (std::uint64_t number = 1; number <= 200; ++number) {
      expected.push_back({kFirst.value + static_cast<std::int64_t>(random() % 100), number});
      queue.schedule(Time(expected.back().time), recorder.target(), number);
    }
  };
  queue.schedule(kFirst, recorder.target(), 0);
  ASSERT_TRUE(queue.run());
  std::ranges::stable_sort(expected, {}, &Seen::time);
  EXPECT_EQ(recorder.seen, expected);
}

// What happened apart from the rest is made up for with the clock set back, the rest goes on as if
// nothing had been.
TEST(EventQueue, GoesBackForWhatHappenedApart) {
  EventQueue queue;
  Recorder recorder(queue);
  recorder.on_event = [&](std::uint64_t argument) {
    if (argument == 7) queue.schedule(queue.now() + Time(100), recorder.target(), 8);
  };
  for (const std::uint64_t time : {10, 20, 20, 1000})
    queue.schedule(Time(static_cast<std::int64_t>(time)), recorder.target(), time);
  EXPECT_FALSE(queue.run(Time(20)));
  const std::vector<Event> rest = queue.set_aside(Time(3));
  EXPECT_EQ(rest.size(), 3U);
  EXPECT_TRUE(queue.empty());
  queue.schedule(Time(5), recorder.target(), 7);
  EXPECT_FALSE(queue.run(Time(20)));
  const std::vector<Event> own = queue.set_aside(Time(10));
  ASSERT_EQ(own.size(), 1U);
  for (const Event& event : rest) queue.schedule(event.time, event.target, event.argument);
  for (const Event& event : own) queue.schedule(event.time, event.target, event.argument);
  EXPECT_EQ(queue.now(), Time(10));
  EXPECT_EQ(queue.next_time(), Time(20));
  ASSERT_TRUE(queue.run());
  std::vector<std::uint64_t> arguments;
  for (const auto& [time, argument] : recorder.seen) arguments.push_back(argument);
  EXPECT_EQ(arguments, (std::vector<std::uint64_t>{10, 7, 20, 20, 8, 1000}));
}

// What an event schedules for its own moment is handled in another round.
TEST(EventQueue, HandlersAreToldManyTimesAtOnceAsOneByOne) {
  struct Counter final : EventHandler {
    void handle(std::uint64_t argument) override { seen.push_back(argument); }
    std::vector<std::uint64_t> seen;
  } counter;
  counter.handle_times(7, 3);
  EXPECT_EQ(counter.seen, std::vector<std::uint64_t>({7, 7, 7}));
}

TEST(EventQueue, ObserversSeeTheEndsOfRounds) {
  EventQueue queue;
  Recorder recorder(queue);
  std::vector<std::string> log;
  struct Observer : RoundObserver {
    std::vector<std::string>& log;
    std::string name;
    Observer(std::vector<std::string>& into, std::string called) : log(into), name(std::move(called)) {}
    void round_over() override { log.push_back(name); }
  } first(log, "first"), second(log, "second");
  queue.add_observer(first);
  queue.add_observer(second);
  recorder.on_event = [&](std::uint64_t argument) {
    log.push_back(std::to_string(argument));
    if (argument == 1) queue.schedule(queue.now(), recorder.target(), 3);
  };
  queue.schedule(Time(10), recorder.target(), 1);
  queue.schedule(Time(10), recorder.target(), 2);
  queue.schedule(Time(20), recorder.target(), 4);
  ASSERT_TRUE(queue.run());
  EXPECT_EQ(log, (std::vector<std::string>{"1", "2", "first", "second", "3", "first", "second", "4", "first",
                                           "second"}));
}

}  // namespace
}  // namespace armilla
