// JSON documents: keys in the order they were added, two spaces of indent, a newline at the end.
//
// JSON has no NaN and no infinity: a figure that does not exist is null. Names that are not UTF-8 get
// replacement characters, so that every document can be parsed.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"

namespace armilla {

using Json = nlohmann::ordered_json;

inline Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
inline Json finite(Bandwidth value) {
  return finite(value.value);
}

// Divided rather than multiplied by 1e-12, which is no double: the nearest number of seconds, and the short
// text.
inline double seconds(Time time) {
  return static_cast<double>(time.value) / 1e12;
}

inline std::string to_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// One value on one line, for documents that are written piece by piece.
inline std::string to_inline_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace armilla
