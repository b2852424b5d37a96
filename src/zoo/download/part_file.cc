#include "zoo/download/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/output_file.h"

namespace armilla {
namespace {

std::string note_path(const std::string& path) {
  return path + ".source";
}

void write_source_note(const std::string& path, const SourceNote& note) {
  write_file(note_path(path),
             fmt::format("url {}\nvalidator {}\nsha256 {}\n", note.url, note.validator, note.sha256));
}

}  // namespace

std::optional<SourceNote> read_source_note(const std::string& path) {
  std::ifstream file(note_path(path));
  SourceNote note;
  for (const auto& [key, value] : {std::pair<std::string, std::string*>{"url ", &note.url},
                                   {"validator ", &note.validator},
                                   {"sha256 ", &note.sha256}}) {
    std::string line;
    if (!std::getline(file, line) || !line.starts_with(key)) return std::nullopt;
    *value = line.substr(key.size());
  }
  return note;
}

// The lock lasts as long as the object: no two processes write one part.
PartFile::PartFile(const std::string& target) : target_(target), path_(target + ".part") {
  open_locked();
  if (size_ > 0) source_ = read_source_note(path_);
}

PartFile::~PartFile() {
  // Where nothing came, there is nothing to go on with.
  if (size_ == 0) discard();
  ::close(descriptor_);
}

void PartFile::open_locked() {
  // Between opening and locking, the holder may have renamed or removed the file: then the lock is on a file
  // that no longer has this name, and the next round opens the one that has.
  for (;;) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("open");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int code = errno;
      ::close(descriptor_);
      descriptor_ = -1;
      errno = code;
      if (code != EWOULDBLOCK) fail("lock");
      throw Error(path_, "another process is fetching this model", "wait until it has finished");
    }
    struct stat opened {
    }, named{};
    if (::fstat(descriptor_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
      size_ = static_cast<std::uint64_t>(opened.st_size);
      return;
    }
    ::close(descriptor_);
  }
}

void PartFile::restart(const SourceNote& source) {
  // Emptied first: killed in between, the part has no bytes that the note could be wrong about.
  if (::ftruncate(descriptor_, 0) != 0) fail("write");
  size_ = 0;
  source_ = source;
  write_source_note(path_, source);
}

void PartFile::append(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    size_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void PartFile::discard() {
  ::unlink(note_path(path_).c_str());
  ::unlink(path_.c_str());
}

void PartFile::publish(const SourceNote& source) {
  if (::fsync(descriptor_) != 0) fail("write");
  // The note has the new file's checksum, so killed before the renaming it does not pass for the old file's.
  write_source_note(target_, source);
  if (std::rename(path_.c_str(), target_.c_str()) != 0) fail("rename");
  ::unlink(note_path(path_).c_str());
}

void PartFile::fail(const char* what) const {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw Error(path_, fmt::format("cannot {} the file: {}", what, std::strerror(code)),
              full ? "make room and run the same command again: the download goes on where it stopped"
                   : "another cache folder can be chosen with XDG_CACHE_HOME");
}

}  // namespace armilla
