#include "base/memory_left.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace armilla {
namespace {

constexpr std::int64_t kNoLimit = INT64_MAX;

// The number behind `label` in the first 4 KiB of a file, after blanks; none: -1. It asks for no memory, of
// which there may be none left.
std::int64_t number_in(const char* path, std::string_view label) {
  std::array<char, 4096> text{};
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  const std::string_view whole(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  std::size_t at = whole.find(label);
  if (at == std::string_view::npos) return -1;
  at = std::min(whole.find_first_not_of(' ', at + label.size()), whole.size());
  std::int64_t number = -1;
  std::from_chars(whole.data() + at, whole.data() + whole.size(), number);
  return number;
}

std::int64_t of_machine() {
  const std::int64_t kib = number_in("/proc/meminfo", "MemAvailable:");
  return kib < 0 ? kNoLimit : kib * 1024;
}

// What is of the group's now is not looked at: most of it may be files that make room.
std::int64_t of_group(const char* path) {
  const std::int64_t bytes = number_in(path, "");
  return bytes > 0 ? bytes : kNoLimit;  // "max" is no number
}

std::int64_t of_process() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const std::int64_t pages = std::max<std::int64_t>(number_in("/proc/self/statm", ""), 0);
  const auto most = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kNoLimit));
  return std::max<std::int64_t>(most - pages * ::sysconf(_SC_PAGESIZE), 0);
}

}  // namespace

Bytes memory_left() {
  return Bytes(std::min({of_machine(), of_process(), of_group("/sys/fs/cgroup/memory.max"),
                         of_group("/sys/fs/cgroup/memory/memory.limit_in_bytes")}));
}

}  // namespace armilla
