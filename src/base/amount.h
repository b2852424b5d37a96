// Large counts as people write them: "15T" tokens, "1.28M" images, "300e9". Powers of 1000.
#pragma once

#include <string>
#include <string_view>

namespace armilla {

// A positive number with or without k, M, B (or G) or T; at most 1e18. Throws Error.
double parse_amount(std::string_view text, const std::string& where);

std::string amount_text(double amount);  // "15T", "1.28M", "512"

}  // namespace armilla
