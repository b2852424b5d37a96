// Everything that has a name a user can type, by family, read from the components' own tables.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"

namespace armilla {

struct CatalogueEntry {
  std::string name;
  std::string help;
  std::span<const ParameterInfo> parameters;
};

struct CatalogueFamily {
  std::string_view name;      // "algorithms"
  std::string_view singular;  // "collective algorithm"
  std::string_view help;
  std::vector<CatalogueEntry> (*entries)();
};
std::span<const CatalogueFamily> catalogue();

}  // namespace armilla
