#include "base/nearest_divisor.h"

#include <fmt/format.h>

#include <algorithm>

namespace armilla {

std::string nearest_divisors(std::int64_t whole, std::int64_t asked) {
  if (whole < 1 || whole > std::int64_t{1} << 40) return {};
  std::int64_t below = 0, above = INT64_MAX;
  // Trial division up to the square root: a million steps at most.
  for (std::int64_t small = 1; small * small <= whole; ++small) {
    if (whole % small != 0) continue;
    for (const std::int64_t divisor : {small, whole / small}) {
      if (divisor <= asked) below = std::max(below, divisor);
      if (divisor >= asked) above = std::min(above, divisor);
    }
  }
  if (below == 0) return fmt::format("{}", above);
  if (above == INT64_MAX || above == below) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

std::int64_t largest_divisor(std::int64_t number, std::int64_t most) {
  for (std::int64_t divisor = std::min(number, most); divisor > 1; --divisor) {
    if (number % divisor == 0) return divisor;
  }
  return 1;
}

std::string nearest_multiples(std::int64_t unit, std::int64_t asked) {
  const std::int64_t below = asked / unit * unit;
  if (below <= 0) return fmt::format("{}", unit);
  if (below == asked || below > INT64_MAX - unit) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, below + unit);
}

}  // namespace armilla
