// Comma-separated values (RFC 4180): a header line, then records of as many fields. Fields with commas,
// quotes or line ends stand in double quotes, a quote inside doubled. Lines end with LF or CRLF; empty lines
// are skipped. Linear.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

struct CsvRecord {
  std::int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string name;  // what errors call the file
  std::vector<std::string> columns;
  std::vector<CsvRecord> records;

  std::optional<std::size_t> find(std::string_view column) const;
  // Throws Error when the column is missing.
  std::size_t at(std::string_view column) const;
  std::string where(const CsvRecord& record) const;  // "events.csv:3"
};

// What becomes of a record with more or fewer fields than columns.
enum class Ragged : std::uint8_t { refused, kept };

// Throws Error with file:line for an unfinished quote, text behind one, a column that is there twice, columns
// between semicolons or tabs, and a ragged record that is not kept.
CsvTable parse_csv(std::string_view text, const std::string& name, Ragged ragged = Ragged::refused);
// What is wrong with such a record: "2 fields, the header has 27"; nothing where it is as it should be.
std::string raggedness(const CsvTable& table, const CsvRecord& record);

}  // namespace armilla
