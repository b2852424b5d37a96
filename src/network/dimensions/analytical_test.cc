#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "network/network.h"

namespace armilla {
namespace {

// 1 GB/s moves a byte in a nanosecond.
Machine machine_of(DimensionKind kind, std::int64_t size, Time latency = nanoseconds(100)) {
  Machine machine;
  machine.dimensions = {{"net", kind, size, gigabytes_per_second(1), latency}};
  return machine;
}

// Sends messages at given times and notes when each arrives.
class Bench : public MessageLabels, public EventHandler {
 public:
  explicit Bench(const Machine& machine, const std::string& name = "analytical",
                 std::span<const SlowLinks> slow = {}, std::span<const std::int32_t> stands_for = {})
      : target_(queue_.add_handler(*this)),
        network_(make_network(parse_component(name, "test"), {machine, queue_, *this, stands_for, slow})) {}

  void send_at(Time time, const Message& message) {
    queue_.schedule(time, target_, messages_.size());
    messages_.push_back(message);
    messages_.back().target = target_;
    messages_.back().argument = kArrived | (messages_.size() - 1);
  }
  void handle(std::uint64_t argument) override {
    if ((argument & kArrived) != 0) {
      arrivals_[argument & ~kArrived] = queue_.now();
    } else {
      network_->send(messages_[argument]);
    }
  }
  MessageLabel label(const Message& message) const override { return {{message.order, 0, 0}}; }

  std::vector<Time> run() {
    EXPECT_TRUE(queue_.run());
    std::vector<Time> times;
    for (std::size_t i = 0; i < messages_.size(); ++i) times.push_back(arrivals_.at(i));
    return times;
  }
  const Network& network() const { return *network_; }

 private:
  static constexpr std::uint64_t kArrived = std::uint64_t{1} << 32;

  EventQueue queue_;
  std::uint32_t target_;
  std::unique_ptr<Network> network_;
  std::vector<Message> messages_;
  std::map<std::uint64_t, Time> arrivals_;
};

using Times = std::vector<Time>;

TEST(Analytical, ALoneMessageCostsHopsOfLatencyAndOneSerialization) {
  Bench ring(machine_of(DimensionKind::ring, 8));
  ring.send_at(Time(0), {0, 3, Bytes(1000)});
  EXPECT_EQ(ring.run(), (Times{nanoseconds(3 * 100 + 1000)}));
  Bench direct(machine_of(DimensionKind::fully_connected, 8));
  direct.send_at(Time(0), {0, 3, Bytes(1000)});
  EXPECT_EQ(direct.run(), (Times{nanoseconds(100 + 1000)}));
  Bench star(machine_of(DimensionKind::switched, 8));
  star.send_at(Time(0), {0, 3, Bytes(1000)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(2 * 100 + 1000)}));
}

TEST(Analytical, AnEmptyMessageIsPureLatency) {
  Bench star(machine_of(DimensionKind::switched, 2));
  star.send_at(Time(0), {0, 1, Bytes(0)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(200)}));
}

TEST(Analytical, MessagesThatLeaveAPortTogetherShareIt) {
  Bench star(machine_of(DimensionKind::switched, 4));
  for (const std::int32_t to : {1, 2, 3}) star.send_at(Time(0), {0, to, Bytes(1000)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(1200), nanoseconds(2200), nanoseconds(3200)}));
}

TEST(Analytical, IncastQueuesAtTheReceiversPort) {
  Bench star(machine_of(DimensionKind::switched, 4));
  for (const std::int32_t from : {1, 2, 3}) star.send_at(Time(0), {from, 0, Bytes(1000)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(1200), nanoseconds(2200), nanoseconds(3200)}));
}

TEST(Analytical, FullyConnectedPeersDoNotShareALink) {
  Bench direct(machine_of(DimensionKind::fully_connected, 4));
  for (const std::int32_t to : {1, 2, 3}) direct.send_at(Time(0), {0, to, Bytes(1000)});
  EXPECT_EQ(direct.run(), (Times{nanoseconds(1100), nanoseconds(1100), nanoseconds(1100)}));
}

TEST(Analytical, ThroughTrafficOnARingUsesTheLinksInBetween) {
  Bench ring(machine_of(DimensionKind::ring, 8));
  ring.send_at(Time(0), {1, 2, Bytes(1000)});
  ring.send_at(Time(0), {0, 2, Bytes(1000)});
  // The second one's first byte is at rank 1 after 100 ns, the link to rank 2 is free after 1000.
  EXPECT_EQ(ring.run(), (Times{nanoseconds(1100), nanoseconds(2100)}));
}

TEST(Analytical, AFreePortIsUsedAtOnce) {
  Bench star(machine_of(DimensionKind::switched, 4));
  star.send_at(Time(0), {0, 1, Bytes(1000)});
  star.send_at(nanoseconds(400), {0, 2, Bytes(1000)});
  star.send_at(nanoseconds(5000), {0, 3, Bytes(1000)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(1200), nanoseconds(2200), nanoseconds(6200)}));
}

TEST(Analytical, TheSlowestDimensionOnTheWaySetsThePace) {
  Machine machine;
  machine.dimensions = {{"fast", DimensionKind::switched, 2, gigabytes_per_second(10), nanoseconds(10)},
                        {"slow", DimensionKind::switched, 2, gigabytes_per_second(1), nanoseconds(100)}};
  Bench bench(machine);
  bench.send_at(Time(0), {0, 3, Bytes(1000)});
  EXPECT_EQ(bench.run(), (Times{nanoseconds(2 * 10 + 2 * 100 + 1000)}));
}

// As what comes from ranks: ranks that folding takes to be alike send in different orders.
TEST(Analytical, WhatSwitchesSendInOneMomentIsServedInTheOrderOfItsLabels) {
  const auto from_switch = [](std::int32_t source, std::uint32_t order) {
    Message message{source, 0, Bytes(1000), 0};
    message.leg = Leg::from_switch;
    message.order = order;
    return message;
  };
  for (const bool turned : {false, true}) {
    Bench star(machine_of(DimensionKind::switched, 4));
    star.send_at(Time(0), from_switch(1, turned ? 1 : 0));
    star.send_at(Time(0), from_switch(2, turned ? 0 : 1));
    Times times = star.run();
    if (turned) std::swap(times[0], times[1]);
    EXPECT_EQ(times, (Times{nanoseconds(1100), nanoseconds(2100)})) << turned;
  }
}

TEST(Analytical, StoreAndForwardPaysForEveryHop) {
  const std::string name = "analytical:switching=store-and-forward";
  Bench ring(machine_of(DimensionKind::ring, 8), name);
  ring.send_at(Time(0), {0, 3, Bytes(1000)});
  EXPECT_EQ(ring.run(), (Times{nanoseconds(3 * (100 + 1000))}));
  // Two messages to one rank meet on its link from the switch, where the second waits for the first.
  Bench star(machine_of(DimensionKind::switched, 4), name);
  for (const std::int32_t from : {1, 2}) star.send_at(Time(0), {from, 0, Bytes(1000)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(2200), nanoseconds(3200)}));
}

TEST(Analytical, UnsharedGivesEveryMessageTheWholeLink) {
  Bench star(machine_of(DimensionKind::switched, 4), "analytical-unshared");
  for (const std::int32_t to : {1, 2, 3}) star.send_at(Time(0), {0, to, Bytes(1000)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(1200), nanoseconds(1200), nanoseconds(1200)}));
  EXPECT_EQ(star.network().links().front().busy, nanoseconds(3000));
}

TEST(Analytical, LinksCountWhatTheyCarried) {
  Bench star(machine_of(DimensionKind::switched, 4));
  star.send_at(Time(0), {0, 1, Bytes(1000)});
  star.send_at(Time(0), {0, 2, Bytes(500)});
  star.run();
  const std::vector<LinkUse> links = star.network().links();
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[0].name, "rank 0 -> switch (net)");
  EXPECT_EQ(links[0].bytes, Bytes(1500));
  EXPECT_EQ(links[0].busy, nanoseconds(1500));
  EXPECT_EQ(links[1].name, "switch -> rank 1 (net)");
  EXPECT_EQ(star.network().messages(), 2);
}

// Both reach the receiver's link at one moment: labels decide, then sources, never the order of sending.
TEST(Analytical, MessagesThatMeetAreServedByTheirLabels) {
  for (const bool first : {false, true}) {
    Bench labels(machine_of(DimensionKind::switched, 4));
    const std::int32_t a = first ? 1 : 2, b = first ? 2 : 1;
    labels.send_at(Time(0), {a, 0, Bytes(1000), kAllDimensions, a == 1 ? 8U : 7U});
    labels.send_at(Time(0), {b, 0, Bytes(1000), kAllDimensions, b == 1 ? 8U : 7U});
    const Times times = labels.run();
    EXPECT_EQ(times[first ? 1 : 0], nanoseconds(1200));
    EXPECT_EQ(times[first ? 0 : 1], nanoseconds(2200));
    Bench sources(machine_of(DimensionKind::switched, 4));
    sources.send_at(Time(0), {a, 0, Bytes(1000)});
    sources.send_at(Time(0), {b, 0, Bytes(1000)});
    EXPECT_EQ(sources.run()[first ? 0 : 1], nanoseconds(1200));
  }
}

TEST(Analytical, SlowLinksAreThoseOfTheirRanks) {
  const std::vector<SlowLinks> slow = {{0, {1, 1}, 0.5, 3}, {1, {0, 3}, 0.1, 1}};
  for (const std::string name : {"analytical", "analytical-unshared"}) {
    Bench star(machine_of(DimensionKind::switched, 4), name, slow);
    star.send_at(Time(0), {0, 1, Bytes(1000)});
    star.send_at(nanoseconds(5000), {1, 2, Bytes(1000)});
    star.send_at(nanoseconds(10000), {0, 2, Bytes(1000)});
    EXPECT_EQ(star.run(), (Times{nanoseconds(100 + 300 + 2000), nanoseconds(5000 + 300 + 100 + 2000),
                                 nanoseconds(10000 + 200 + 1000)}));
    for (const LinkUse& link : star.network().links()) {
      const bool is_slow = link.name.find("rank 1") != std::string::npos;
      EXPECT_EQ(link.bandwidth, gigabytes_per_second(is_slow ? 0.5 : 1)) << link.name;
    }
  }
}

// Ranks 0 and 2 are one class, and so are 1 and 3.
TEST(Analytical, LinksOfAClassAreOne) {
  const std::vector<std::int32_t> stands_for = {0, 1, 0, 1};
  Bench star(machine_of(DimensionKind::switched, 4), "analytical", {}, stands_for);
  star.send_at(Time(0), {0, 3, Bytes(1000)});
  star.send_at(nanoseconds(5000), {1, 2, Bytes(500)});
  EXPECT_EQ(star.run(), (Times{nanoseconds(1200), nanoseconds(5700)}));
  const std::vector<LinkUse> links = star.network().links();
  ASSERT_EQ(links.size(), 4U);
  EXPECT_EQ(links[0].name, "rank 0 -> switch (net)");
  EXPECT_EQ(links[0].links, 2);
  EXPECT_EQ(links[1].name, "switch -> rank 1 (net)");
  EXPECT_EQ(links[2].name, "switch -> rank 0 (net)");
}

// The end of time is never reached: the simulator reports a run that gets there.
TEST(Analytical, AbsurdSizesSaturateInsteadOfOverflowing) {
  Machine machine = machine_of(DimensionKind::switched, 2);
  machine.dimensions[0].bandwidth = Bandwidth(1e-3);
  EventQueue queue;
  struct Receiver : EventHandler {
    void handle(std::uint64_t) override { ADD_FAILURE() << "delivered at the end of time"; }
  } receiver;
  const std::uint32_t target = queue.add_handler(receiver);
  const MessageLabels labels;
  const auto network = make_network({"analytical", {}, "test"}, {machine, queue, labels});
  for (int i = 0; i < 100; ++i) network->send({0, 1, Bytes(INT64_MAX / 2), kAllDimensions, 0, target});
  EXPECT_FALSE(queue.run());
}

TEST(Networks, AnUnknownNameIsAnErrorWithASuggestion) {
  try {
    Bench bench(machine_of(DimensionKind::switched, 2), "analitical");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "test: unknown network 'analitical'\n  hint: did you mean 'analytical'?");
  }
}

}  // namespace
}  // namespace armilla
