#include "write/report/alike.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/units_text.h"

namespace armilla {
namespace {

constexpr std::size_t kMostDigits = 12, kMostRanges = 3;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Text, number, text, number ..., text.
struct Pieces {
  std::vector<std::string> texts = {""};
  std::vector<std::int64_t> numbers;
};

// Numbers with leading zeros or very many digits are text.
// "layers.007" and "layers.7" must not become one.
Pieces pieces_of(const std::string& name) {
  Pieces pieces;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool number = end > i && end - i <= kMostDigits && (name[i] != '0' || end == i + 1);
    if (number) {
      pieces.numbers.push_back(std::stoll(name.substr(i, end - i)));
      pieces.texts.emplace_back();
      i = end;
    } else {
      end = std::max(end, i + 1);
      pieces.texts.back() += name.substr(i, end - i);
      i = end;
    }
  }
  return pieces;
}

// "0-7,12"; empty where that takes too many ranges.
std::string ranges_text(const std::set<std::int64_t>& numbers) {
  std::string text;
  std::size_t ranges = 0;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    while (std::next(last) != numbers.end() && *std::next(last) == *last + 1) ++last;
    // A list of many ranges is longer than "and 12 more".
    if (++ranges > kMostRanges) return {};
    if (!text.empty()) text += ',';
    text += fmt::format("{}", *first);
    if (last != first) text += fmt::format("{}{}", *last == *first + 1 ? "," : "-", *last);
    first = std::next(last);
  }
  return text;
}

// "rank " -> "ranks ".
std::string plural(std::string text) {
  const bool word = text.size() > 1 && text.back() == ' ' &&
                    std::isalpha(static_cast<unsigned char>(text[text.size() - 2])) != 0;
  if (word) text.insert(text.size() - 1, "s");
  return text;
}

}  // namespace

std::string name_of_all(const std::vector<std::string>& names, std::size_t all) {
  if (names.size() == 1) return names.front();
  const std::string some =
      fmt::format("{} and {} more", names.front(),
                  with_separators(static_cast<std::int64_t>(std::max(all, names.size())) - 1));
  const Pieces first = pieces_of(names.front());
  // Each place of a number collects what occurs there; the names together must be all combinations, or the
  // text would name something that does not exist.
  std::vector<std::set<std::int64_t>> numbers(first.numbers.size());
  std::set<std::vector<std::int64_t>> seen;
  for (const std::string& name : names) {
    const Pieces pieces = pieces_of(name);
    if (pieces.texts != first.texts || !seen.insert(pieces.numbers).second) return some;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i].insert(pieces.numbers[i]);
  }
  // All combinations must be there, or the name would speak of others, too.
  std::size_t combinations = 1;
  for (const std::set<std::int64_t>& each : numbers) combinations *= each.size();
  if (combinations != names.size()) return some;
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string ranges = ranges_text(numbers[i]);
    if (ranges.empty()) return some;
    text += (numbers[i].size() > 1 ? plural(first.texts[i]) : first.texts[i]) + ranges;
  }
  return text + first.texts.back();
}

}  // namespace armilla
