// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a number whose bits all depend on all bits of another.
#pragma once

#include <cstdint>

namespace armilla {

inline std::uint64_t splitmix(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebU;
  return bits ^ bits >> 31;
}

}  // namespace armilla
