#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"

namespace armilla {
namespace {

// What stands for standard output; a file of that name is "./-".
constexpr std::string_view kStandardOutput = "-";

[[noreturn]] void fail(const std::string& path, int code) {
  throw Error(path, fmt::format("cannot write the file: {}", std::strerror(code)),
              code == ENOENT ? "the folder does not exist" : "");
}

void write_all(int descriptor, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t written = ::write(descriptor, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, errno);
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Closes on every way out; close() itself can report a full disk.
class Descriptor {
 public:
  Descriptor(int number, const std::string& path) : number_(number), path_(path) {
    if (number < 0) fail(path, errno);
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void close() {
    const int number = number_;
    number_ = -1;
    if (::close(number) != 0) fail(path_, errno);
  }

 private:
  int number_;
  const std::string& path_;
};

// One file on its way: removed again unless published. What is no regular file cannot be staged; it is
// written once everything else is safely on the disk.
class StagedFile {
 public:
  explicit StagedFile(const NamedContents& file) : target_(file.path) {
    if (target_ == kStandardOutput) {
      direct_ = file.contents;
      return;
    }
    struct stat status {};
    const bool exists = ::stat(target_.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) fail(target_, EISDIR);
    if (exists && !S_ISREG(status.st_mode)) {
      direct_ = file.contents;
      return;
    }
    // Beside the target, since a file can be renamed within one file system only.
    std::string name = target_ + ".XXXXXX";
    Descriptor staged(::mkostemp(name.data(), O_CLOEXEC), target_);
    staged_ = name;
    try {
      // mkostemp's files are for their owner alone; the final one has the permissions of the file it
      // replaces, or the usual ones.
      const mode_t mask = ::umask(0);
      ::umask(mask);
      ::fchmod(staged.number(), exists ? status.st_mode & 07777 : 0666 & ~mask);
      write_all(staged.number(), file.contents, target_);
      staged.close();
    } catch (...) {
      ::unlink(staged_.c_str());
      throw;
    }
  }
  StagedFile(StagedFile&& other) noexcept
      : target_(std::move(other.target_)), staged_(std::move(other.staged_)), direct_(other.direct_) {
    other.staged_.clear();
  }
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  ~StagedFile() {
    if (!staged_.empty()) ::unlink(staged_.c_str());
  }
  void write_direct() const {
    if (!staged_.empty()) return;
    if (target_ == kStandardOutput) return write_all(STDOUT_FILENO, direct_, "standard output");
    Descriptor direct(::open(target_.c_str(), O_WRONLY | O_CLOEXEC), target_);
    write_all(direct.number(), direct_, target_);
    direct.close();
  }
  void publish() {
    if (staged_.empty()) return;
    if (std::rename(staged_.c_str(), target_.c_str()) != 0) fail(target_, errno);
    staged_.clear();
  }

 private:
  std::string target_;
  std::string staged_;  // empty: nothing to rename or remove
  std::string_view direct_;
};

}  // namespace

void write_files(const std::vector<NamedContents>& files) {
  std::set<std::filesystem::path> targets;
  for (const NamedContents& file : files) {
    if (file.path == kStandardOutput) {
      if (!targets.insert(kStandardOutput).second)
        throw Error("-", "two outputs would go to standard output", "give all but one a file");
      continue;
    }
    // Two spellings of one path would overwrite each other: resolved paths are compared.
    std::error_code unknown;
    const std::filesystem::path target =
        std::filesystem::weakly_canonical(std::filesystem::absolute(file.path), unknown);
    const bool regular =
        !std::filesystem::exists(target, unknown) || std::filesystem::is_regular_file(target, unknown);
    if (regular && !targets.insert(target).second)
      throw Error(file.path, "two outputs would go to this file", "give each its own");
  }
  // All are staged before any is published, so a full disk leaves the old files as they are.
  std::vector<StagedFile> staged;
  staged.reserve(files.size());
  for (const NamedContents& file : files) staged.emplace_back(file);
  for (const StagedFile& file : staged) file.write_direct();
  for (StagedFile& file : staged) file.publish();
}

void write_file(const std::string& path, std::string_view contents) {
  write_files({{path, std::string(contents)}});
}

}  // namespace armilla
