// Rounding to single precision, as other programs do that keep their numbers so.
#pragma once

namespace armilla {

// The nearest number of single precision. Never inlined: GCC 12 at -O2 and above drops the rounding of two
// numbers that stand side by side in memory (its vectoriser takes the conversion there and back for none).
[[gnu::noinline]] inline double single_precision(double value) {
  return static_cast<double>(static_cast<float>(value));
}

}  // namespace armilla
