#include "write/report/documented_keys_testing.h"

#include <fstream>
#include <stdexcept>

#include "base/source_path_testing.h"

namespace armilla {
namespace {

void add_keys(const Json& value, const std::string& path, std::set<std::string>& keys) {
  if (value.is_array()) {
    for (const Json& element : value) {
      if (element.is_structured()) add_keys(element, path + "[]", keys);
    }
  } else if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      const std::string own = path.empty() ? key : path + "." + key;
      // Containers are described by what they contain; lists of plain values end in "[]".
      const bool plain_list = child.is_array() && (child.empty() || !child[0].is_structured());
      if (!child.is_structured() || plain_list) keys.insert(plain_list ? own + "[]" : own);
      add_keys(child, own, keys);
    }
  }
}

}  // namespace

std::set<std::string> keys_of(const Json& document) {
  std::set<std::string> keys;
  add_keys(document, "", keys);
  return keys;
}

std::set<std::string> documented_keys(const std::string& page) {
  std::ifstream file(source_path(page));
  if (!file) throw std::runtime_error(page + " is missing");
  std::set<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    keys.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

}  // namespace armilla
