// Sizes and numbers as a user lists them: "1MB", "8" (bytes), "1MiB..1GiB" (doubling, with both
// ends), "1..64".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

struct ListedSize {
  std::string text;  // as typed; within ranges in the units of their ends
  Bytes bytes;
};

// `where` (a flag) begins the message of the Error. A range has at most 61 sizes.
std::vector<ListedSize> parse_sizes(std::string_view text, const std::string& where);

// Powers of two from the first number on, and the last; zero, where it is the first, before 1. Throws Error
// for what is not two whole numbers that go up.
std::vector<std::string> numbers_of_range(const std::string& text, const std::string& where);

}  // namespace armilla
