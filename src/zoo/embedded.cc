#include "zoo/embedded.h"

#include <algorithm>
#include <cstdint>

namespace armilla {

// The layout that cmake/ArmillaEmbed.cmake writes.
struct EmbeddedEntry {
  const char* path;
  const char* begin;
  const char* end;
};
static_assert(sizeof(EmbeddedEntry) == 24, "the table is written for 64-bit addresses");

extern "C" const std::uint64_t armilla_embedded_count;
extern "C" const EmbeddedEntry armilla_embedded_table[];

namespace {

std::vector<EmbeddedFile> read_table() {
  std::vector<EmbeddedFile> files;
  for (const EmbeddedEntry& entry : std::span(armilla_embedded_table, armilla_embedded_count))
    files.push_back({entry.path, {entry.begin, entry.end}});
  return files;
}

}  // namespace

std::span<const EmbeddedFile> embedded_files() {
  static const std::vector<EmbeddedFile> files = read_table();
  return files;
}

std::optional<EmbeddedFile> find_embedded(std::string_view path) {
  const std::span<const EmbeddedFile> files = embedded_files();
  // cmake/ArmillaEmbed.cmake writes the table in the order of paths.
  const auto found = std::ranges::lower_bound(files, path, {}, &EmbeddedFile::path);
  if (found == files.end() || found->path != path) return std::nullopt;
  return *found;
}

}  // namespace armilla
