#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file_status.h"

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

namespace {

void require_different(const std::vector<std::string>& paths) {
  std::set<std::filesystem::path> targets;
  for (const std::string& path : paths) {
    if (path == kStandardOutput) {
      if (!targets.insert(kStandardOutput).second)
        throw Error("-", "two outputs would go to standard output", "give all but one a file");
      continue;
    }
    // Two spellings of one path would overwrite each other: resolved paths are compared.
    std::error_code unknown;
    const std::filesystem::path target =
        std::filesystem::weakly_canonical(std::filesystem::absolute(path), unknown);
    const bool regular = !is_there(target) || is_file(target);
    if (regular && !targets.insert(target).second)
      throw Error(path, "two outputs would go to this file", "give each its own");
  }
}

// 0, or why nothing can be made in the folder.
int why_not_into(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

void require_writable(const std::string& path) {
  if (path == kStandardOutput) return;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
    if (!S_ISREG(status.st_mode)) {
      if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) fail(path, errno);
      return;
    }
  } else if (errno != ENOENT && errno != ENOTDIR) {
    fail(path, errno);
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  if (const int why = why_not_into(folder); why != 0) fail(path, why);
}

}  // namespace

void check_targets(const std::vector<std::string>& paths) {
  require_different(paths);
  for (const std::string& path : paths) require_writable(path);
}

void refuse_inputs(const std::vector<std::string>& paths, const std::vector<std::string>& inputs) {
  for (const std::string& path : paths) {
    std::error_code none;
    if (path == kStandardOutput || !is_file(path)) continue;
    const auto is_same = [&](const std::string& input) {
      return std::filesystem::equivalent(path, input, none);
    };
    const auto input = std::ranges::find_if(inputs, is_same);
    if (input == inputs.end()) continue;
    throw Error(path,
                *input == path ? "this file is read, and would be written over"
                               : fmt::format("is {}, which is read, and would be written over", *input),
                "write to another file");
  }
}

void check_target_folder(const std::string& path) {
  if (path == kStandardOutput)
    throw Error(path, "is standard output, not a folder", "a folder of that name is ./-");
  std::filesystem::path there = path;
  while (there.has_relative_path() && !is_there(there)) there = there.parent_path();
  const std::string folder = there.empty() ? "." : there.string();
  if (!is_folder(folder) && folder == path) throw Error(path, "is not a folder");
  if (const int why = why_not_into(folder); why != 0)
    throw Error(path, fmt::format("cannot make the folder: {}", std::strerror(why)));
}

void write_files(const std::vector<NamedContents>& files) {
  std::vector<std::string> paths;
  for (const NamedContents& file : files) paths.push_back(file.path);
  require_different(paths);
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
