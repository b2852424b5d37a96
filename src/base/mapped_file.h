// A file mapped read-only into memory, so that reading a 2 GB model touches only the pages that are looked
// at.
#pragma once

#include <span>
#include <string>

namespace armilla {

class MappedFile {
 public:
  // Throws Error when `path` is missing, unreadable, a directory or no regular file. An empty file is an
  // empty span.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const char> bytes() const { return {data_, size_}; }
  // Gives back the memory of a part of it; what is looked at afterwards is loaded again.
  void release(std::span<const char> part) const;

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace armilla
