// The Chakra traces of a job: PREFIX.<rank>.et, .et.gz or .json, one per rank, into a Graph or through the
// checker.
//
// Files with equal bytes are read once, for all their ranks, and share a program. Distinct files are read by
// several threads, a few at a time, and handed over in the order of their first ranks, so neither the result
// nor which of several broken files is named depends on the threads.
// Memory: the graph (ir/graph.h) and one trace (ir/formats/chakra.h) more than there are threads, each used
// again for the next file. Time: one pass over the bytes; two where files look alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "trace/graph.h"

namespace armilla {

struct TraceInputOptions {
  bool check = true;  // that the traces fit together, with all problems in one Error
};

struct TraceJob {
  Graph graph;
  std::vector<RooflineUse> roofline_use;  // per program, with the roofline
  std::vector<std::string> warnings;
};

// The file of a rank, whatever its suffix.
std::optional<std::string> trace_file(const std::string& prefix, std::int64_t rank);
// How many ranks have files, from 0 without a gap.
std::int64_t count_trace_files(const std::string& prefix);

// Throws Error for a missing or broken file, and for traces that do not fit together.
TraceJob read_trace_job(const std::string& prefix, const TraceGraphOptions& lowering,
                        const TraceInputOptions& options = {});

// Throws Error only for files that cannot be read.
std::vector<TraceProblem> check_trace_files(const std::string& prefix, const TraceCheckOptions& check,
                                            const TraceInputOptions& options = {});

}  // namespace armilla
