// L'Ecuyer's generator MRG32k3a with streams (L'Ecuyer, Simard, Chen, Kelton, "An object-oriented
// random-number package with many long streams and substreams", Operations Research 50(6), 2002), as
// ns-3 uses it: stream s of a seed begins s x 2^127 draws after the seed's state, its first substream
// another 2^76.
#pragma once

#include <array>
#include <cstdint>

namespace armilla {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream);

  double next();  // uniform in (0, 1)

  // Goes to the beginning of the stream after this one.
  void next_stream();

 private:
  std::array<std::uint64_t, 3> first_, second_;              // the two components' last three values
  std::array<std::uint64_t, 3> first_begin_, second_begin_;  // at the stream's beginning
};

// The first draws of one stream after another.
class FirstDraws {
 public:
  FirstDraws(std::uint64_t seed, std::uint64_t stream) : stream_(seed, stream) {}
  double next() {
    const double value = stream_.next();
    stream_.next_stream();
    return value;
  }
  void skip() { stream_.next_stream(); }

 private:
  RandomStream stream_;
};

// The generator of SplitMix64 (base/splitmix.h), which is one number, without the last step of the mixing:
// that leaves the higher bits as they are, at which coins look.
inline std::uint64_t coin_bits(std::uint64_t& coins) {
  std::uint64_t bits = coins += 0x9e3779b97f4a7c15U;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9U;
  return (bits ^ bits >> 27) * 0x94d049bb133111ebU;
}
inline bool throw_coin(std::uint64_t& coins) {
  return coin_bits(coins) >> 63 != 0;
}
inline bool happens(double probability, std::uint64_t& coins) {
  return static_cast<double>(coin_bits(coins) >> 11) * 0x1p-53 < probability;
}

}  // namespace armilla
