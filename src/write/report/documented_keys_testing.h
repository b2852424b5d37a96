// For tests: the keys of a JSON document against those that its page under docs/formats describes.
//
// A key is a path such as "links[].busy_s". On the page every key stands as `key` in the first column of a
// table whose rows begin with "| `".
#pragma once

#include <set>
#include <string>

#include "write/format/json_text.h"

namespace armilla {

std::set<std::string> keys_of(const Json& document);
std::set<std::string> documented_keys(const std::string& page);

}  // namespace armilla
