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

}  // namespace armilla
