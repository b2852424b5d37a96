// Knuth's lagged Fibonacci generators (The Art of Computer Programming, volume 2, third edition, section 3.6,
// with the seeding of the ninth printing; exercise 3.6-15): x[n] = x[n-100] - x[n-37] modulo 2^30, and the
// fractions u[n] = u[n-100] + u[n-37] modulo 1 in steps of 2^-52. Of every 1,009 numbers the first 100 are
// used. BookSim draws from them, and here the draws are the same, so that a configuration gives the same
// packets on the same ways.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace armilla {

class LaggedRandom {
 public:
  enum class Kind : std::uint8_t { integers, fractions };

  LaggedRandom(Kind kind, std::int64_t seed);

  // 30 bits, or the fraction in units of 2^-52.
  std::uint64_t next() {
    if (used_ == kLong) refill();
    return numbers_[used_++];
  }
  // 0 ... count - 1
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(next() % count); }

  // next() < this with the given probability.
  static std::uint64_t threshold(double probability) {
    return static_cast<std::uint64_t>(std::ceil(std::ldexp(probability, 52)));
  }

 private:
  static constexpr std::size_t kLong = 100, kShort = 37, kCycle = 1009;

  std::uint64_t combined(std::uint64_t older, std::uint64_t newer) const {
    return (kind_ == Kind::integers ? older - newer : older + newer) & mask_;
  }
  template <Kind kind>
  void fill_as(std::uint64_t* numbers, std::size_t count);
  void fill(std::uint64_t* numbers, std::size_t count);
  void refill();

  Kind kind_;
  std::uint64_t mask_;
  std::array<std::uint64_t, kLong> state_ = {};
  std::array<std::uint64_t, kCycle> numbers_ = {};
  std::size_t used_ = kLong;
};

}  // namespace armilla
