// Validates the configuration files of ASTRA-sim 1.0 and 2 one by one.
#pragma once

#include <cstdint>
#include <string>

#include "read/file_format.h"

namespace armilla {

// Returns what the file is, with the warnings that a run would give. A system file does not say how many
// dimensions its network has: its lists are taken as the longest is. `ranks` 0: unknown. Throws Error.
std::string check_astra_file(const std::string& path, FileKind kind, std::int64_t ranks);

}  // namespace armilla
