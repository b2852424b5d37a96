// Text for terminals: aligned columns, wrapped paragraphs, colour.
//
// Width counts code points (one column each; wide and combining characters are not told apart). Names come
// from model files, so control characters, which could drive the terminal, are shown as '?'. Colour is ANSI
// SGR and only ever wraps whole, already padded pieces of text. Tables fit the width they are given as far as
// their numbers allow: names are shortened first, then the columns that matter least are left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

inline constexpr std::size_t kReportWidth = 100;  // where nobody says how wide the terminal is

struct TextStyle {
  bool colour = false;
  std::size_t width = kReportWidth;  // of tables; paragraphs end at kReportWidth, however wide the terminal

  // Implicit: most text only knows whether it is coloured.
  TextStyle(bool wants_colour = false, std::size_t columns = kReportWidth)
      : colour(wants_colour), width(columns) {}
};

// A share in percent, to one digit, and with a sign; "unknown" where it is not finite. The digits alone are
// for columns that say "%".
std::string percent(double share);
std::string percent_digits(double share);
std::string signed_percent(double share);  // "+5.1 %"; "0.0 %" for what rounds to nothing
std::string signed_percent_digits(double share);

enum class Ink { plain, bold, dim, red, green, yellow, blue };
std::string paint(std::string_view text, Ink ink, bool colour);

std::size_t display_width(std::string_view text);
std::string printable(std::string_view text);
// At most `width` columns: the middle of a longer name gives way to "...".
std::string shorten(std::string_view text, std::size_t width);
// Paragraph of at most `columns` columns, and never more than kReportWidth; the first line begins with
// `first`, the others are indented as far.
std::string wrap(std::string_view text, std::string_view first, std::size_t columns = kReportWidth);

// Figures side by side, each kept whole, `gap` spaces apart; two where that brings them into one line, else
// on as many lines as it takes, all after the first indented by 2.
std::string flow(const std::vector<std::string>& figures, std::size_t gap, std::size_t columns);

struct TextColumn {
  std::string header;
  bool right = true;              // numbers; false: left-aligned names
  std::size_t widest = SIZE_MAX;  // longer cells are shortened
  int spare = 0;  // where the line is too short, columns with larger numbers go first; 0: never
};

struct TextTable {
  std::vector<TextColumn> columns;
  std::vector<std::vector<std::string>> rows;  // one cell per column
};

// Two spaces between columns, `indent` before the first, no trailing spaces. Headers are dim in colour.
std::string to_text(const TextTable& table, std::size_t indent, const TextStyle& style);

}  // namespace armilla
