#include "base/memory_left.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace armilla {
namespace {

constexpr std::int64_t kNoLimit = INT64_MAX;

std::int64_t of_machine() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    std::int64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
    file.ignore(1 << 10, '\n');
  }
  return kNoLimit;
}

// What is of the group's now is not looked at: most of it may be files that make room.
std::int64_t of_group(const char* path) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : kNoLimit;  // "max" is no number
}

std::int64_t of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages;
  const auto most = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoLimit));
  return std::max<std::int64_t>(most - pages * ::sysconf(_SC_PAGESIZE), 0);
}

}  // namespace

Bytes memory_left() {
  return Bytes(std::min({of_machine(), of_process(), of_group("/sys/fs/cgroup/memory.max"),
                         of_group("/sys/fs/cgroup/memory/memory.limit_in_bytes")}));
}

}  // namespace armilla
