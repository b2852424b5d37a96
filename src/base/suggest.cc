#include "base/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace armilla {

// Levenshtein distance with one row: O(a b) time, O(b) space. Upper and lower case are alike.
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

namespace {

// Letters and digits in lower case: what is left of a name when nobody remembers its dashes.
std::string bare(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

// Of a name that was typed in part, the names that it begins; empty where they are none or many.
std::vector<std::string_view> begun_by(std::string_view typed, std::span<const std::string_view> known) {
  constexpr std::size_t kShortest = 3, kMost = 6;
  const std::string start = bare(typed);
  std::vector<std::string_view> begun;
  if (start.size() < kShortest) return begun;
  for (const std::string_view name : known) {
    if (bare(name).starts_with(start)) begun.push_back(name);
  }
  if (begun.size() > kMost) begun.clear();
  return begun;
}

}  // namespace

std::string suggest(std::string_view typed, std::span<const std::string_view> known) {
  // A long hostile name must not cost a quadratic comparison with every known one.
  constexpr std::size_t kLongestName = 128;
  std::string_view best;
  // A third of the letters may be wrong, and two in any case.
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
  // One wrong letter is nearer than a missing end, which is nearer than several.
  if (typed.size() <= kLongestName && (best.empty() || best_distance > 1)) {
    std::vector<std::string_view> begun = begun_by(typed, known);
    if (!begun.empty()) {
      const std::string_view last = begun.back();
      begun.pop_back();
      return begun.empty() ? fmt::format("did you mean '{}'?", last)
                           : fmt::format("did you mean '{}' or '{}'?", fmt::join(begun, "', '"), last);
    }
  }
  if (!best.empty()) return fmt::format("did you mean '{}'?", best);
  if (known.empty()) return {};
  // As many as can be looked through; where a user's file names them they may be thousands.
  constexpr std::size_t kLongestList = 4000;
  std::size_t length = 0, shown = 0;
  while (shown < known.size() && (length += known[shown].size() + 2) <= kLongestList) ++shown;
  shown = std::max<std::size_t>(shown, 1);
  return fmt::format("known: {}{}", fmt::join(known.first(shown), ", "),
                     shown == known.size() ? "" : fmt::format(" and {} more", known.size() - shown));
}

std::string suggest(std::string_view typed, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return suggest(typed, std::span(views));
}

}  // namespace armilla
