// The parts of a run's report for the terminal (write/report.h): every job has the same ones, whatever it
// was read from. A part that has nothing to say is empty.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "ir/study.h"
#include "write/text_table.h"

namespace armilla {

std::string title_section(const Run& run, const TextStyle& style);     // what was simulated
std::string headline_section(const Run& run, const TextStyle& style);  // how long it takes
std::string time_section(const Run& run, const TextStyle& style);      // what ranks did meanwhile
std::string memory_section(const Run& run, const TextStyle& style);
std::string communication_section(const Run& run, const TextStyle& style);
std::string layer_section(const Run& run, const TextStyle& style);
std::string link_section(const Run& run, const TextStyle& style);

inline double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}
inline double ratio(Time part, Time whole) {
  return ratio(static_cast<double>(part.value), static_cast<double>(whole.value));
}
inline double ratio(Bytes part, Bytes whole) {
  return ratio(static_cast<double>(part.value), static_cast<double>(whole.value));
}

// A part's title, and beside it, or below where the line is too short, what is to be known about its figures.
std::string heading(std::string_view text, const TextStyle& style, std::string_view remark = {});

}  // namespace armilla
