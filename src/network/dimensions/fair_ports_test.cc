#include "network/dimensions/fair_ports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "network/network.h"

namespace armilla {
namespace {

// 1 GB/s moves a byte in a nanosecond.
Machine star_of(std::int64_t size) {
  Machine machine;
  machine.dimensions = {{"net", DimensionKind::switched, size, gigabytes_per_second(1), nanoseconds(100)}};
  return machine;
}

struct Sending {
  std::int32_t source = 0, destination = 0;
  Bytes bytes;
  std::uint16_t sender = 0;
  Time at;
};

// Over links that several senders share.
class FairBench : public MessageLabels, public EventHandler {
 public:
  explicit FairBench(const Machine& machine, const std::string& name = "analytical")
      : target_(queue_.add_handler(*this)) {
    NetworkSetup setup{machine, queue_, *this};
    setup.shared_dimensions = UINT32_MAX;
    network_ = make_network(parse_component(name, "test"), setup);
  }
  std::vector<Time> run(const std::vector<Sending>& sendings) {
    sendings_ = sendings;
    arrivals_.assign(sendings.size(), Time(-1));
    for (std::size_t i = 0; i < sendings.size(); ++i) queue_.schedule(sendings[i].at, target_, 2 * i);
    EXPECT_TRUE(queue_.run());
    return arrivals_;
  }
  std::vector<LinkUse> links() const { return network_->links(); }
  void handle(std::uint64_t argument) override {
    const std::size_t i = argument / 2;
    if (argument % 2 == 1) {
      EXPECT_EQ(arrivals_[i], Time(-1)) << "arrived twice";
      arrivals_[i] = queue_.now();
      return;
    }
    const Sending& sending = sendings_[i];
    Message message{sending.source, sending.destination, sending.bytes};
    message.target = target_;
    message.argument = 2 * i + 1;
    message.sender = sending.sender;
    network_->send(message);
  }

 private:
  EventQueue queue_;
  std::uint32_t target_;
  std::unique_ptr<Network> network_;
  std::vector<Sending> sendings_;
  std::vector<Time> arrivals_;
};

using Times = std::vector<Time>;

TEST(FairPorts, AMessageOfAPipelineDoesNotWaitForGradients) {
  const std::vector<Sending> sent = {{0, 1, Bytes(10'000), 1, Time(0)},
                                     {0, 2, Bytes(1000), 0, nanoseconds(1000)}};
  EXPECT_EQ(FairBench(star_of(4)).run(sent), (Times{nanoseconds(11'200), nanoseconds(3200)}));
  EXPECT_EQ(FairBench(star_of(4), "analytical:sharing=first-come").run(sent),
            (Times{nanoseconds(10'200), nanoseconds(11'200)}));
}

TEST(FairPorts, LinksSayForHowLongTheyWereShared) {
  for (const char* const network : {"analytical", "flow"}) {
    FairBench bench(star_of(4), network);
    bench.run({{0, 1, Bytes(10'000), 1, Time(0)}, {0, 2, Bytes(1000), 0, nanoseconds(1000)}});
    const std::vector<LinkUse> links = bench.links();
    ASSERT_EQ(links.size(), 3U);
    EXPECT_EQ(links[0].bytes, Bytes(11'000)) << network;
    EXPECT_EQ(links[0].shared, nanoseconds(2000)) << network;
    EXPECT_EQ(links[0].senders, 2) << network;
    EXPECT_EQ(links[1].shared, Time(0)) << network;
  }
}

TEST(FairPorts, MessagesOfOneSenderWaitForEachOther) {
  const std::vector<Sending> sent = {
      {0, 1, Bytes(1000), 1, Time(0)}, {0, 2, Bytes(1000), 1, Time(0)}, {0, 3, Bytes(1000), 0, Time(0)}};
  // The first and the third share until both are through; the second is alone then.
  EXPECT_EQ(FairBench(star_of(4)).run(sent),
            (Times{nanoseconds(2200), nanoseconds(3200), nanoseconds(2200)}));
}

TEST(FairPorts, OneSenderIsServedAsIfThereWereNoPorts) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Sending> sent;
    for (int i = 0; i < 40; ++i) {
      const auto source = static_cast<std::int32_t>(random() % 4);
      sent.push_back({source, static_cast<std::int32_t>((source + 1 + random() % 3) % 4),
                      Bytes(random() % 3000), 5, nanoseconds(random() % 20'000)});
    }
    EXPECT_EQ(FairBench(star_of(4)).run(sent),
              FairBench(star_of(4), "analytical:sharing=first-come").run(sent));
  }
}

// What came slowly has been served in what others left: 1,000 ns of work until 1,500.
TEST(FairPorts, MessagesFillGapsWhereTheyComeIn) {
  const std::vector<Sending> sent = {{1, 0, Bytes(1000), 1, Time(0)},
                                     {2, 0, Bytes(100), 0, nanoseconds(400)},
                                     {3, 0, Bytes(100), 0, nanoseconds(700)}};
  EXPECT_EQ(FairBench(star_of(4)).run(sent), (Times{nanoseconds(1400), nanoseconds(700), nanoseconds(1000)}));
}

TEST(FairPorts, TwoThatComeAtHalfRateFillALink) {
  // Each shares its own rank's link with another, which goes elsewhere.
  const std::vector<Sending> sent = {{1, 0, Bytes(1000), 1, Time(0)},
                                     {1, 3, Bytes(1000), 2, Time(0)},
                                     {2, 0, Bytes(1000), 3, Time(0)},
                                     {2, 4, Bytes(1000), 4, Time(0)}};
  EXPECT_EQ(FairBench(star_of(5)).run(sent), Times(4, nanoseconds(2200)));
}

// One port, message by message, beside equal shares worked out step by step.
TEST(FairPorts, AreWhatEqualSharesGive) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<Sending> sent;
    const int count = 1 + static_cast<int>(random() % 20);
    for (int i = 0; i < count; ++i) {
      sent.push_back({0, i + 1, Bytes(1 + static_cast<std::int64_t>(random() % 2000)),
                      static_cast<std::uint16_t>(random() % 4), nanoseconds(random() % 9000)});
    }
    std::ranges::stable_sort(sent, {}, &Sending::at);
    Times found = FairBench(star_of(count + 1)).run(sent);
    std::vector<double> left;
    for (const Sending& sending : sent) left.push_back(static_cast<double>(sending.bytes.value));
    std::vector<double> expected(sent.size());
    double now = 0;
    std::size_t done = 0;
    while (done < sent.size()) {
      std::map<std::uint16_t, std::size_t> first;
      double next = 1e30;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        const double at = static_cast<double>(sent[i].at.value) / 1000;
        if (at > now + 1e-6) next = std::min(next, at);
        if (at <= now + 1e-6 && left[i] > 0) first.try_emplace(sent[i].sender, i);
      }
      const auto sharers = static_cast<double>(first.size());
      for (const auto& [sender, i] : first) next = std::min(next, now + left[i] * sharers);
      for (const auto& [sender, i] : first) {
        left[i] -= (next - now) / sharers;
        if (left[i] > 1e-6) continue;
        left[i] = 0;
        expected[i] = next;
        ++done;
      }
      now = next;
    }
    for (std::size_t i = 0; i < sent.size(); ++i)
      EXPECT_NEAR(static_cast<double>(found[i].value) / 1000, expected[i] + 200, 0.05) << i;
  }
}

TEST(FairPorts, OrderWithinAMomentDoesNotMatter) {
  const Sending gradient{0, 1, Bytes(3000), 1, nanoseconds(500)},
      message{0, 2, Bytes(1000), 0, nanoseconds(500)}, other{0, 3, Bytes(2000), 2, nanoseconds(500)};
  const Times found = FairBench(star_of(4)).run({gradient, message, other});
  EXPECT_EQ(found, (Times{nanoseconds(6700), nanoseconds(3700), nanoseconds(5700)}));
  EXPECT_EQ(FairBench(star_of(4)).run({other, message, gradient}), (Times{found[2], found[1], found[0]}));
}

// Of more gaps than are remembered the oldest are taken for filled, not for free.
TEST(FairPorts, WhatIsForgottenIsNotGivenTwice) {
  Intake intake;
  constexpr std::int64_t kMessages = 3000;
  for (std::int64_t i = 0; i < kMessages; ++i)
    intake.book(1, nanoseconds(10 * i), nanoseconds(10 * i), nanoseconds(5));
  const Intake::Served served = intake.book(2, Time(0), Time(0), nanoseconds(5 * kMessages));
  EXPECT_GE(served.end, nanoseconds(10 * kMessages));
}

// Links carry what they carry, whoever shares them: bytes, and time over time.
TEST(FairPorts, NothingIsCarriedFasterThanItsLinksAllow) {
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    std::vector<Sending> sent;
    for (int i = 0; i < 30; ++i) {
      const auto source = static_cast<std::int32_t>(1 + random() % 4);
      sent.push_back({source, 0, Bytes(1 + static_cast<std::int64_t>(random() % 2000)),
                      static_cast<std::uint16_t>(random() % 3), nanoseconds(random() % 4000)});
    }
    const Times found = FairBench(star_of(5)).run(sent);
    std::int64_t bytes = 0;
    Time first = kEndOfTime, last(0);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      bytes += sent[i].bytes.value;
      first = std::min(first, sent[i].at);
      last = std::max(last, found[i]);
      EXPECT_GE(found[i], sent[i].at + nanoseconds(200 + sent[i].bytes.value));
    }
    EXPECT_GE(last, first + nanoseconds(200 + bytes));
  }
}

}  // namespace
}  // namespace armilla
