#include "network/flit/lagged_random.h"

#include <algorithm>

namespace armilla {

// The state is z^(2^70 seed ...) modulo the polynomial of the recurrence: squared 70 times, multiplied by z
// where the seed has a bit, in rising order, so that streams of different seeds lie far apart.
LaggedRandom::LaggedRandom(Kind kind, std::int64_t seed)
    : kind_(kind), mask_((std::uint64_t{1} << (kind == Kind::integers ? 30 : 52)) - 1) {
  constexpr std::uint64_t kSeedMask = (std::uint64_t{1} << 30) - 1;
  const auto given = static_cast<std::uint64_t>(seed);
  std::array<std::uint64_t, 2 * kLong - 1> x = {};
  std::uint64_t start =
      kind == Kind::integers ? (given + 2) & (kSeedMask - 1) : 2 * ((given & kSeedMask) + 2);
  for (std::size_t i = 0; i < kLong; ++i) {
    x[i] = start;
    start <<= 1;  // rotated, the lowest bit left at zero
    if (start > mask_) start -= mask_ - 1;
  }
  x[1] += 1;  // the only odd one

  std::uint64_t bits = given & kSeedMask;
  for (int squarings = 69; squarings > 0;) {
    for (std::size_t i = kLong - 1; i > 0; --i) {
      x[2 * i] = x[i];
      x[2 * i - 1] = 0;
    }
    for (std::size_t i = 2 * kLong - 2; i >= kLong; --i) {
      x[i - (kLong - kShort)] = combined(x[i - (kLong - kShort)], x[i]);
      x[i - kLong] = combined(x[i - kLong], x[i]);
    }
    if (bits % 2 == 1) {
      std::copy_backward(x.begin(), x.begin() + kLong, x.begin() + kLong + 1);
      x[0] = x[kLong];
      x[kShort] = combined(x[kShort], x[kLong]);
    }
    if (bits > 0)
      bits >>= 1;
    else
      --squarings;
  }
  std::rotate_copy(x.begin(), x.begin() + kShort, x.begin() + kLong, state_.begin());
  for (int i = 0; i < 10; ++i) fill(x.data(), x.size());
}

// `count` numbers, at least kLong; the state afterwards is the kLong that would follow.
template <LaggedRandom::Kind kind>
void LaggedRandom::fill_as(std::uint64_t* numbers, std::size_t count) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << (kind == Kind::integers ? 30 : 52)) - 1;
  const auto next = [](std::uint64_t older, std::uint64_t newer) {
    return (kind == Kind::integers ? older - newer : older + newer) & kMask;
  };
  std::copy(state_.begin(), state_.end(), numbers);
  for (std::size_t i = kLong; i < count; ++i) numbers[i] = next(numbers[i - kLong], numbers[i - kShort]);
  for (std::size_t i = 0; i < kShort; ++i)
    state_[i] = next(numbers[count - kLong + i], numbers[count - kShort + i]);
  for (std::size_t i = kShort; i < kLong; ++i)
    state_[i] = next(numbers[count - kLong + i], state_[i - kShort]);
}

void LaggedRandom::fill(std::uint64_t* numbers, std::size_t count) {
  if (kind_ == Kind::integers)
    fill_as<Kind::integers>(numbers, count);
  else
    fill_as<Kind::fractions>(numbers, count);
}

void LaggedRandom::refill() {
  fill(numbers_.data(), kCycle);
  used_ = 0;
}

}  // namespace armilla
