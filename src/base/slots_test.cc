#include "base/slots.h"

#include <gtest/gtest.h>

#include <string>

namespace armilla {
namespace {

TEST(Slots, GiveTheNumberOfTheLatestThatWentAgain) {
  Slots<std::string> slots;
  EXPECT_TRUE(slots.empty());
  EXPECT_EQ(slots.add("a"), 0U);
  EXPECT_EQ(slots.add("b"), 1U);
  EXPECT_EQ(slots.add("c"), 2U);
  EXPECT_EQ(slots.remove(0), "a");
  slots.release(1);
  EXPECT_FALSE(slots.empty());
  EXPECT_EQ(slots.add("d"), 1U);
  EXPECT_EQ(slots.take(), 0U);
  EXPECT_EQ(slots.take(), 3U);
  EXPECT_EQ(slots[1], "d");
  EXPECT_EQ(slots[2], "c");
}

TEST(Slots, VisitWhatIsThereInOrder) {
  Slots<int> slots;
  for (const int value : {10, 11, 12, 13}) slots.add(value);
  slots.release(1);
  std::vector<int> seen;
  slots.for_each([&](int value) { seen.push_back(value); });
  EXPECT_EQ(seen, (std::vector<int>{10, 12, 13}));
  for (const std::uint32_t number : {0U, 2U, 3U}) slots.release(number);
  EXPECT_TRUE(slots.empty());
}

TEST(Blocks, AreUsedAgainForAsMany) {
  Blocks<int> blocks;
  const std::uint32_t first = blocks.take(3), second = blocks.take(2);
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(second, 3U);
  blocks[4] = 7;
  blocks.release(first, 3);
  EXPECT_EQ(blocks.take(2), 5U);
  EXPECT_EQ(blocks.take(3), 0U);
  EXPECT_EQ(blocks.size(), 7U);
  EXPECT_EQ(blocks[4], 7);
  EXPECT_EQ(blocks.number_of(blocks[4]), 4U);
}

}  // namespace
}  // namespace armilla
