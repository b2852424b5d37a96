// What a trace can be written as: a table with name, suffix, help and writer. Every rank gets a file of its
// own, except where the output names one file and there is one rank.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "trace/surgery.h"

namespace armilla {

struct TraceFormat {
  std::string_view name;
  std::string_view suffix;  // of each file, with the dot
  std::string_view help;
  std::string (*write)(const ChakraTrace& trace);
  bool read_back = false;  // as one of a job's traces, which have a prefix in common
  bool packs = false;      // with gzip, where that is asked for
};
std::span<const TraceFormat> trace_formats();

// The format called `name`, or by the suffix of `path` when `name` is empty; Chakra's own for any other.
const TraceFormat& find_trace_format(const std::string& name, const std::string& path);

// PREFIX.<rank>SUFFIX for every rank, or `path` as it stands for one rank when it ends in the suffix; and
// PREFIX.communicators.json when there are any. `packed`: with gzip, of formats that pack.
std::vector<NamedContents> trace_files(const TraceSet& job, const TraceFormat& format,
                                       const std::string& path, bool packed);

// Throws Error when files of further ranks lie under the same prefix: with them an older, larger job and this
// one would be read as one. Only those that `trace_files` would give the same suffix, and, of formats that
// can be read back, those of the others.
void refuse_further_ranks(const TraceSet& job, const TraceFormat& format, const std::string& path);

}  // namespace armilla
