// Readers of traces and of what comes with them: Chakra, binary and JSON, ASTRA-sim 2's communicators and
// logs, and FlexFlow's task graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"
#include "ir/formats/issue_log.h"

namespace armilla {

// Chakra execution traces: files into ChakraTrace.
//
// A file is a row of records, each a varint length and a protobuf message: GlobalMetadata (missing in early
// files), then nodes. Every published schema is read, found from the bytes (read/trace/chakra_schema.h) and
// mapped to the current one: v0.0.1 and v0.0.2 (et_def.proto of mlcommons/chakra at ec3832c, 2719463), v0.0.3
// (9d917e3, 29de3e1), v0.0.4 to v1.0.0 (c236cfa on). So are gzip files of those, and two forms of JSON
// (read/trace/chakra_json.h). Fields that no schema knows are skipped; node types that none knows are
// refused.
//
// Cost: O(bytes) in one pass; nothing is kept but the trace (bytes per node: ir/formats/chakra.h), and of a
// mapped file no more than 4 MB are resident at a time. Any bytes are a trace or an Error with the byte's
// offset; that a file was cut short is said before anything else that is wrong with it.

// `name` is what messages call the file.
ChakraTrace read_chakra(std::span<const char> bytes, const std::string& name);
ChakraTrace read_chakra_file(const std::string& path);
// Likewise, into the memory of a trace that is not needed any more.
void read_chakra_file(const std::string& path, ChakraTrace& trace);

// ASTRA-sim 2.x's communicator groups: a JSON object of group name -> list of ranks.
//
// Chakra takes whole numbers above 0 as names; here any text is one, "0" included (in a trace, a group "0"
// that no file defines means all ranks). Errors: a name given twice, an empty group, a rank twice in a group
// or outside the network. Read as a stream, O(text); nothing is bounded but by the file.

Communicators read_communicators(const std::string& path, std::int64_t ranks);
// `name` is what errors call the text.
Communicators parse_communicators(std::string_view text, const std::string& name, std::int64_t ranks);

// FlexFlow's simulator exports a task graph in Graphviz' language; this makes Chakra traces of it, one per
// device, as Chakra's converter did (et_converter/flexflow2chakra_converter.py, removed in dd37d5a):
//   nodeK [label="{device_id=D|Name|Phase|COMP_NODE|simulated_run_time=MS}"]
//   nodeK
//   [label="{device_id=L|Name|Comm|COMM_SEND_RECV_NODE|src_device_id=S|dst_device_id=D|comm_size=B|..}"]
//   nodeA -> nodeB: B waits for A
// A communication is a send on S and a receive on D with tags of their own; its simulated duration is not
// used. Times are milliseconds, rounded to the format's microseconds. Who waits for a node of another device
// without a communication between them gets it told by a message of one byte.

struct FlexflowOptions {
  // As Chakra wrote them: durations are times taken as seconds, in cycles of `megahertz`; dependences on
  // nodes of other devices stay and dangle; communications wait only for nodes whose device_id (for
  // communications the number of a link) equals the rank; there is no metadata.
  bool as_chakra = false;
  std::int64_t megahertz = 1000;
};

struct FlexflowTraces {
  std::vector<ChakraTrace> ranks;  // by device
  std::int64_t told = 0;           // messages of one byte, see above
};

// `name` is what messages call the file. Throws Error.
FlexflowTraces parse_flexflow(std::string_view text, const std::string& name, const FlexflowOptions& options);

// Reader of the issue and callback lines that ASTRA-sim 2 writes into its log (trace-enabled), and that
// Chakra's timeline visualizer takes alone:
//   issue,sys->id=0, tick=0, node->id=0, node->name=COMP_NODE_l0, node->type=4
//   callback,sys=0,tick=1500,node_id=0,node_name=COMP_NODE_l0
// Only the order of the fields counts, not what they are called; the type is optional. Whatever stands before
// "issue," or "callback," in a line is a log's prefix, and other lines are skipped. Linear.

// Whether the first lines hold such a line.
bool is_issue_log(std::string_view beginning);
// `name` is what messages call the file. Throws Error with file:line for a field that is no number, a
// callback without issue, a node issued twice, and time running backwards.
IssueLog parse_issue_log(std::string_view text, const std::string& name);

}  // namespace armilla
