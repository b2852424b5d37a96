#include "ir/issued.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace armilla {
namespace {

using ::testing::ElementsAre;

std::vector<std::tuple<NodeKind, std::uint64_t, std::uint32_t, std::int64_t>> items_of(const Issued& issued) {
  std::vector<std::tuple<NodeKind, std::uint64_t, std::uint32_t, std::int64_t>> items;
  for (const IssuedItem& item : issued.items)
    items.emplace_back(item.kind, item.payload, item.first_node, item.count);
  return items;
}

TEST(Issued, EverythingOnceAndCallsInOrder) {
  Program program;
  const auto add = [&](NodeKind kind, std::uint64_t payload) {
    program.add(kind, Phase::other, 0, -1, payload, {});
  };
  add(NodeKind::compute, 0);
  add(NodeKind::collective, 3);
  add(NodeKind::send, 3);
  add(NodeKind::collective, 1);
  add(NodeKind::delay, 3);
  add(NodeKind::collective, 3);
  add(NodeKind::receive, 3);
  add(NodeKind::memory_load, 64);
  add(NodeKind::send, 3);
  add(NodeKind::memory_store, 64);
  const Issued issued = issued_by(program);
  EXPECT_THAT(
      items_of(issued),
      ElementsAre(std::tuple(NodeKind::collective, 3, 1, 2), std::tuple(NodeKind::send, 3, 2, 2),
                  std::tuple(NodeKind::collective, 1, 3, 1), std::tuple(NodeKind::receive, 3, 6, 1),
                  std::tuple(NodeKind::memory_load, 64, 7, 1), std::tuple(NodeKind::memory_store, 64, 9, 1)));
  EXPECT_THAT(issued.calls, ElementsAre(3, 1, 3));
}

TEST(Issued, AProgramThatOnlyComputesIssuesNothing) {
  Program program;
  program.add(NodeKind::compute, Phase::forward, 0, -1, 0, {});
  EXPECT_TRUE(issued_by(program).items.empty());
  EXPECT_TRUE(issued_by(program).calls.empty());
}

}  // namespace
}  // namespace armilla
