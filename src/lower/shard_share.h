// Share: the largest part of something that is divided, as a fraction, so that several divisions can be
// multiplied before they are rounded once.
#pragma once

#include <cstdint>
#include <numeric>

#include "base/checked.h"

namespace armilla {

struct Share {
  std::int64_t part = 1, of = 1;
};

inline Share operator*(Share a, Share b) {
  const auto reduce = [](std::int64_t& x, std::int64_t& y) {
    const std::int64_t common = std::gcd(x, y);
    if (common > 1) {
      x /= common;
      y /= common;
    }
  };
  reduce(a.part, b.of);
  reduce(b.part, a.of);
  return {checked_multiply(a.part, b.part, "plan"), checked_multiply(a.of, b.of, "plan")};
}

// `extent` things dealt to `ways` owners: what the one with most gets. Unknown extents (0) divide evenly.
inline Share largest_part(std::int64_t extent, std::int64_t ways) {
  return extent < 1 ? Share{1, ways} : Share{ceil_divide(extent, ways), extent};
}

// value x share, rounded up; `value` is not negative.
inline std::int64_t scaled(std::int64_t value, Share share) {
  const WideProduct product = static_cast<WideProduct>(value) * share.part;
  const WideProduct result = product / share.of + static_cast<WideProduct>(product % share.of != 0);
  if (result > INT64_MAX) throw Error("plan", "sizes overflow 64 bits", "check the degrees and the model");
  return static_cast<std::int64_t>(result);
}

}  // namespace armilla
