// What can become traces: which of them a path is, and reading it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/formats/text_workload.h"
#include "trace/trace_surgery.h"

namespace armilla {

enum class InputKind : std::uint8_t {
  model,       // a name of the zoo, or none of the others
  astra_text,  // an ASTRA-sim text workload
  chakra,      // one trace, or the prefix of PREFIX.<rank>.et, .et.gz or .json
  flexflow,    // a task graph of FlexFlow
  issue_log,   // what ASTRA-sim 2 logs about nodes
  msccl        // an algorithm of MSCCL
};
// By the file's content (read/file_format.h); its name only tells a prefix. A name of the zoo is that model,
// whatever traces have it as their prefix here.
InputKind input_kind(const std::string& path);

struct ConvertOptions {
  std::vector<std::int64_t> dimensions = {1};  // of a text workload, innermost first
  std::int64_t passes = 1;
  double frequency = 1e9;  // of cycles
  bool process_groups = false;
  bool as_peer = false;        // as Chakra's own converters
  std::optional<Bytes> bytes;  // of an MSCCL call; none: messages are shares of the call
  std::string communicators;   // file of groups that Chakra traces refer to
};

struct ConvertInput {
  TraceSet job;
  std::vector<std::string> notes;
};

// Throws Error. Not for models and logs.
ConvertInput read_convert_input(const std::string& path, InputKind kind, const ConvertOptions& options);
// A text workload that has been made or read already.
ConvertInput traces_of(const TextWorkload& workload, const ConvertOptions& options);

}  // namespace armilla
