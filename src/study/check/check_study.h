// Validates a study without simulating it.
#pragma once

#include <string>

#include "base/config.h"

namespace armilla {

// Everything of a study that can be wrong before its simulation: it is read, prepared and lowered, and all
// its components are made. Returns what it is. Throws Error.
std::string check_study_file(const std::string& path);
// The same of what is read already.
std::string check_study(const Config& config);

}  // namespace armilla
