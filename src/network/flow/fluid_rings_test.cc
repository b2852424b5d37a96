#include "network/flow/fluid_rings.h"

#include <gtest/gtest.h>

#include <random>

#include "network/network_testing.h"

namespace armilla {
namespace {

using Times = std::vector<Time>;

// 1 GB/s moves a byte in a nanosecond.
Machine torus(const std::vector<std::int64_t>& sizes, Time latency = nanoseconds(100)) {
  Machine machine;
  for (const std::int64_t size : sizes) {
    machine.dimensions.push_back({"d" + std::to_string(machine.dimensions.size()), DimensionKind::ring, size,
                                  gigabytes_per_second(1), latency});
  }
  return machine;
}

Sent message(std::int32_t source, std::int32_t destination, std::int64_t bytes, std::uint16_t sender,
             Time at) {
  Sent sent{{source, destination, Bytes(bytes)}, at};
  sent.message.sender = sender;
  return sent;
}

TEST(FluidRings, WhatPassesDoesNotWaitForGradients) {
  // The second is there at 1300 ns, takes half of the link in its way until 3300, and 1000 bytes of the
  // first's time.
  const std::vector<Sent> sent = {message(1, 2, 10'000, 1, Time(0)),
                                  message(0, 3, 1000, 0, nanoseconds(1000))};
  EXPECT_EQ(play(torus({8}), "analytical", sent, 1).arrivals,
            (Times{nanoseconds(11'100), nanoseconds(3300)}));
  EXPECT_EQ(play(torus({8}), "analytical:sharing=first-come", sent, 1).arrivals,
            (Times{nanoseconds(10'100), nanoseconds(11'200)}));
}

TEST(FluidRings, MessagesOfOneSenderToOneRankWaitForEachOther) {
  const std::vector<Sent> sent = {message(0, 2, 1000, 1, Time(0)), message(0, 2, 1000, 1, Time(0)),
                                  message(0, 2, 1000, 2, Time(0))};
  // Two share until 2200 ns; the last is alone then.
  EXPECT_EQ(play(torus({8}), "analytical", sent, 1).arrivals,
            (Times{nanoseconds(2200), nanoseconds(3200), nanoseconds(2200)}));
}

// A link that three share leaves each a third, also of links where they are two.
TEST(FluidRings, TheNarrowestLinkOfAWayBoundsItEverywhere) {
  const std::vector<Sent> sent = {message(0, 3, 3000, 1, Time(0)), message(2, 3, 3000, 2, nanoseconds(200)),
                                  message(2, 3, 3000, 3, nanoseconds(200)),
                                  message(0, 1, 4000, 4, nanoseconds(200))};
  // The first moves at a third from 300 ns on, beside the fourth's two thirds of the link 0 -> 1: that is
  // through with 4000 bytes at 6300 ns, the others with 3000 at 9300.
  EXPECT_EQ(play(torus({8}), "analytical", sent, 1).arrivals,
            (Times{nanoseconds(9300), nanoseconds(9300), nanoseconds(9300), nanoseconds(6300)}));
}

TEST(FluidRings, LinksSayForHowLongTheyWereShared) {
  const std::vector<Sent> sent = {message(1, 2, 10'000, 1, Time(0)),
                                  message(0, 3, 1000, 0, nanoseconds(1000))};
  const std::vector<LinkUse> links = play(torus({8}), "analytical", sent, 1).links;
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[0].bytes, Bytes(11'000));
  EXPECT_EQ(links[0].busy, nanoseconds(11'000));
  EXPECT_EQ(links[0].shared, nanoseconds(2000));
  EXPECT_EQ(links[0].senders, 2);
  EXPECT_EQ(links[1].shared, Time(0));
}

TEST(FluidRings, ALoneMessagePaysForItsSizeOnce) {
  Machine machine = torus({4, 4});
  machine.dimensions.push_back(
      {"net", DimensionKind::switched, 2, gigabytes_per_second(1), nanoseconds(100)});
  // Two hops in the first ring, one in the second, two through the switch.
  const std::vector<Sent> sent = {message(0, 2 + 4 + 16, 1000, 1, nanoseconds(50))};
  for (std::uint32_t shared = 0; shared < 8; ++shared) {
    // Behind two links that are not shared it comes to those that are when its last byte does, 900 ns late.
    const bool is_late = (shared & 3) == 2;
    EXPECT_EQ(play(machine, "analytical", sent, shared).arrivals, Times{nanoseconds(is_late ? 2450 : 1550)})
        << shared;
  }
  // But where every node passes on whole messages.
  for (std::uint32_t shared = 0; shared < 8; ++shared) {
    EXPECT_EQ(play(machine, "analytical:switching=store-and-forward", sent, shared).arrivals,
              Times{nanoseconds(50 + 5 * 1100)})
        << shared;
  }
}

struct Nobody final : Fluids::Client {
  void begins(std::uint32_t) override {}
  void is_through(std::uint32_t) override {}
};

// Of a message that moves and one that waits for it, both there at `time`.
Digest state_of_two_from(Time time) {
  EventQueue queue;
  Nobody nobody;
  Fluids fluids(queue, MaxMin(std::vector<double>{1e9}), nobody);
  const std::uint32_t connection = fluids.add_connection();
  const MaxMin::Use use{0, 1};
  fluids.open({&use, 1}, Bytes(1000), connection, time);
  fluids.open({&use, 1}, Bytes(1000), connection, time);
  queue.run(time + Time(1));
  fluids.round_over();
  StateDigest state;
  fluids.add_state(state, [](std::uint32_t fluid) { return digest_of(fluid); });
  return state.value();
}

// What waits has no end yet, however late it is: else no run with waiting messages would be the same again
// (sim/fold/time_fold.h).
TEST(FluidRings, TheStateOfWhatWaitsDoesNotTellTheTime) {
  const Digest early = state_of_two_from(nanoseconds(100)), late = state_of_two_from(nanoseconds(900));
  EXPECT_EQ(early.low, late.low);
  EXPECT_EQ(early.high, late.high);
}

TEST(FluidRings, AnEmptyMessageIsPureLatency) {
  EXPECT_EQ(play(torus({8}), "analytical", {message(0, 3, 0, 1, Time(0))}, 1).arrivals,
            Times{nanoseconds(300)});
}

// Where all dimensions are rings and shared, flow's network does the same, over links of its own.
TEST(FluidRings, AToreWhoseLinksAreSharedIsThatOfFlow) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t end) { return static_cast<std::int32_t>(random() % end); };
  for (int round = 0; round < 60; ++round) {
    Machine machine = torus({2 + below(5), 3 + below(3), 2 + below(2)}, nanoseconds(below(3) * 50));
    machine.dimensions[1].bandwidth = gigabytes_per_second(0.7);
    const auto ranks = static_cast<std::uint32_t>(rank_count(machine));
    std::vector<Sent> sent;
    for (int i = 0; i < 80; ++i) {
      const std::int32_t from = below(ranks),
                         to = static_cast<std::int32_t>(
                             (static_cast<std::uint32_t>(from) + 1 + random() % (ranks - 1)) % ranks);
      sent.push_back(message(from, to, below(5) * 1000, static_cast<std::uint16_t>(below(3)),
                             nanoseconds(100 * below(40))));
    }
    const Seen rings = play(machine, "analytical", sent, 7);
    const Seen flow = play(machine, "flow:routing=dimension-order", sent, 7);
    EXPECT_EQ(rings.arrivals, flow.arrivals) << round;
    EXPECT_EQ(sum_of_bytes(rings.links), sum_of_bytes(flow.links)) << round;
  }
}

}  // namespace
}  // namespace armilla
