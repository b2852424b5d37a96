#include "read/profile.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "read/file_format.h"

namespace armilla {
namespace {

Profile parse_own(std::string_view text, const std::string& path) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != text.npos && text[begin] == '{';
  return json ? parse_profile_json(text, path) : parse_profile(text, path);
}

}  // namespace

Profile read_profile(const std::string& path) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::profile, "a table of events");
  return parse_own({file.bytes().data(), file.bytes().size()}, path);
}

Profile import_profile(const std::string& path, const std::string& collective) {
  const MappedFile file(path);
  const std::string_view text(file.bytes().data(), file.bytes().size());
  const FileKind kind = sniff(file.bytes());
  if (kind == FileKind::profile) return parse_own(text, path);
  if (kind == FileKind::kineto || kind == FileKind::chrome_trace) return parse_torch_profile(text, path);
  // Or behind more of a log than is looked at.
  if (kind == FileKind::nccl_tests ||
      (text.find("out-of-place") != text.npos && text.find("busbw") != text.npos))
    return parse_nccl_tests(text, path, collective);
  throw wrong_kind(path, kind,
                   "a table of events, the output of nccl-tests or a trace of PyTorch's profiler");
}

}  // namespace armilla
