// For tests: places for files. Each is this process's own, so that tests can run beside each other.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace armilla {

// A path that does not exist yet, for a file or a folder that the test makes and removes.
inline std::filesystem::path path_for_test(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("armilla-" + std::to_string(::getpid()) + "-" + name);
}

}  // namespace armilla
