#include "network/packet/way_store.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace armilla {
namespace {

std::vector<std::uint32_t> ports_of(const WayStore& store, std::uint32_t way) {
  std::vector<std::uint32_t> ports;
  for (; way != WayStore::kEnd; way = store[way].rest) {
    EXPECT_EQ(store.links(way), store[way].links);
    ports.push_back(store[way].port);
  }
  return ports;
}

// Random ways, many with a common end: each comes back as it was, and the same way is the same step.
TEST(WayStore, KeepsEachWayOnce) {
  std::mt19937_64 random(5);
  WayStore store;
  std::map<std::vector<std::uint32_t>, std::uint32_t> ways;
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::uint32_t> ports(random() % 7);
    for (std::uint32_t& port : ports) port = static_cast<std::uint32_t>(random() % 5);
    const std::uint32_t way = store.add(ports);
    const auto [known, fresh] = ways.try_emplace(ports, way);
    EXPECT_EQ(known->second, way);
  }
  for (const auto& [ports, way] : ways) {
    EXPECT_EQ(ports_of(store, way), ports);
    EXPECT_EQ(store.links(way), ports.size());
    if (ports.size() > 1) {
      EXPECT_EQ(store[way].rest, store.add(std::span(ports).subspan(1)));
    }
  }
}

TEST(WayStore, KeepsEachListOnce) {
  WayStore store;
  const std::uint32_t first = store.add(std::vector<std::uint32_t>{1, 2}),
                      second = store.add(std::vector<std::uint32_t>{3, 2});
  const std::uint32_t both = store.add_list({first, second}), turned = store.add_list({second, first});
  EXPECT_NE(both, turned);
  EXPECT_EQ(store.add_list({first, second}), both);
  EXPECT_EQ(store.of_list(turned, 0), second);
  EXPECT_EQ(store.list(both, 2)[1], second);
}

}  // namespace
}  // namespace armilla
