#include "base/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace armilla {

int edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int substitute = diagonal + (same(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string suggest(std::string_view typed, std::span<const std::string_view> known) {
  // A long hostile name must not cost a quadratic comparison with every known one.
  constexpr std::size_t kLongestName = 128;
  std::string_view best;
  int best_distance = static_cast<int>(std::max<std::size_t>(2, typed.size() / 3)) + 1;
  if (typed.size() <= kLongestName) {
    for (const std::string_view name : known) {
      const int distance = edit_distance(typed, name);
      if (distance < best_distance && distance < static_cast<int>(name.size())) {
        best = name;
        best_distance = distance;
      }
    }
  }
  if (!best.empty()) return fmt::format("did you mean '{}'?", best);
  if (known.empty()) return {};
  return fmt::format("known: {}", fmt::join(known, ", "));
}

std::string suggest(std::string_view typed, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return suggest(typed, std::span(views));
}

}  // namespace armilla
