// What can become traces: a table of kinds of file with their readers, which of them a path is, and
// reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/formats/text_workload.h"
#include "read/file_format.h"
#include "trace/surgery.h"

namespace armilla {

struct ConvertOptions {
  std::vector<std::int64_t> dimensions = {1};  // of a text workload, innermost first
  std::int64_t passes = 1;
  double frequency = 1e9;  // of cycles
  bool process_groups = false;
  bool as_chakra = false;      // as Chakra's own converters
  std::optional<Bytes> bytes;  // of an MSCCL call; none: messages are shares of the call
  std::string communicators;   // file of groups that Chakra traces refer to
};

struct ConvertInput {
  TraceSet job;
  std::vector<std::string> notes;
};

struct TraceReader {
  FileKind kind;
  ConvertInput (*read)(const std::string& path, const ConvertOptions& options);
};

// By the file's content (read/file_format.h); its name only tells the prefix of Chakra traces,
// PREFIX.<rank>.et, .et.gz or .json. nullptr: no traces; perhaps a model, which a name of the zoo always is,
// whatever traces have it as their prefix here.
const TraceReader* find_trace_reader(const std::string& path);
// What ASTRA-sim 2 logs about nodes, which becomes a timeline.
bool is_issue_log(const std::string& path);

// What is none of them is taken for the prefix of traces that are missing. Throws Error.
ConvertInput read_convert_input(const std::string& path, const ConvertOptions& options);
// A text workload that has been made or read already.
ConvertInput traces_of(const TextWorkload& workload, const ConvertOptions& options);

}  // namespace armilla
