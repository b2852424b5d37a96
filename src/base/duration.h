// Durations beyond simulated time (units.h: 106 days): lifetimes, hours of training. In seconds.
#pragma once

#include <string>
#include <string_view>

namespace armilla {

// "90s", "15min", "3h", "30d", "5y" (365.25 days); anything base/units_text.h takes as a time, too. Throws
// Error.
double parse_duration(std::string_view text, const std::string& where);

std::string duration_text(double seconds);  // "762.1 ms", "5 h", "2.354 days", "41.23 years"

}  // namespace armilla
