// A YAML (or JSON, which is YAML) document as plain data, every value with the place it was written at.
//
// Bounded whatever the input: text, nesting and the number of values after aliases are expanded have limits,
// so that neither a deep nor an exponentially aliased document costs more than some megabytes. Duplicate
// keys, keys that are no plain words, several documents and binary data are Errors. Tags are ignored; merge
// keys (<<) are ordinary keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

struct YamlValue {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string scalar;
  std::string key;               // under which it stands in a mapping
  std::vector<YamlValue> items;  // of a list or a mapping, in file order
  int line = 0, column = 0;      // from 1; 0 when it stands in no file
  int key_line = 0, key_column = 0;
  std::string origin;  // the override it came from; empty: the file
  std::string file;    // that it stands in, where it was taken into the document of another one

  const YamlValue* find(std::string_view wanted) const;
};

// `name` begins the location of every Error; `language` is what a text that cannot be read is said not to be.
YamlValue parse_yaml(std::string_view text, const std::string& name, std::string_view language = "YAML");

}  // namespace armilla
