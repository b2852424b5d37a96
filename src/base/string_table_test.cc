#include "base/string_table.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(StringTable, GivesEqualStringsOneIndex) {
  StringTable table;
  EXPECT_EQ(table.add(""), 0u);
  EXPECT_EQ(table.add("fc1"), 1u);
  EXPECT_EQ(table.add("fc2"), 2u);
  EXPECT_EQ(table.add("fc1"), 1u);
  EXPECT_EQ(table.at(1), "fc1");
  EXPECT_EQ(table.size(), 3u);
}

TEST(StringTable, FindsOnlyWhatWasAdded) {
  StringTable table;
  table.add("fc1");
  EXPECT_EQ(table.find("fc1"), 1u);
  EXPECT_EQ(table.find("fc"), UINT32_MAX);
}

TEST(StringTable, AppendedTextIsNotFoundAgain) {
  StringTable table;
  EXPECT_EQ(table.append("fc1"), 1u);
  EXPECT_EQ(table.append("fc1"), 2u);
  EXPECT_EQ(table.at(2), "fc1");
  EXPECT_EQ(table.find("fc1"), UINT32_MAX);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(table.add(std::to_string(i)), static_cast<std::uint32_t>(i + 3));
  EXPECT_EQ(table.add("7"), 10u);
}

TEST(StringTable, KeepsItsIndicesWhileItGrows) {
  StringTable table;
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(table.add("node " + std::to_string(i)), static_cast<std::uint32_t>(i + 1));
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(table.at(table.find("node " + std::to_string(i))), "node " + std::to_string(i));
}

TEST(StringTable, RoomForMoreChangesNothing) {
  StringTable table;
  const std::uint32_t first = table.add("first");
  table.expect("second");
  table.reserve(1000);
  EXPECT_EQ(table.add("first"), first);
  EXPECT_EQ(table.find("second"), UINT32_MAX);
  EXPECT_EQ(table.at(table.add("second")), "second");
  table.reserve(1);
  EXPECT_EQ(table.find("first"), first);
}

}  // namespace
}  // namespace armilla
