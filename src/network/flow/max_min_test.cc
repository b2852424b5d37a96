#include "network/flow/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace armilla {
namespace {

struct Sharing {
  std::vector<double> capacities;
  std::vector<std::vector<MaxMin::Use>> flows;
  std::vector<double> weights;
};

// All rates grow together, by weight, until a link is full; its flows stop, the others go on.
std::vector<double> obvious_rates(const Sharing& sharing, const std::vector<bool>& there) {
  std::vector<double> rates(sharing.flows.size());
  std::vector<bool> growing = there;
  while (std::find(growing.begin(), growing.end(), true) != growing.end()) {
    double least = 1e300;
    std::vector<double> can_grow(sharing.capacities.size(), 1e300);
    for (std::size_t link = 0; link < sharing.capacities.size(); ++link) {
      double left = sharing.capacities[link], weight = 0;
      for (std::size_t flow = 0; flow < rates.size(); ++flow) {
        for (const MaxMin::Use& use : sharing.flows[flow]) {
          if (use.link != link || !there[flow]) continue;
          left -= use.share * rates[flow];
          if (growing[flow]) weight += use.share * sharing.weights[flow];
        }
      }
      if (weight > 0) can_grow[link] = std::max(0.0, left) / weight;
      least = std::min(least, can_grow[link]);
    }
    for (std::size_t flow = 0; flow < rates.size(); ++flow) {
      if (growing[flow]) rates[flow] += least * sharing.weights[flow];
    }
    for (std::size_t flow = 0; flow < rates.size(); ++flow) {
      for (const MaxMin::Use& use : sharing.flows[flow]) {
        if (can_grow[use.link] <= least * (1 + 1e-12)) growing[flow] = false;
      }
    }
  }
  return rates;
}

TEST(MaxMin, AgreesWithFillingUpWhileFlowsComeAndGo) {
  std::mt19937 random(5);
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    Sharing sharing;
    const int links = 1 + below(8), flows = 1 + below(12);
    for (int i = 0; i < links; ++i) sharing.capacities.push_back(1 + below(10));
    for (int i = 0; i < flows; ++i) {
      std::vector<MaxMin::Use> uses;
      for (int link = 0; link < links; ++link) {
        if (below(3) == 0)
          uses.push_back({.link = static_cast<std::uint32_t>(link), .share = below(2) == 0 ? 1.0 : 0.05});
      }
      if (uses.empty()) uses.push_back({.link = 0, .share = 1.0});
      sharing.flows.push_back(uses);
      sharing.weights.push_back(1 + below(3));
    }
    MaxMin shares(sharing.capacities);
    for (std::size_t flow = 0; flow < sharing.flows.size(); ++flow)
      shares.open(sharing.flows[flow], sharing.weights[flow]);
    std::vector<bool> there(sharing.flows.size());
    for (int step = 0; step < 30; ++step) {
      for (int change = below(3); change >= 0; --change) {
        const int flow = below(flows);
        const bool is_there = there[static_cast<std::size_t>(flow)];
        is_there ? shares.remove(static_cast<std::uint32_t>(flow))
                 : shares.add(static_cast<std::uint32_t>(flow));
        there[static_cast<std::size_t>(flow)] = !is_there;
      }
      shares.solve();
      const std::vector<double> expected = obvious_rates(sharing, there);
      for (std::uint32_t flow = 0; flow < expected.size(); ++flow) {
        ASSERT_NEAR(shares.rate(flow), expected[flow], 1e-9 * (1 + expected[flow])) << "round " << round;
      }
    }
  }
}

// Two pairs of links without a flow in common: a change in one leaves the other alone.
TEST(MaxMin, LooksOnlyAtWhatIsConnected) {
  MaxMin shares(std::vector<double>{10, 10});
  for (const std::uint32_t link : {0, 0, 1, 1}) shares.open(std::vector<MaxMin::Use>{{link, 1}});
  for (std::uint32_t flow = 0; flow < 4; ++flow) shares.add(flow);
  EXPECT_EQ(shares.solve().size(), 4U);
  shares.remove(1);
  const std::span<const std::uint32_t> changed = shares.solve();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0], 0U);
  EXPECT_EQ(shares.rate(0), 10);
  EXPECT_EQ(shares.rate(2), 5);
}

// What is kept of rates is what working out everything gives, to the last bit.
TEST(MaxMin, KeepsOnlyWhatWouldComeOutAgain) {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  std::int64_t looked_at = 0, there_at_all = 0, replaced = 0;
  for (int round = 0; round < 600; ++round) {
    // Some with many ties, some with hardly any; ways of one link to all.
    const std::uint32_t links = 2 + below(12), flows = 2 + below(24), kinds = 1 + below(9);
    std::vector<double> capacities;
    for (std::uint32_t i = 0; i < links; ++i)
      capacities.push_back((1 + below(kinds)) * 1e9 / (1 + below(kinds)));
    std::vector<std::vector<MaxMin::Use>> uses(flows);
    const std::uint32_t rarely = 1 + below(links);
    const bool whole = below(2) == 0;  // no flow takes a share of a link
    MaxMin kept(capacities);
    for (std::vector<MaxMin::Use>& of_flow : uses) {
      for (std::uint32_t link = 0; link < links; ++link) {
        const double share =
            whole || below(3) > 0 ? 1.0 : std::round((1 + below(3)) / 3.0 / kShareUnit) * kShareUnit;
        if (below(rarely) == 0) of_flow.push_back({link, 1 + below(2), share});
      }
      if (of_flow.empty()) of_flow.push_back({below(links), 1, 1});
    }
    for (std::uint32_t flow = 1; flow < flows; flow += 2) {
      if (below(4) == 0) uses[flow] = uses[flow - 1];
    }
    for (const std::vector<MaxMin::Use>& of_flow : uses) kept.open(of_flow);
    std::vector<bool> there(flows);
    for (int step = 0; step < 40; ++step) {
      for (std::uint32_t change = below(3) + 1; change > 0; --change) {
        const std::uint32_t flow = below(flows);
        // Another that is alike may take its place, before or after others change.
        const std::uint32_t twin = flow % 2 == 0 ? flow + 1 : flow - 1;
        if (twin < flows && there[flow] && !there[twin] && kept.replace(flow, twin)) {
          there[twin] = true;
          ++replaced;
        } else {
          there[flow] ? kept.remove(flow) : kept.add(flow);
        }
        there[flow] = !there[flow];
      }
      looked_at += static_cast<std::int64_t>(kept.solve().size());
      MaxMin anew(capacities);
      for (std::uint32_t flow = 0; flow < flows; ++flow) {
        anew.open(uses[flow]);
        if (there[flow]) anew.add(flow);
      }
      there_at_all += static_cast<std::int64_t>(anew.solve().size());
      for (std::uint32_t flow = 0; flow < flows; ++flow) ASSERT_EQ(kept.rate(flow), anew.rate(flow)) << round;
    }
  }
  EXPECT_LT(4 * looked_at, 3 * there_at_all);
  EXPECT_GT(replaced, 500);
}

// In any order, to the last bit.
TEST(MaxMin, CopiesAreAsManyFlows) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t links = 1 + below(6), kinds = 1 + below(6);
    std::vector<double> capacities;
    for (std::uint32_t i = 0; i < links; ++i) capacities.push_back((1 + below(5)) * 1e9 / (1 + below(3)));
    MaxMin together(capacities), apart(capacities);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;  // kind, flow of `apart`
    for (std::uint32_t kind = 0; kind < kinds; ++kind) {
      const std::uint32_t copies = 1 + below(7);
      std::vector<MaxMin::Use> uses;
      for (std::uint32_t link = 0; link < links; ++link) {
        const double share = std::round((1 + below(3)) / 3.0 / kShareUnit) * kShareUnit;
        if (below(2) == 0) uses.push_back({link, copies, share});
      }
      if (uses.empty()) uses.push_back({0, copies, 1});
      together.add(together.open(uses));
      for (MaxMin::Use& use : uses) use.copies = 1;
      for (std::uint32_t copy = 0; copy < copies; ++copy) numbers.emplace_back(kind, apart.open(uses));
    }
    std::shuffle(numbers.begin(), numbers.end(), random);
    for (const auto& [kind, flow] : numbers) apart.add(flow);
    together.solve();
    apart.solve();
    for (const auto& [kind, flow] : numbers) ASSERT_EQ(apart.rate(flow), together.rate(kind)) << round;
  }
}

}  // namespace
}  // namespace armilla
