// Writers: nouns into the contents of files. One table per noun with name, suffixes, help and writer; each
// format is one source file.
//
// Nothing here touches the file system: what is returned is written by the caller, whole or not at all
// (base/output_file.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "ir/derived/layer_table.h"
#include "ir/study.h"
#include "write/timeline.h"

namespace armilla {

struct TextWorkload;  // ir/formats/text_workload.h

struct RunFormat {
  std::string_view name;
  std::string_view option;  // of `armilla run`; empty: what the terminal shows
  std::span<const std::string_view> suffixes;
  std::string_view help;
  // `path` is a file, or a folder for formats of several files; `selection` is for those with a timeline.
  std::vector<NamedContents> (*write)(const Run& run, const std::string& path,
                                      const TimelineSelection& selection);
};
std::span<const RunFormat> run_formats();

struct LayerFormat {
  std::string_view name;
  std::span<const std::string_view> suffixes;
  std::string_view help;
  std::string (*write)(const LayerTable& table);
};
std::span<const LayerFormat> layer_formats();

struct TextWorkloadFormat {
  std::string_view name;
  std::span<const std::string_view> suffixes;
  std::string_view help;
  std::string (*write)(const TextWorkload& workload);
};
std::span<const TextWorkloadFormat> text_workload_formats();

// The format of --trace by the suffix of `path`. Throws Error for any other suffix.
const RunFormat& trace_format(const std::string& path);
// The format called `name`, or by the suffix of `path` when `name` is empty. Throws Error with the known
// ones.
const TextWorkloadFormat& text_workload_format(const std::string& name, const std::string& path);

}  // namespace armilla
