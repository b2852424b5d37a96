// The least that every configuration must be: a mapping.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/config.h"
#include "base/error.h"

namespace armilla {

// Throws Error for a list, a single value and an empty file. `wanted` has its article: "a study".
inline void require_mapping(const Config& config, std::string_view wanted, std::string_view hint) {
  if (config.is_map()) return;
  if (config.is_list() || config.is_scalar())
    throw Error(config.where(),
                fmt::format("holds {}, not {}", config.is_list() ? "a list" : "a single value", wanted),
                std::string(hint));
  throw Error(config.where(), fmt::format("is empty, not {}", wanted), std::string(hint));
}

}  // namespace armilla
