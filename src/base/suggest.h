// "Did you mean": the known names nearest to what a user typed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

// Levenshtein distance with case ignored, O(|a| |b|).
int edit_distance(std::string_view a, std::string_view b);

// The hint for an unknown name: "did you mean 'x'?" when something is near, else the whole list ("known: a,
// b, c"), or as much of it as can be looked through ("and 1200 more").
std::string suggest(std::string_view typed, std::span<const std::string_view> known);
std::string suggest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace armilla
