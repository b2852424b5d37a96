// For tests: what other systems answered. tests/reference/ has an extract of every oracle, which is compared
// everywhere; the whole lies beside the repository in some places, and is compared where it does. Rows of
// tables are maps from column name to cell; cells hold no commas, except that the last column takes the rest
// of its line.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/source_path_testing.h"

namespace armilla {

struct Oracle {
  std::filesystem::path path;
  bool whole = false;
};

// The extract called `name` ("astra1", "scalesim.csv"), then the whole where it is here.
inline std::vector<Oracle> oracles(const std::string& name) {
  const std::filesystem::path source = source_path("");
  std::vector<Oracle> found = {{source / "tests/reference" / name, false}};
  if (const std::filesystem::path whole = source / "../shared/oracles" / name; std::filesystem::exists(whole))
    found.push_back({whole, true});
  return found;
}

using OracleRow = std::map<std::string, std::string>;

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

inline std::vector<OracleRow> read_oracle(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  const auto next_line = [&] {
    if (!std::getline(file, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  };
  next_line();
  const std::vector<std::string> names = split(line, ',');
  std::vector<OracleRow> rows;
  while (next_line()) {
    OracleRow& row = rows.emplace_back();
    std::stringstream cells(line);
    for (std::size_t i = 0; i < names.size(); ++i)
      std::getline(cells, row[names[i]], i + 1 < names.size() ? ',' : '\n');
  }
  return rows;
}

}  // namespace armilla
