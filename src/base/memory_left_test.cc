#include "base/memory_left.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace armilla {
namespace {

TEST(MemoryLeft, IsSomeAndNoMoreThanTheProcessMayTake) {
  EXPECT_GT(memory_left(), Bytes(1 << 20));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  // Less than the program has already: nothing is left.
  const rlimit small{1 << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  const Bytes left = memory_left();
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(left, Bytes(0));
}

}  // namespace
}  // namespace armilla
