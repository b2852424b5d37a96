// The outline of a JSON or YAML text: its top-level keys and what kind of value each has, found without
// parsing the whole. Tolerant: a text that is cut off or damaged has the outline of what came before. Only
// for telling files apart (read/file_format.h). Linear.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace armilla {

struct OutlineKey {
  std::string name;
  char value = 0;    // '{', '[', '"', or the first character of anything else; 0: nothing before the end
  char inside = 0;   // of a list or a mapping: the first character inside it
  std::string text;  // a scalar as written, cut after 40 characters
};

struct Outline {
  enum class Form { none, mapping, list, scalar };
  Form form = Form::none;
  std::vector<OutlineKey> keys;  // of a mapping; of a list of mappings: of the first
  bool several = false;          // of JSON: something follows the first value
  bool complete = false;         // of JSON: the first value ends within the text

  const OutlineKey* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }
};

// Of a text that begins with '{' or '[', after white space.
Outline outline_json(std::string_view text);
// Of block style: "key: value" lines in the first column, or "- item" lines.
Outline outline_yaml(std::string_view text);

}  // namespace armilla
