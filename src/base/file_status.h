// What a path leads to. One that the system does not take (too long, in a folder that may not be looked into)
// leads nowhere: words of a command line that name no file are asked about, too.
#pragma once

#include <filesystem>
#include <system_error>

namespace armilla {

inline bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}
inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}
inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace armilla
