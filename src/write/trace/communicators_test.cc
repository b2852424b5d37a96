#include "write/trace.h"

#include <gtest/gtest.h>

#include "read/trace.h"

namespace armilla {
namespace {

TEST(WriteCommunicators, ReadBack) {
  Communicators communicators;
  communicators["1"].ranks = {0, 2};
  communicators["2"].ranks = {3, 1};
  const std::string text = write_communicators(communicators);
  EXPECT_EQ(text, "{\"1\":[0,2],\"2\":[3,1]}\n");
  const Communicators read = parse_communicators(text, "groups.json", 4);
  ASSERT_EQ(read.size(), 2);
  EXPECT_EQ(read.at("2").ranks, communicators["2"].ranks);
  EXPECT_EQ(write_communicators({}), "{}\n");
}

}  // namespace
}  // namespace armilla
