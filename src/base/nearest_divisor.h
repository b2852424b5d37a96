// Divisors and multiples near a number: hints for degrees that do not divide.
#pragma once

#include <cstdint>
#include <string>

namespace armilla {

// "2 or 4": the divisors of `whole` next below and above `asked`; one of them at the ends. O(sqrt(whole)),
// empty for wholes beyond 2^40 or below 1.
std::string nearest_divisors(std::int64_t whole, std::int64_t asked);

// The largest divisor of `number` that is at most `most`; 1 where neither has another. O(most).
std::int64_t largest_divisor(std::int64_t number, std::int64_t most);

// "60 or 72": the positive multiples of `unit` next below and above `asked`. `unit` must be positive.
std::string nearest_multiples(std::int64_t unit, std::int64_t asked);

}  // namespace armilla
