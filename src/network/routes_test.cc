#include "network/routes.h"

#include <gtest/gtest.h>

#include <array>

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

}  // namespace
}  // namespace armilla
