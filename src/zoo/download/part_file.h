// A download in progress: NAME.part beside the final file, locked against other processes, with a note of
// where its bytes come from. Whatever is killed when, the final file is either absent, the old one, or the
// new one, whole.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace armilla {

// Where a file's bytes come from; kept in FILE.source as "key value" lines.
struct SourceNote {
  std::string url;
  std::string validator;  // ETag or Last-Modified
  std::string sha256;     // of a whole file
};
std::optional<SourceNote> read_source_note(const std::string& path);

class PartFile {
 public:
  // Opens or creates the part of `target`. Throws Error when another process holds it.
  explicit PartFile(const std::string& target);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // Of an earlier attempt; none when the part is empty or its note is missing.
  const std::optional<SourceNote>& source() const { return source_; }

  // Empties the part and notes its new source.
  void restart(const SourceNote& source);
  void append(std::span<const char> bytes);
  // Removes the part and its note.
  void discard();
  // Makes the part the target, and notes its source.
  void publish(const SourceNote& source);

 private:
  void open_locked();
  [[noreturn]] void fail(const char* what) const;  // with errno

  std::string target_;
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::optional<SourceNote> source_;
};

}  // namespace armilla
