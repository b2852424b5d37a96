// How long a run would take, roughly and in words: "3 min", "12 days". For messages that refuse it.
#pragma once

#include <fmt/format.h>

#include <string>

namespace armilla {

inline std::string rough_time(double seconds) {
  if (seconds < 1) return fmt::format("{:.1g} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return seconds < 48 * 3600 ? fmt::format("{:.0f} h", seconds / 3600)
                             : fmt::format("{:.0f} days", seconds / 86400);
}

}  // namespace armilla
