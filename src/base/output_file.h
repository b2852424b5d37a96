// Files that appear whole or not at all: the text goes to a temporary file beside the target, which is
// renamed over it once everything, including the last buffered byte, has reached the disk. A target that
// exists and is no regular file (a pipe, a terminal, /dev/stdout) is written directly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace armilla {

// Throws Error (a full disk, a missing folder, no permission) and leaves nothing behind.
void write_file(const std::string& path, std::string_view contents);

// Throws Error, as far as it can be known beforehand, for what write_files could not write, and for two
// that are one: a folder that is missing or must not be written, a folder in place of the file. For
// before long work.
void check_targets(const std::vector<std::string>& paths);
// Throws Error for a path whose file, whatever it is called here, is one of `inputs`.
void refuse_inputs(const std::vector<std::string>& paths, const std::vector<std::string>& inputs);
// Likewise for a folder, which is made if it is missing.
void check_target_folder(const std::string& path);

struct NamedContents {
  std::string path;
  std::string contents;
};

// Writes several files; when one fails, none of the others has been replaced or created.
void write_files(const std::vector<NamedContents>& files);

}  // namespace armilla
