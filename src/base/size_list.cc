#include "base/size_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

Bytes parse_size(std::string_view text, const std::string& where) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  return parse_bytes(digits ? std::string(text) + "B" : std::string(text), where);
}

// In the largest unit of which it is a whole number.
std::string in_whole_units(Bytes bytes, bool binary) {
  constexpr std::array<std::string_view, 6> kBinary = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr std::array<std::string_view, 6> kDecimal = {"B", "kB", "MB", "GB", "TB", "PB"};
  const std::int64_t step = binary ? 1024 : 1000;
  std::int64_t value = bytes.value;
  std::size_t unit = 0;
  while (value > 0 && value % step == 0 && unit + 1 < kBinary.size()) value /= step, ++unit;
  return fmt::format("{}{}", value, binary ? kBinary[unit] : kDecimal[unit]);
}

}  // namespace

std::vector<ListedSize> parse_sizes(std::string_view text, const std::string& where) {
  constexpr std::string_view kTo = "..";
  const std::size_t to = text.find(kTo);
  if (to == std::string_view::npos) return {{std::string(text), parse_size(text, where)}};
  if (to == 0 || to + kTo.size() == text.size()) {
    throw Error(where, fmt::format("'{:.60}' is not a range of sizes", text),
                "a range has both its ends, such as 1MiB..1GiB");
  }
  const Bytes first = parse_size(text.substr(0, to), where);
  const Bytes last = parse_size(text.substr(to + kTo.size()), where);
  if (first.value < 1 || last < first) {
    throw Error(where, fmt::format("'{:.60}' is not a range of sizes", text),
                "a range goes up from at least 1B, such as 1MiB..1GiB");
  }
  const std::string_view unit = text.substr(0, to);
  // Plain numbers double in powers of two.
  const bool binary = unit.find('i') != std::string_view::npos ||
                      unit.find_first_not_of("0123456789B ") == std::string_view::npos;
  std::vector<ListedSize> sizes;
  for (Bytes bytes = first; bytes < last; bytes = Bytes(bytes.value * 2)) {
    const bool fraction = bytes == first && unit.find('.') != std::string_view::npos;
    sizes.push_back({fraction ? std::string(unit) : in_whole_units(bytes, binary), bytes});
    // Doubling once more would pass the end, or overflow.
    if (bytes.value > last.value / 2) break;
  }
  sizes.push_back({std::string(text.substr(to + kTo.size())), last});
  return sizes;
}

std::vector<std::string> numbers_of_range(const std::string& text, const std::string& where) {
  const std::size_t dots = std::min(text.find(".."), text.size());
  const auto end = [&](const std::string& number) -> std::int64_t {
    const bool digits = !number.empty() && number.find_first_not_of("0123456789 ") == std::string::npos;
    return digits ? parse_count(number, where) : -1;
  };
  const std::int64_t from = end(text.substr(0, dots));
  const std::int64_t to = end(text.substr(std::min(dots + 2, text.size())));
  if (from < 0 || to < from)
    throw Error(where, fmt::format("'{}' is not a range", text),
                "a range has two whole numbers and goes up, such as 1..8");
  std::vector<std::string> numbers;
  if (from == 0 && to > 0) numbers.emplace_back("0");
  std::int64_t n = std::max<std::int64_t>(from, 1);
  while (n < to) {
    numbers.push_back(std::to_string(n));
    n = n <= to / 2 ? 2 * n : to;
  }
  numbers.push_back(std::to_string(to));
  return numbers;
}

}  // namespace armilla
