#include "write/report/alike.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

TEST(Alike, NamesThatDifferInNumbersAreOne) {
  EXPECT_EQ(name_of_all({"rank"}), "rank");
  EXPECT_EQ(name_of_all({"pipeline rank 1", "pipeline rank 2", "pipeline rank 3"}), "pipeline ranks 1-3");
  EXPECT_EQ(name_of_all({"layer0", "layer1", "layer3"}), "layer0,1,3");
  EXPECT_EQ(name_of_all({"stage 10", "stage 9", "stage 11"}), "stages 9-11");
  EXPECT_EQ(name_of_all({"layer1.0.conv1/Conv", "layer1.1.conv1/Conv"}), "layer1.0,1.conv1/Conv");
  EXPECT_EQ(name_of_all({"pipeline rank 0, expert position 2", "pipeline rank 0, expert position 3",
                         "pipeline rank 1, expert position 2", "pipeline rank 1, expert position 3"}),
            "pipeline ranks 0,1, expert positions 2,3");
}

TEST(Alike, NamesWithoutAPatternAreCounted) {
  EXPECT_EQ(name_of_all({"embedding", "head"}), "embedding and 1 more");
  // Position 3 of rank 0 is missing.
  EXPECT_EQ(name_of_all({"rank 0, position 2", "rank 1, position 2", "rank 1, position 3"}),
            "rank 0, position 2 and 2 more");
  EXPECT_EQ(name_of_all({"a 1", "a 3", "a 5", "a 7"}), "a 1 and 3 more");
  EXPECT_EQ(name_of_all({"conv_01", "conv_02"}), "conv_01 and 1 more");
  EXPECT_EQ(name_of_all({"same 1", "same 1"}), "same 1 and 1 more");
}

}  // namespace
}  // namespace armilla
