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

TEST(StringTable, KeepsItsIndicesWhileItGrows) {
  StringTable table;
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(table.add("node " + std::to_string(i)), static_cast<std::uint32_t>(i + 1));
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(table.at(table.find("node " + std::to_string(i))), "node " + std::to_string(i));
}

}  // namespace
}  // namespace armilla
