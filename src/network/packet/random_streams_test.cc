#include "network/packet/random_streams.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

// The generator without matrices: advanced one draw at a time.
TEST(RandomStreams, GoesToTheNextStreamAsFromTheStart) {
  RandomStream third(1, 3), walking(1, 0);
  for (int i = 0; i < 3; ++i) {
    walking.next();
    walking.next_stream();
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(third.next(), walking.next());
}

TEST(RandomStreams, IsUniform) {
  RandomStream stream(7, 5);
  double sum = 0, squares = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = stream.next();
    ASSERT_GT(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

}  // namespace
}  // namespace armilla
