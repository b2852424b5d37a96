#include "write/text_table.h"

#include <algorithm>

namespace armilla {
namespace {

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

std::string paint(std::string_view text, Ink ink, bool colour) {
  if (!colour || ink == Ink::plain || text.empty()) return std::string(text);
  return std::string(escape_of(ink)) + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

std::string printable(std::string_view text) {
  std::string safe(text);
  std::replace_if(
      safe.begin(), safe.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return safe;
}

std::string shorten(std::string_view text, std::size_t width) {
  if (display_width(text) <= width || width < 4) return std::string(text);
  std::size_t begin = text.size();
  for (std::size_t kept = 0; kept < width - 3; ++kept) {
    --begin;
    while (begin > 0 && continues_character(text[begin])) --begin;
  }
  return "..." + std::string(text.substr(begin));
}

std::string wrap(std::string_view text, std::string_view first) {
  std::string lines(first);
  const std::string indent(display_width(first), ' ');
  std::size_t column = indent.size();
  bool at_start = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word = printable(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!at_start && column + 1 + display_width(word) > kReportWidth) {
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

std::string to_text(const TextTable& table, std::size_t indent, bool colour) {
  std::vector<std::size_t> widths;
  for (const TextColumn& column : table.columns) widths.push_back(display_width(column.header));
  std::vector<std::vector<std::string>> rows = table.rows;
  for (std::vector<std::string>& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = shorten(printable(row[c]), table.columns[c].widest);
      widths[c] = std::max(widths[c], display_width(row[c]));
    }
  }
  const auto line_of = [&](const auto& cell_at) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (c > 0) line += "  ";
      line += padded(cell_at(c), widths[c], table.columns[c].right);
    }
    trim_end(line);
    return line;
  };
  std::string text =
      paint(line_of([&](std::size_t c) { return table.columns[c].header; }), Ink::dim, colour) + '\n';
  for (const std::vector<std::string>& row : rows)
    text += line_of([&](std::size_t c) { return row[c]; }) + '\n';
  return text;
}

}  // namespace armilla
