// Numbers spread over 64 bits, for hashes and for what looks like chance.
#pragma once

#include <cstdint>

namespace armilla {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a number whose bits all depend on all bits of another.
inline std::uint64_t splitmix(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
  return bits ^ bits >> 31;
}

// A hash of two, in a quarter of the time: for tables, which compare what they find.
inline std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 29;
}

}  // namespace armilla
