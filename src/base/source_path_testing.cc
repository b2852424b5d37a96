#include "base/source_path_testing.h"

namespace armilla {

std::string source_path(const std::string& inside) {
  const std::string root = ARMILLA_SOURCE_DIR;
  return inside.empty() ? root : root + "/" + inside;
}

}  // namespace armilla
