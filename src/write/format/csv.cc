#include "write/format/csv.h"

#include <fmt/format.h>

#include <cmath>

namespace armilla {

Csv::Csv(const std::vector<std::string_view>& header) {
  for (const std::string_view name : header) cell(name);
  end_record();
}

void Csv::separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

// RFC 4180: quotes only where needed, and doubled inside.
Csv& Csv::cell(std::string_view text) {
  separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    text_ += text;
    return *this;
  }
  text_ += '"';
  for (const char c : text) {
    if (c == '"') text_ += '"';
    text_ += c;
  }
  text_ += '"';
  return *this;
}

Csv& Csv::cell(std::int64_t number) {
  separate();
  text_ += fmt::format("{}", number);
  return *this;
}

// Infinite and undefined numbers are empty cells; the shortest text that reads back as the same number
// otherwise.
Csv& Csv::cell(double number) {
  separate();
  if (std::isfinite(number)) text_ += fmt::format("{}", number);
  return *this;
}

Csv& Csv::cell(Time time) {
  separate();
  text_ += exact_seconds(time);
  return *this;
}

void Csv::end_record() {
  text_ += '\n';
  first_ = true;
}

// Times are picoseconds: written from the integer, a double would lose digits beyond 2 1/2 hours.
std::string exact_seconds(Time time) {
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  const bool negative = time.value < 0;
  const std::int64_t magnitude = negative ? -time.value : time.value;
  std::string text = fmt::format("{}{}", negative ? "-" : "", magnitude / kSecond);
  if (magnitude % kSecond == 0) return text;
  text += fmt::format(".{:012}", magnitude % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace armilla
