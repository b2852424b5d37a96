#include "network/routing/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <vector>

namespace armilla {
namespace {

// Host 0, switch 1, host 2: 100 Gbit/s and 10 Gbit/s towards host 2, 40 and 20 back, whichever end is named
// first.
NetworkGraph lopsided(bool is_turned) {
  NetworkGraph graph;
  graph.is_switch = {false, true, false};
  graph.links.push_back({0, 1, 100'000'000'000, 1'000, 0, GraphLink::Back{20'000'000'000, 3'000, 0}});
  if (is_turned) {
    graph.links.push_back({2, 1, 40'000'000'000, 700, 0, GraphLink::Back{10'000'000'000, 500, 0}});
  } else {
    graph.links.push_back({1, 2, 10'000'000'000, 500, 0, GraphLink::Back{40'000'000'000, 700, 0}});
  }
  return graph;
}

TEST(RoutesTest, FiguresAreOfTheDirectionThatDataTake) {
  constexpr std::int64_t kPayload = 1'000;  // 8,000 bits
  constexpr std::int64_t kDelays = 1'000 + 3'000 + 500 + 700;
  for (const bool is_turned : {false, true}) {
    const Routes routes(lopsided(is_turned), kPayload, std::array{0U, 2U});
    const PairFigures there = routes.pair(0, 2), back = routes.pair(2, 0);
    EXPECT_EQ(there.round_trip_ns, kDelays + 80 + 800);
    EXPECT_EQ(there.bits_per_second, 10'000'000'000);
    EXPECT_EQ(there.hops, 2);
    EXPECT_EQ(back.round_trip_ns, kDelays + 200 + 400);
    EXPECT_EQ(back.bits_per_second, 20'000'000'000);
    EXPECT_EQ(routes.largest().round_trip_ns, kDelays + 80 + 800);
    EXPECT_EQ(routes.largest().bandwidth_delay_bytes, back.bandwidth_delay_bytes());
  }
}

// Of several shortest ways the figures are those of the one that a search from the host finds first, which
// visits hosts by number, then switches from the last to the first, as ns-3 does.
TEST(RoutesTest, FiguresAreOfTheWayThatIsFoundFirst) {
  constexpr std::uint32_t kHosts = 5, kNodes = 12;
  constexpr std::int64_t kPayload = 1'000;
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  int several = 0;
  for (int graphs = 0; graphs < 300; ++graphs) {
    NetworkGraph graph;
    for (std::uint32_t node = 0; node < kNodes; ++node) graph.is_switch.push_back(node >= kHosts);
    // Of each link, the time of a payload there and both delays together.
    std::vector<std::vector<std::int64_t>> rate(kNodes, std::vector<std::int64_t>(kNodes)), delay = rate;
    for (std::uint32_t a = 0; a < kNodes; ++a) {
      for (std::uint32_t b = std::max(a + 1, kHosts); b < kNodes; ++b) {
        if (below(3) != 0) continue;
        rate[a][b] = rate[b][a] = (1 + below(8)) * 10'000'000'000;
        delay[a][b] = delay[b][a] = below(1000);
        graph.links.push_back({a, b, rate[a][b], delay[a][b], 0});
      }
    }
    std::vector<std::uint32_t> hosts(kHosts), order(kNodes);
    std::iota(hosts.begin(), hosts.end(), 0U);
    std::iota(order.begin(), order.end(), 0U);
    std::reverse(order.begin() + kHosts, order.end());
    const Routes routes(graph, kPayload, hosts);
    for (const std::uint32_t host : hosts) {
      std::vector<PairFigures> found(kNodes);
      std::vector<std::uint32_t> queue = {host};
      for (std::size_t i = 0; i < queue.size(); ++i) {
        const std::uint32_t here = queue[i];
        if (here < kHosts && here != host) continue;
        for (const std::uint32_t next : order) {
          if (rate[here][next] == 0 || next == host || found[next].hops > 0) continue;
          found[next] = {
              found[here].round_trip_ns + 2 * delay[here][next] + kPayload * 8'000'000'000 / rate[here][next],
              here == host ? rate[here][next] : std::min(found[here].bits_per_second, rate[here][next]),
              found[here].hops + 1};
          queue.push_back(next);
        }
      }
      for (const std::uint32_t source : hosts) {
        if (source == host) continue;
        const PairFigures pair = routes.pair(source, host);
        EXPECT_EQ(pair.round_trip_ns, found[source].round_trip_ns);
        EXPECT_EQ(pair.bits_per_second, found[source].bits_per_second);
        EXPECT_EQ(pair.hops, found[source].hops);
        several += routes.next_ports(source, host).size() > 1 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(several, 100);
}

}  // namespace
}  // namespace armilla
