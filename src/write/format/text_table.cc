#include "write/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace armilla {
namespace {

constexpr std::size_t kGap = 2;  // between columns

// UTF-8: every character has one byte that does not continue another. Wide characters (CJK) count as one.
bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::string_view escape_of(Ink ink) {
  switch (ink) {
    case Ink::plain:
      return "";
    case Ink::bold:
      return "\x1b[1m";
    case Ink::dim:
      return "\x1b[2m";
    case Ink::red:
      return "\x1b[31m";
    case Ink::green:
      return "\x1b[32m";
    case Ink::yellow:
      return "\x1b[33m";
    case Ink::blue:
      return "\x1b[34m";
  }
  return "";
}

std::string padded(const std::string& cell, std::size_t width, bool right) {
  const std::size_t own = display_width(cell);
  const std::string padding(width > own ? width - own : 0, ' ');
  return right ? padding + cell : cell + padding;
}

void trim_end(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string percent_digits(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "unknown";
}

std::string percent(double share) {
  return std::isfinite(share) ? percent_digits(share) + " %" : "unknown";
}

std::string signed_percent_digits(double share) {
  if (!std::isfinite(share)) return "unknown";
  const std::string text = fmt::format("{:+.1f}", 100 * share);
  return text == "+0.0" || text == "-0.0" ? "0.0" : text;
}

std::string signed_percent(double share) {
  return std::isfinite(share) ? signed_percent_digits(share) + " %" : "unknown";
}

std::string paint(std::string_view text, Ink ink, bool colour) {
  if (!colour || ink == Ink::plain || text.empty()) return std::string(text);
  return std::string(escape_of(ink)) + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

// What files contribute (names of operators, say) must not steer the terminal.
std::string printable(std::string_view text) {
  std::string safe(text);
  std::replace_if(
      safe.begin(), safe.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return safe;
}

// The middle goes: beginnings and ends of names tell more.
std::string shorten(std::string_view text, std::size_t width) {
  constexpr std::string_view kDots = "...";
  if (display_width(text) <= width || width <= kDots.size()) return std::string(text);
  const std::size_t kept = width - kDots.size();
  std::size_t head = 0;
  for (std::size_t i = 0; i < kept / 2; ++i) {
    ++head;
    while (head < text.size() && continues_character(text[head])) ++head;
  }
  std::size_t tail = text.size();
  for (std::size_t i = 0; i < kept - kept / 2; ++i) {
    --tail;
    while (tail > 0 && continues_character(text[tail])) --tail;
  }
  return std::string(text.substr(0, head)) + std::string(kDots) + std::string(text.substr(tail));
}

// Lines of running text stay readable at any width of the terminal.
std::string wrap(std::string_view text, std::string_view first, std::size_t columns) {
  columns = std::min(columns, kReportWidth);
  std::string lines(first);
  const std::string indent(display_width(first), ' ');
  std::size_t column = indent.size();
  bool at_start = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word = printable(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!at_start && column + 1 + display_width(word) > columns) {
      lines += '\n' + indent;
      column = indent.size();
      at_start = true;
    }
    if (!at_start) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += display_width(word);
    at_start = false;
  }
  return lines + '\n';
}

// Wide gaps where all fit into one line, narrow ones where they do not.
std::string flow(const std::vector<std::string>& figures, std::size_t gap, std::size_t columns) {
  constexpr std::size_t kIndent = 2;
  std::size_t all = 0;
  for (const std::string& figure : figures) all += display_width(figure) + gap;
  if (!figures.empty() && all - gap > columns) gap = kGap;
  std::string text;
  std::size_t column = 0;
  for (const std::string& figure : figures) {
    const std::size_t width = display_width(figure);
    if (column > 0 && column + gap + width > columns) {
      text += '\n' + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > 0) {
      text += std::string(gap, ' ');
      column += gap;
    }
    text += figure;
    column += width;
  }
  return text;
}

namespace {

constexpr std::size_t kNarrowName = 12;  // names are not shortened further for the sake of other columns

// Which columns are shown, and how wide each of them is.
struct Layout {
  std::vector<std::size_t> columns, widths;
};

std::size_t width_of(const Layout& layout) {
  std::size_t width = layout.columns.empty() ? 0 : kGap * (layout.columns.size() - 1);
  for (const std::size_t column : layout.columns) width += layout.widths[column];
  return width;
}

// Narrows the widest names first, none below `least`.
void narrow_names(const TextTable& table, std::size_t width, std::size_t least, Layout& layout) {
  while (width_of(layout) > width) {
    std::size_t widest = SIZE_MAX;
    for (const std::size_t c : layout.columns) {
      const bool can = !table.columns[c].right && layout.widths[c] > least &&
                       layout.widths[c] > display_width(table.columns[c].header);
      if (can && (widest == SIZE_MAX || layout.widths[c] > layout.widths[widest])) widest = c;
    }
    if (widest == SIZE_MAX) return;
    --layout.widths[widest];
  }
}

// Names give way first, down to a readable length; then the most dispensable columns go, one by one; at last
// names are cut to what is left.
Layout layout_within(const TextTable& table, const std::vector<std::size_t>& natural, std::size_t width) {
  Layout layout;
  for (std::size_t c = 0; c < natural.size(); ++c) layout.columns.push_back(c);
  while (true) {
    layout.widths = natural;
    narrow_names(table, width, kNarrowName, layout);
    const auto spare = std::max_element(
        layout.columns.begin(), layout.columns.end(),
        [&](std::size_t a, std::size_t b) { return table.columns[a].spare < table.columns[b].spare; });
    if (width_of(layout) <= width || spare == layout.columns.end() || table.columns[*spare].spare == 0) break;
    layout.columns.erase(spare);
  }
  narrow_names(table, width, 1, layout);
  return layout;
}

}  // namespace

std::string to_text(const TextTable& table, std::size_t indent, const TextStyle& style) {
  std::vector<std::size_t> natural;
  for (const TextColumn& column : table.columns) natural.push_back(display_width(column.header));
  std::vector<std::vector<std::string>> rows = table.rows;
  for (std::vector<std::string>& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = shorten(printable(row[c]), table.columns[c].widest);
      natural[c] = std::max(natural[c], display_width(row[c]));
    }
  }
  const Layout layout = layout_within(table, natural, style.width - std::min(style.width, indent));
  const auto line_of = [&](const auto& cell_at) {
    std::string line(indent, ' ');
    for (const std::size_t c : layout.columns) {
      if (c != layout.columns.front()) line += std::string(kGap, ' ');
      line += padded(shorten(cell_at(c), layout.widths[c]), layout.widths[c], table.columns[c].right);
    }
    trim_end(line);
    return line;
  };
  std::string text =
      paint(line_of([&](std::size_t c) { return table.columns[c].header; }), Ink::dim, style.colour) + '\n';
  for (const std::vector<std::string>& row : rows)
    text += line_of([&](std::size_t c) { return row[c]; }) + '\n';
  return text;
}

}  // namespace armilla
