// For tests: places for files. Each is this process's own, so that tests can run beside each other.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace armilla {

// This process's folder among temporary files; what tests leave in it goes with the process.
class ProcessFolder {
 public:
  ProcessFolder()
      : owner_(::getpid()),
        path_(std::filesystem::temp_directory_path() / ("armilla-" + std::to_string(owner_))) {
    std::filesystem::remove_all(path_);  // of a process that was killed and had the same number
    std::filesystem::create_directory(path_);
  }
  ~ProcessFolder() {
    // Children that a test forks leave it to their parent.
    std::error_code ignored;
    if (::getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  ProcessFolder(const ProcessFolder&) = delete;
  ProcessFolder& operator=(const ProcessFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  pid_t owner_;
  std::filesystem::path path_;
};

// A path that does not exist yet, for a file or a folder that the test makes.
inline std::filesystem::path path_for_test(const std::string& name) {
  static const ProcessFolder folder;
  return folder.path() / name;
}

}  // namespace armilla
