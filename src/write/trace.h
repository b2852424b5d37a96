// Traces and what is drawn of them: Chakra's binary and JSON forms, ASTRA-sim 2's communicators, DOT and
// GraphML of a trace's dependences, and the timeline of a log of ASTRA-sim 2.
#pragma once

#include <string>
#include <string_view>

#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"
#include "ir/formats/issue_log.h"

namespace armilla {

// ChakraTrace -> a Chakra execution trace file: records of a varint length and a protobuf message, current
// schema (v0.0.4 to v1.0.0, et_def.proto of mlcommons/chakra).
//
// Byte-stable, and the bytes that protobuf itself would write: fields in order, zero defaults left out,
// numbers packed. What Chakra's tools wrote therefore survives reading and writing unchanged. A trace that
// was read from a file without metadata is written without. Cost: O(trace).

std::string write_chakra(const ChakraTrace& trace);

// The bytes as a gzip file without name or date.
std::string gzipped(std::string_view bytes);

// ChakraTrace -> what chakra_jsonizer writes: protobuf's JSON objects one after the other, not one document
// (google.protobuf.json_format of Python, two spaces of indent): metadata first, then nodes; names in camel
// case, 64-bit integers and infinities as text, bytes in base64, zero defaults left out, everything beyond
// ASCII escaped. Byte-equal for traces of the current schema; read back by read/trace/chakra_json.h. A trace
// without metadata begins with its first node, where Chakra takes that node for metadata. Cost: O(trace).

std::string write_chakra_json(const ChakraTrace& trace);

// Communicators (ir/formats/communicators.h) as ASTRA-sim 2's comm-group file: a JSON object of name -> list
// of ranks. Chakra takes whole numbers above 0 as names.

std::string write_communicators(const Communicators& communicators);

// ChakraTrace -> a drawing of its nodes and dependences in Graphviz' language, as chakra_visualizer makes it:
// records labelled with the nodes' names, arrows from what is waited for; data dependences with a normal
// head, control dependences with a tee. Without positions: `dot` lays it out. Dangling dependences draw a
// node without a record, as there. Cost: O(trace).

std::string write_dot(const ChakraTrace& trace);

// ChakraTrace -> GraphML, byte for byte as chakra_visualizer writes it through networkx: nodes with a
// `label`, edges with a `dependency` of "data" or "control", at most one between two nodes (a control
// dependence replaces a data dependence), dangling ends as nodes without a label. Cost: O(trace).

std::string write_graphml(const ChakraTrace& trace);

// IssueLog -> a timeline in the Trace Event Format, one process per rank, one thread for local memory, remote
// memory, computation, communication and all else. Times are the format's microseconds: ticks divided by the
// clock in MHz.
//
// As Chakra (chakra_timeline_visualizer) the same numbers are a thousandth of that, since it writes
// milliseconds, its object is one line with its own meta keys, and a name that tells no thread is an Error.

struct IssueChromeOptions {
  double megahertz = 1000;  // ticks per microsecond: ASTRA-sim 2's are nanoseconds
  bool as_chakra = false;
  std::int32_t ranks = 0;  // as Chakra is told; 0: those of the log
};

std::string write_issue_chrome(const IssueLog& log, const IssueChromeOptions& options);

}  // namespace armilla
