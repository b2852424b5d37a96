// ASCII text as files hold it.
#pragma once

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

}  // namespace armilla
