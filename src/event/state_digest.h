// A digest of a state: of the set of facts that make it up, whatever the order in which they are told.
//
// A fact is a few numbers; what it is about is one of them. Facts are hashed to 128 bits and summed up: two
// states of different facts have equal digests by chance only (Bellare and Micciancio, "A New Paradigm for
// Collision-free Hashing", 1997; against an adversary it takes more bits). Cost: O(numbers), some nanoseconds
// each.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace armilla {

struct Digest {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const Digest&) const = default;
};

// Of one fact.
template <class... Numbers>
constexpr Digest digest_of(Numbers... numbers) {
  Digest digest{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
  const auto mix = [](std::uint64_t value, std::uint64_t first, std::uint64_t second) {
    value = (value ^ (value >> 32)) * first;
    value = (value ^ (value >> 29)) * second;
    return value ^ (value >> 32);
  };
  const auto take = [&](std::uint64_t number) {
    digest.low = mix(digest.low ^ number, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb);
    digest.high = mix(digest.high + number, 0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53);
  };
  (take(static_cast<std::uint64_t>(numbers)), ...);
  return digest;
}

class StateDigest {
 public:
  template <class... Numbers>
  void add(Numbers... numbers) {
    const Digest fact = digest_of(numbers...);
    sum_.low += fact.low;
    sum_.high += fact.high;
  }
  const Digest& value() const { return sum_; }

 private:
  Digest sum_;
};

}  // namespace armilla
