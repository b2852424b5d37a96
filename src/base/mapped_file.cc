#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace armilla {

MappedFile::MappedFile(const std::string& path) {
  if (path == "-")
    throw Error(path, "standard input is not read", "name a file; one that is called '-' is ./-");
  // Without O_NONBLOCK a pipe that nobody writes to would hang here, before its type is known.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Error(path, fmt::format("cannot open the file: {}", std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw Error(path,
                known && S_ISDIR(status.st_mode) ? "is a directory, not a file" : "is not a regular file");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  void* mapping = size_ == 0 ? nullptr : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int map_error = errno;
  ::close(descriptor);
  if (mapping == MAP_FAILED)
    throw Error(path, fmt::format("cannot map the file: {}", std::strerror(map_error)));
  data_ = static_cast<const char*>(mapping);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release(std::span<const char> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<std::size_t>(part.data() - data_);
  // Whole pages only: the last one may hold the beginning of what comes next.
  const std::size_t first = begin / page * page, last = (begin + part.size()) / page * page;
  // Advice only: nothing depends on whether it is taken.
  if (last > first) ::madvise(const_cast<char*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace armilla
