#include "network/flit/lagged_random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace armilla {
namespace {

// Knuth's own check: the first number after 2009 rows of 1,009.
std::uint64_t number_after(LaggedRandom::Kind kind, int rows) {
  LaggedRandom random(kind, 310952);
  for (int i = 0; i < rows * 100; ++i) random.next();
  return random.next();
}

TEST(LaggedRandom, GivesTheNumbersThatKnuthPublished) {
  EXPECT_EQ(number_after(LaggedRandom::Kind::integers, 2009), 995235265u);
  EXPECT_NEAR(std::ldexp(static_cast<double>(number_after(LaggedRandom::Kind::fractions, 2009)), -52),
              0.36410514377569680455, 1e-15);
}

TEST(LaggedRandom, TossesCoinsOfAnyProbability) {
  EXPECT_EQ(LaggedRandom::threshold(0), 0u);
  EXPECT_EQ(LaggedRandom::threshold(1), std::uint64_t{1} << 52);
  LaggedRandom random(LaggedRandom::Kind::fractions, 1);
  const std::uint64_t threshold = LaggedRandom::threshold(0.3);
  int heads = 0;
  for (int i = 0; i < 100000; ++i) heads += random.next() < threshold ? 1 : 0;
  EXPECT_NEAR(heads, 30000, 600);  // four standard deviations
}

}  // namespace
}  // namespace armilla
