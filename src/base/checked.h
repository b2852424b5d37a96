// 64-bit arithmetic on numbers that come from files: an overflow is an Error, not a wrong number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace armilla {

__extension__ using WideProduct = __int128;  // of two 64-bit numbers, or a sum that 64 bits may not hold

inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b, std::string_view where) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error(std::string(where), "sizes overflow 64 bits", "check the dimensions");
  return product;
}

inline std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view where) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    throw Error(std::string(where), "sizes overflow 64 bits", "check the dimensions");
  return sum;
}

// a / b rounded up, for a >= 0 and b > 0; does not overflow.
constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

constexpr bool is_power_of_two(std::int64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

}  // namespace armilla
