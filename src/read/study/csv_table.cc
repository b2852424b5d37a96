#include "read/study/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/units_text.h"

namespace armilla {
namespace {

// RFC 4180: fields in quotes may hold commas, quotes (doubled) and line ends.
class Parser {
 public:
  // Lines may end as those of old Macs, which spreadsheets still write.
  Parser(std::string_view text, const std::string& name)
      : rest_(text), name_(name), ends_in_returns_(text.find('\n') == std::string_view::npos) {}

  // Nothing is left: no record.
  std::optional<CsvRecord> next() {
    // Empty lines are skipped; they still count for line numbers.
    while (!rest_.empty() && skip_line_end()) {
    }
    if (rest_.empty()) return std::nullopt;
    CsvRecord record{line_, {}};
    do {
      record.fields.push_back(rest_.starts_with('"') ? quoted() : plain());
    } while (skip(','));
    if (!rest_.empty() && !skip_line_end())
      throw Error(where(line_), "text behind a closing quote", "a quote inside quotes is written twice");
    return record;
  }

 private:
  std::string where(std::int64_t line) const { return fmt::format("{}:{}", name_, line); }

  bool skip(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool skip_line_end() {
    const bool ends = rest_.starts_with('\n') || (ends_in_returns_ && rest_.starts_with('\r'));
    const std::size_t length = rest_.starts_with("\r\n") ? 2 : ends ? 1 : 0;
    rest_.remove_prefix(length);
    line_ += length > 0 ? 1 : 0;
    return length > 0;
  }

  std::string plain() {
    // A carriage return before the line end belongs to that, not to the field.
    std::size_t end = std::min(rest_.find_first_of(ends_in_returns_ ? ",\r" : ",\n"), rest_.size());
    const std::size_t next = end;
    if (end > 0 && rest_.substr(end).starts_with('\n') && rest_[end - 1] == '\r') --end;
    std::string field(rest_.substr(0, end));
    rest_.remove_prefix(end == next ? end : next - 1);
    return field;
  }

  std::string quoted() {
    const std::int64_t begin = line_;
    std::string field;
    rest_.remove_prefix(1);
    for (;;) {
      const std::size_t quote = rest_.find('"');
      if (quote == std::string_view::npos) throw Error(where(begin), "a quote is opened and never closed");
      field += rest_.substr(0, quote);
      // Line ends inside of quotes count as lines of the file.
      line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
      rest_.remove_prefix(quote + 1);
      if (!skip('"')) return field;
      field += '"';
    }
  }

  std::string_view rest_;
  const std::string& name_;
  bool ends_in_returns_;
  std::int64_t line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::size_t CsvTable::at(std::string_view column) const {
  const auto found = find(column);
  if (found) return *found;
  throw Error(name + ":1", fmt::format("column '{}' is missing", column),
              fmt::format("there are: {}", fmt::join(columns, ", ")));
}

std::string CsvTable::where(const CsvRecord& record) const {
  return fmt::format("{}:{}", name, record.line);
}

std::string raggedness(const CsvTable& table, const CsvRecord& record) {
  if (record.fields.size() == table.columns.size()) return {};
  return fmt::format("{}, the header has {}", counted(record.fields.size(), "field"), table.columns.size());
}

CsvTable parse_csv(std::string_view text, const std::string& name, Ragged ragged) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as spreadsheets write it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  // Spreadsheets call UTF-16 "Unicode text".
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
      text.find('\0') != std::string_view::npos)
    throw Error(name, "is not UTF-8 text", "save it as CSV in UTF-8");
  Parser parser(text, name);
  CsvTable table;
  table.name = name;
  std::optional<CsvRecord> header = parser.next();
  if (!header) throw Error(name, "is empty", "expected a line with the names of the columns");
  for (const std::string& column : header->fields) table.columns.emplace_back(trimmed(column));
  // One column that holds what separates others.
  if (table.columns.size() == 1 && table.columns.front().find_first_of(";\t") != std::string::npos)
    throw Error(table.where(*header), "no commas are between the columns", "save it as CSV with commas");
  for (auto column = table.columns.begin(); column != table.columns.end(); ++column) {
    if (std::find(table.columns.begin(), column, *column) != column)
      throw Error(table.where(*header), fmt::format("column '{:.60}' is there twice", *column));
  }
  while (std::optional<CsvRecord> record = parser.next()) {
    if (ragged == Ragged::refused) {
      if (const std::string wrong = raggedness(table, *record); !wrong.empty())
        throw Error(table.where(*record), wrong);
    }
    table.records.push_back(std::move(*record));
  }
  return table;
}

}  // namespace armilla
