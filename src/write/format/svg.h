// Plots as SVG: the document around their shapes, and names inside them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace armilla {

// As text of an element or an attribute: names come from files.
inline std::string svg_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return safe;
}

// About how wide a line of text is, in the letters of `svg_document`.
inline double svg_width(std::string_view text) {
  constexpr double kLetter = 6.2;
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return kLetter * static_cast<double>(std::ranges::count_if(text, begins));
}

// From pale to dark with a share of 0 to 1: a scale of one hue (Brewer's "Blues"), readable without colours.
inline std::string svg_blue(double share) {
  const auto mix = [&](int pale, int dark) {
    return static_cast<int>(std::lround(pale + share * (dark - pale)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(247, 8), mix(251, 48), mix(255, 107));
}

// White, of so many pixels, in small sans-serif letters.
inline std::string svg_document(double width, double height, const std::string& shapes) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
             "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
             "fill=\"white\"/>\n",
             width, height) +
         shapes + "</svg>\n";
}

}  // namespace armilla
