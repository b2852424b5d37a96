#include "network/packet/random_streams.h"

#include <cstddef>

namespace armilla {
namespace {

using MrgVector = std::array<std::uint64_t, 3>;
using MrgMatrix = std::array<MrgVector, 3>;

// MRG32k3a (L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number
// generators", Operations Research 47, 1999), ns-3's generator: two recurrences of order three, whose
// difference is drawn. Streams are 2^127 steps apart, substreams 2^76 (L'Ecuyer et al. 2002), so that leaps
// are powers of the matrix of one step.
constexpr std::uint64_t kModulus1 = 4294967087, kModulus2 = 4294944443;
constexpr MrgMatrix kStep1 = {{{0, 1, 0}, {0, 0, 1}, {kModulus1 - 810728, 1403580, 0}}};
constexpr MrgMatrix kStep2 = {{{0, 1, 0}, {0, 0, 1}, {kModulus2 - 1370589, 0, 527612}}};

constexpr MrgVector times(const MrgMatrix& matrix, const MrgVector& vector, std::uint64_t modulus) {
  MrgVector product = {};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      product[row] = (product[row] + matrix[row][column] * vector[column] % modulus) % modulus;
    }
  }
  return product;
}

constexpr MrgMatrix squared(const MrgMatrix& matrix, std::uint64_t modulus) {
  MrgMatrix product = {};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      for (std::size_t k = 0; k < 3; ++k) {
        product[row][column] =
            (product[row][column] + matrix[row][k] * matrix[k][column] % modulus) % modulus;
      }
    }
  }
  return product;
}

// 2^exponent steps at once.
constexpr MrgMatrix leap(MrgMatrix matrix, int exponent, std::uint64_t modulus) {
  for (int i = 0; i < exponent; ++i) matrix = squared(matrix, modulus);
  return matrix;
}

constexpr MrgMatrix kStream1 = leap(kStep1, 127, kModulus1), kStream2 = leap(kStep2, 127, kModulus2);
constexpr MrgMatrix kSubstream1 = leap(kStep1, 76, kModulus1), kSubstream2 = leap(kStep2, 76, kModulus2);

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t stream) {
  // Both components' states must not be all zero, nor at or above their moduli.
  seed = seed % (kModulus2 - 1) + (seed % (kModulus2 - 1) == 0 ? 1 : 0);
  first_ = {seed, seed, seed};
  second_ = first_;
  MrgMatrix leap1 = kStream1, leap2 = kStream2;
  for (; stream != 0; stream >>= 1) {
    if ((stream & 1) != 0) {
      first_ = times(leap1, first_, kModulus1);
      second_ = times(leap2, second_, kModulus2);
    }
    leap1 = squared(leap1, kModulus1);
    leap2 = squared(leap2, kModulus2);
  }
  // The first substream behind the stream's begin, as ns-3's run number is 1.
  first_begin_ = first_ = times(kSubstream1, first_, kModulus1);
  second_begin_ = second_ = times(kSubstream2, second_, kModulus2);
}

double RandomStream::next() {
  const std::uint64_t a = (1403580 * first_[1] + (kModulus1 - 810728) * first_[0] % kModulus1) % kModulus1;
  const std::uint64_t b = (527612 * second_[2] + (kModulus2 - 1370589) * second_[0] % kModulus2) % kModulus2;
  first_ = {first_[1], first_[2], a};
  second_ = {second_[1], second_[2], b};
  const std::uint64_t difference = a > b ? a - b : a + kModulus1 - b;
  return static_cast<double>(difference) * (1.0 / (static_cast<double>(kModulus1) + 1.0));
}

void RandomStream::next_stream() {
  first_begin_ = first_ = times(kStream1, first_begin_, kModulus1);
  second_begin_ = second_ = times(kStream2, second_begin_, kModulus2);
}

}  // namespace armilla
