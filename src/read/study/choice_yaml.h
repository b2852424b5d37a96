// One of the values of an enum, by the name that `name_of` gives it.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace armilla {

template <class Enum>
Enum read_choice(const Config& config, std::initializer_list<Enum> values) {
  std::vector<std::string_view> names;
  for (const Enum value : values) names.push_back(name_of(value));
  return values.begin()[config.choice(names)];
}

}  // namespace armilla
