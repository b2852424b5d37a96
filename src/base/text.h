// ASCII text as files hold it.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

inline constexpr std::string_view kBlank = " \t\r\n\v\f";

// Without blanks at either end.
std::string_view trimmed(std::string_view text);
// Letters from A to Z become small, all else stays.
std::string lower_case(std::string_view text);
// What blanks set apart, in `text` itself.
std::vector<std::string_view> words_of(std::string_view text);
// The number that all of `text` is; none where anything else stands there, or more than a Number can hold.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace armilla
